/**
 * Starts an unpacking child process, also before it is known what for, and hears what it has to say. Bounded in time, memory
 * and words; what it unpacked is for the caller to take for whole, or to remove.
 */
import { fileURLToPath } from 'node:url';
import { FailureError } from '../../../domain/model/errors.ts';
import { JAILER_PATH, jailedCommand } from '../../../platform/linux/jailed-command.ts';
import type { RunResult, Spawner, Told } from '../../../platform/spawner/types.ts';
import type { ImageLimits } from '../types.ts';
import { REPORT_BYTES_MAX, type UnpackReport, type UnpackRequest } from './protocol.ts';
import { createReportReader } from './reports.ts';

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));
/**
 * Its heap is not collected before there is something to collect: V8 begins with a few MB, and counts what is being
 * decompressed, so that small layers were marked four times for nothing. It works on one thread and decompresses on another.
 */
const NODE_FLAGS = ['--max-old-space-size=384', '--initial-old-space-size=64', '--v8-pool-size=1'];

export interface UnpackerRun extends Pick<UnpackRequest, 'form' | 'directory' | 'diffId' | 'arriving'> {
  readonly archivePath: string;
  /** For messages: "Layer sha256:…". */
  readonly name: string;
  readonly signal: AbortSignal;
  readonly onProgress: (bytesDone: number) => void;
}

export interface Unpacked {
  readonly done: UnpackReport & { readonly kind: 'done' };
  /** Directories that the archive does not describe. */
  readonly implied: readonly string[];
  /** Directories that are to hide those below, and are not marked yet. */
  readonly opaque: readonly string[];
}

const childFailure = (result: RunResult, name: string): FailureError => {
  if (result.timedOut) return new FailureError('ImageInvalid', `${name} takes longer to unpack than is allowed.`);
  const stderr = Buffer.from(result.stderr).toString('utf8');
  const lines = stderr.trim().split('\n');
  const complaint = lines.find((line) => /^\w*Error\b/.test(line)) ?? lines.at(-1) ?? '';
  if (/out of memory|allocation failed|bad_alloc|ENOMEM/i.test(stderr)) {
    return new FailureError('ImageInvalid', `${name} takes more memory to unpack than is allowed.`);
  }
  const how = result.signalName === null ? `exit code ${result.exitCode}` : `signal ${result.signalName}`;
  return new FailureError(
    'HostFailed',
    `The process unpacking ${name} ended early (${how}): ${complaint.slice(0, 500)}`,
  );
};

/** A process that has loaded all it needs, or is about to, and has read nothing of anybody. */
export interface UnpackerProcess {
  /** To be called once. Throws FailureError, or the signal's reason. */
  readonly unpack: (run: UnpackerRun) => Promise<Unpacked>;
  /** Resolves when it has ended, however that came. */
  readonly ended: Promise<unknown>;
  /** Nothing is to be unpacked by it. */
  readonly end: () => void;
}

const { NODE_COMPILE_CACHE } = process.env;

/** Starts a process that will unpack one archive. */
export const startUnpackerProcess = (spawner: Pick<Spawner, 'run'>, limits: ImageLimits): UnpackerProcess => {
  const told = Promise.withResolvers<Told>();
  const ending = new AbortController();
  const heard: { report: (report: UnpackReport) => void } = { report: () => undefined };
  let nonsense: FailureError | null = null;
  const read = createReportReader((report) => heard.report(report));
  const running = spawner.run({
    ...jailedCommand(process.execPath, [...NODE_FLAGS, CHILD]),
    env: {
      PATH: JAILER_PATH,
      // Files are not to be read and written through it: the filter of system calls does not see into it.
      UV_USE_IO_URING: '0',
      UV_THREADPOOL_SIZE: '2',
      ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
    },
    cwd: '/',
    told: told.promise,
    timeoutMs: limits.unpackTimeoutMs,
    outputBytesMax: REPORT_BYTES_MAX,
    signal: ending.signal,
    onStdout: (chunk) => {
      try {
        if (nonsense === null) read(chunk);
      } catch (error) {
        nonsense = error instanceof FailureError ? error : new FailureError('Bug', String(error));
      }
    },
  });
  // Whoever has it unpack something hears of it.
  const ended = running.catch(() => undefined);

  const unpack = async ({ name, directory, signal, onProgress, archivePath, form, diffId, arriving }: UnpackerRun) => {
    const request: UnpackRequest = {
      blobPath: archivePath,
      form,
      directory,
      diffId,
      ...(arriving !== undefined && { arriving }),
      entriesMax: limits.layerEntriesMax,
      bytesMax: limits.layerBytesMax,
      memoryBytesMax: limits.unpackMemoryBytesMax,
      reservedBytes: limits.reservedBytes,
    };
    const implied: string[] = [];
    const opaque: string[] = [];
    let last: UnpackReport | null = null;
    heard.report = (report) => {
      if (report.kind === 'progress') onProgress(report.bytesDone);
      else if (report.kind === 'implied') implied.push(report.path);
      else if (report.kind === 'opaque') opaque.push(report.path);
      else last = report;
    };
    const cancel = (): void => ending.abort();
    signal.addEventListener('abort', cancel, { once: true });
    if (signal.aborted) cancel();
    told.resolve({ line: `${JSON.stringify(request)}\n`, root: directory });
    try {
      const result = await running;
      if (nonsense !== null) throw nonsense;
      const report = last as UnpackReport | null;
      if (report?.kind === 'failed') throw new FailureError(report.reason, `${name}: ${report.message}`);
      if (report?.kind !== 'done' || result.exitCode !== 0) throw childFailure(result, name);
      return { done: report, implied, opaque };
    } catch (error) {
      signal.throwIfAborted();
      throw error;
    } finally {
      signal.removeEventListener('abort', cancel);
    }
  };
  return { unpack, ended, end: () => ending.abort() };
};
