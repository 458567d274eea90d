/**
 * Runs one unpacking child process and hears what it has to say. Bounded in time, memory and words; what it unpacked is
 * for the caller to take for whole, or to remove.
 */
import { fileURLToPath } from 'node:url';
import { FailureError } from '../../../domain/model/errors.ts';
import { JAILER_PATH, jailedCommand } from '../../../platform/linux/jailed-command.ts';
import type { RunResult, Spawner } from '../../../platform/spawner/types.ts';
import type { ImageLimits } from '../types.ts';
import { REPORT_BYTES_MAX, type UnpackReport, type UnpackRequest } from './protocol.ts';
import { createReportReader } from './reports.ts';

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));
const CHILD_HEAP_MB = 384;

export interface UnpackerRun extends Pick<UnpackRequest, 'form' | 'directory' | 'diffId' | 'arriving'> {
  readonly spawner: Pick<Spawner, 'run'>;
  readonly limits: ImageLimits;
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

/** Unpacks an archive into a directory. Throws FailureError, or the signal's reason. */
export const runUnpacker = async (run: UnpackerRun): Promise<Unpacked> => {
  const { spawner, limits, archivePath, name, form, directory, diffId, signal, onProgress } = run;
  const request: UnpackRequest = {
    blobPath: archivePath,
    form,
    directory,
    diffId,
    ...(run.arriving !== undefined && { arriving: run.arriving }),
    entriesMax: limits.layerEntriesMax,
    bytesMax: limits.layerBytesMax,
    memoryBytesMax: limits.unpackMemoryBytesMax,
    reservedBytes: limits.reservedBytes,
  };
  const implied: string[] = [];
  const opaque: string[] = [];
  let last: UnpackReport | null = null;
  let nonsense: FailureError | null = null;
  const read = createReportReader((report) => {
    if (report.kind === 'progress') onProgress(report.bytesDone);
    else if (report.kind === 'implied') implied.push(report.path);
    else if (report.kind === 'opaque') opaque.push(report.path);
    else last = report;
  });
  const { NODE_COMPILE_CACHE } = process.env;
  const result = await spawner.run({
    ...jailedCommand(process.execPath, [`--max-old-space-size=${CHILD_HEAP_MB}`, CHILD, JSON.stringify(request)]),
    env: {
      PATH: JAILER_PATH,
      // Files are not to be read and written through it: the filter of system calls does not see into it.
      UV_USE_IO_URING: '0',
      ...(NODE_COMPILE_CACHE !== undefined && { NODE_COMPILE_CACHE }),
    },
    cwd: '/',
    rootAfterStart: directory,
    timeoutMs: limits.unpackTimeoutMs,
    outputBytesMax: REPORT_BYTES_MAX,
    signal,
    onStdout: (chunk) => {
      try {
        if (nonsense === null) read(chunk);
      } catch (error) {
        nonsense = error instanceof FailureError ? error : new FailureError('Bug', String(error));
      }
    },
  });
  signal.throwIfAborted();
  const wrongAnswer = nonsense as FailureError | null;
  if (wrongAnswer !== null) throw wrongAnswer;
  const report = last as UnpackReport | null;
  if (report?.kind === 'failed') throw new FailureError(report.reason, `${name}: ${report.message}`);
  if (report?.kind !== 'done' || result.exitCode !== 0) throw childFailure(result, name);
  return { done: report, implied, opaque };
};
