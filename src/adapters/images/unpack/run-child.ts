/**
 * Starts an unpacking child process, also before it is known what for, and hears what it has to say. Bounded in time, memory
 * and words; what it unpacked is for the caller to take for whole, or to remove.
 */
import { fileURLToPath } from 'node:url';
import { FailureError } from '../../../domain/model/errors.ts';
import { timerMs } from '../../../platform/rpc/timeout.ts';
import { JAILER_PATH, jailedCommand } from '../../../platform/linux/jailed-command.ts';
import type { NewRoot, RunResult, Spawner, Told } from '../../../platform/spawner/types.ts';
import type { ImageLimits } from '../types.ts';
import type { ArrivingArchive, FoundArchive, Home, Homes } from './home.ts';
import { REPORT_BYTES_MAX, type UnpackReport, type UnpackRequest } from './protocol.ts';
import { createReportReader } from './reports.ts';
import type { ChainPlace } from './turns.ts';

const CHILD = fileURLToPath(new URL('./child.ts', import.meta.url));
/**
 * It works on one thread and decompresses on another. Only flags with which V8 still takes the compiled code that Node brings
 * along: with others (a larger heap to begin with, say) Node's own modules are compiled anew at each start.
 */
export const NODE_FLAGS: readonly string[] = ['--max-old-space-size=384', '--v8-pool-size=1'];

export interface UnpackerRun extends Pick<UnpackRequest, 'form' | 'diffId' | 'archivePath'> {
  readonly arriving?: ArrivingArchive;
  /** What the archive is unpacked into: an empty directory, or where a layer will be that is not there yet. */
  readonly directory: string;
  /** Of a layer. null: what is unpacked is none. */
  readonly place: ChainPlace | null;
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
  /** Resolves when the process is no more: until then it may have what it unpacked open, and change it. */
  readonly gone: Promise<unknown>;
}

/** What a process says that was not asked to end and has ended. */
const childFailure = (result: RunResult, name: string): FailureError => {
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

/**
 * So many layers at most go through one process, so that others have their turn: as many as that of quick ones, of which each
 * other counts for four.
 */
const QUICK_LAYERS_MAX = 32;
const costOf = ({ isQuick }: ChainPlace): number => (isQuick ? 1 : 4);
/** What is heard of it in all; one that has said so much that no further layer's reports fit is not asked again. */
const OUTPUT_BYTES_MAX = 8 * REPORT_BYTES_MAX;

export interface UnpackerProcess {
  /**
   * One at a time. Throws FailureError, or the signal's reason, once the process has ended; it can be asked again after it
   * has unpacked a layer.
   */
  readonly unpack: (run: UnpackerRun) => Promise<Unpacked>;
  /** Whether it can be asked again, for a layer in that archive. */
  readonly canReach: (archivePath: string) => Promise<boolean>;
  /** Resolves when it has ended, however that came, and left nothing. */
  readonly gone: Promise<unknown>;
  readonly end: () => void;
}

const { NODE_COMPILE_CACHE } = process.env;

/** The program under way, in its jail, and what it says while somebody listens. */
const startChild = (spawner: Pick<Spawner, 'run'>) => {
  const ending = new AbortController();
  const heard: { report: (report: UnpackReport) => void } = { report: () => undefined };
  let tell: (what: Told) => void = () => undefined;
  let nonsense: FailureError | null = null;
  let bytesHeard = 0;
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
    told: (toProcess) => {
      tell = toProcess;
    },
    timeoutMs: null,
    outputBytesMax: OUTPUT_BYTES_MAX,
    signal: ending.signal,
    onStdout: (chunk) => {
      bytesHeard += chunk.length;
      try {
        if (nonsense === null) read(chunk);
      } catch (error) {
        nonsense = error instanceof FailureError ? error : new FailureError('Bug', String(error));
        ending.abort();
      }
    },
  });
  return {
    running,
    /** Resolves when it has ended, however that came. */
    ended: running.then(
      () => undefined,
      () => undefined,
    ),
    heard,
    nonsense: () => nonsense,
    mayGoOn: () => bytesHeard <= OUTPUT_BYTES_MAX - REPORT_BYTES_MAX && !ending.signal.aborted,
    tell: (what: Told) => tell(what),
    end: () => ending.abort(),
  };
};

type Child = ReturnType<typeof startChild>;
/** What a child says of an archive at last. */
type Said = Omit<Unpacked, 'gone'> | FailureError;

const listenTo = ({ heard, ended }: Child, { name, onProgress }: UnpackerRun): Promise<Said | null> => {
  const implied: string[] = [];
  const opaque: string[] = [];
  const last = Promise.withResolvers<Said>();
  heard.report = (report) => {
    if (report.kind === 'progress') onProgress(report.bytesDone);
    else if (report.kind === 'implied') implied.push(report.path);
    else if (report.kind === 'opaque') opaque.push(report.path);
    else if (report.kind === 'done') last.resolve({ done: report, implied, opaque });
    else if (report.kind === 'failed') last.resolve(new FailureError(report.reason, `${name}: ${report.message}`));
  };
  return Promise.race([last.promise, ended.then(() => null)]);
};

/** Starts a process that will unpack an archive, or layers one after the other. */
export const startUnpackerProcess = (
  spawner: Pick<Spawner, 'run'>,
  limits: ImageLimits,
  homes: Pick<Homes, 'make' | 'remove'>,
): UnpackerProcess => {
  const child = startChild(spawner);
  const { end } = child;
  let making: Promise<Home> | null = null;
  let home: Home | null = null;
  let found: FoundArchive | null = null;
  let isFirst = true;
  let cost = 0;
  let hasEnded = false;
  const gone = child.ended.then(async () => {
    hasEnded = true;
    const made = await making?.catch(() => null);
    if (made) await homes.remove(made);
  });

  /** Tells it to unpack the archive, where it finds it and where it has its place. */
  const ask = async (run: UnpackerRun): Promise<void> => {
    const { place, archivePath, directory, form, diffId, arriving } = run;
    let within = '';
    if (place !== null) {
      cost += costOf(place);
      making ??= homes.make();
      home = await making;
      [within, found] = await Promise.all([home.makeLayer(), found ?? home.putArchive(archivePath, arriving)]);
    }
    const root: NewRoot = home === null ? { directory } : home.root;
    const request: UnpackRequest = {
      ...(found ?? { archivePath, isOutside: true }),
      ...{ form, diffId, root: root.directory, within },
      entriesMax: limits.layerEntriesMax,
      bytesMax: limits.layerBytesMax,
      memoryBytesMax: limits.unpackMemoryBytesMax,
      reservedBytes: limits.reservedBytes,
    };
    child.tell({ line: `${JSON.stringify(request)}\n`, ...(isFirst && { root }) });
    isFirst = false;
    found = null;
  };

  const unpack = async (run: UnpackerRun): Promise<Unpacked> => {
    const { name, signal, place, directory } = run;
    let timedOut = false;
    const overtime = (): void => {
      timedOut = true;
      end();
    };
    const timer = setTimeout(overtime, timerMs(limits.unpackTimeoutMs));
    signal.addEventListener('abort', end, { once: true });
    if (signal.aborted) end();
    try {
      const said = listenTo(child, run);
      await ask(run).catch((error: unknown) => {
        // One that ends takes its home away meanwhile: how it ended is what is the matter.
        if (!hasEnded) throw error;
      });
      const unpacked = await said;
      signal.throwIfAborted();
      const nonsense = child.nonsense();
      if (nonsense !== null) throw nonsense;
      if (timedOut as boolean)
        throw new FailureError('ImageInvalid', `${name} takes longer to unpack than is allowed.`);
      if (unpacked instanceof FailureError) throw unpacked;
      if (unpacked === null) throw childFailure(await child.running, name);
      if (place !== null) await home?.takeLayer(directory);
      return { ...unpacked, gone };
    } catch (error) {
      end();
      await gone;
      signal.throwIfAborted();
      throw error;
    } finally {
      child.heard.report = () => undefined;
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  };

  const canReach = async (archivePath: string): Promise<boolean> => {
    if (home === null || cost >= QUICK_LAYERS_MAX || !child.mayGoOn()) return false;
    try {
      found = await home.putArchive(archivePath);
      return true;
    } catch {
      return false;
    }
  };
  return { unpack, canReach, gone, end };
};
