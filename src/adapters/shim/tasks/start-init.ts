/**
 * Starts the main process of a task without its shim, which would have the OCI runtime started to do no more than this: 7 ms
 * of processor time for runc. Only where it is no more: see `startsHere`; whoever is told false asks the shim.
 *
 *   runc init                               here                                       a daemon killed from here on leaves
 *   opens exec.fifo, waits for a reader     marks it once the task is made             one that waits
 *                                       <── opens it to read, if it is as runc's is    one whose write fails: it ends
 *   writes a byte ────────────────────────> reads it                                   one that has begun, and the FIFO
 *   runs startContainer hooks, closes it,
 *   execve ───────────────────────────────> reads its end, and takes the file away     one that has begun for runc too
 *   ends without a byte ──────────────────> the shim is asked, which says so
 *
 *   crun's has it open already, waits <──── writes a byte                              one that has begun, and the FIFO
 *                                           takes the file away                        one that has begun for crun too
 *
 * The mark are the FIFO's times, which the kernel sets when a byte is written or read, whoever lives to tell: no order of
 * these steps could say of one that ended with 1, or 255, whether that was its program's word or the failed write (`beginningOf`).
 * The shim goes on calling such a task created, until it ends.
 */
import { type Stats, writeSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { EffectOf } from '../../../domain/model/effects.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { type RuntimeHandler, takesRuncOptions } from '../../../domain/model/runtime-handler.ts';
import type { LaunchedTask } from '../../../domain/model/tasks.ts';
import { isThere } from '../../../platform/linux/exists.ts';
import { type FileCalls, pooledCalls } from '../../../platform/linux/file-calls.ts';
import { type HeldProcess, holdProcess, isAlive } from '../../../platform/linux/processes.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { closeDescriptor } from '../../../platform/linux/syscalls.ts';
import { readAway, watchReadable } from '../../../platform/linux/watch-readable.ts';
import { within } from '../../../platform/rpc/timeout.ts';
import { hasPoststartHooks } from '../bundle-spec.ts';
import type { ShimContext } from '../context.ts';
import { openFifoReader, openListenedFifo } from '../fifos.ts';
import { bundleOf } from '../paths.ts';
import { watchesMemoryFromCreation } from '../../../domain/model/shim-version.ts';

const FIFO = 'exec.fifo';

/** Where an OCI runtime's process waits for its start: at a FIFO, which each makes and uses in its own way. */
interface Waiting {
  /** Of the FIFO, whatever the umask. */
  readonly permissions: number;
  /** What the runtime keeps of a container, beside the FIFO. */
  readonly stateFile: string;
  /** Who speaks: the process, when somebody reads, or who starts it. */
  readonly speaks: 'process' | 'starter';
}

/** By the name of their program: a wrapper of another name may do more at a start. */
const WAITING: ReadonlyMap<string, Waiting> = new Map([
  ['runc', { permissions: 0o622, stateFile: 'state.json', speaks: 'process' }],
  ['crun', { permissions: 0o600, stateFile: 'status', speaks: 'starter' }],
]);
const PERMISSIONS = 0o777;
/** The sticky bit, which means nothing to anybody at a FIFO: its times were set to MARKED_AT, before any start. */
const MARK = 0o1000;
/** When nothing was ever written. */
const MARKED_AT = 0;
const BYTES_MAX = 16;
/** Nobody looks at it. */
const GO = Uint8Array.of(0);
/** Where runc's shim notes which OCI runtime a bundle is for. */
const RUNTIME_FILE = 'runtime';

const waitingOf = (binaryName: string): Waiting | undefined => WAITING.get(basename(binaryName));

/**
 * Whether a start does no more than to let the process go. Else: poststart hooks are to be run (which runc does at the start
 * after 1.5), or the shim is to watch the task's memory from then on.
 */
export const startsHere = async (
  { shims, files }: Pick<ShimContext, 'shims' | 'files'>,
  { handler, podSandboxId, bundlePath }: EffectOf<'CreateTask'>,
): Promise<boolean> => {
  const version = shims.get(podSandboxId)?.version ?? null;
  if (!isPlain(handler) || !watchesMemoryFromCreation(version)) return false;
  // Without a spec that can be read, it is the shim's to say what is wrong.
  return !(await hasPoststartHooks(bundlePath, files.callsAt(bundlePath)).catch(() => true));
};

const isPlain = (handler: RuntimeHandler): boolean =>
  takesRuncOptions(handler) && handler.sandboxer !== 'shim' && waitingOf(handler.binaryName) !== undefined;

const statsOf = async (path: string, { lstat }: FileCalls = pooledCalls): Promise<Stats | null> => {
  try {
    return await lstat(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
};

/** Whether a process waits there. A FIFO that runc's waits at has to be read once it was opened, or it fails to write. */
const isFifoOf = ({ permissions }: Waiting, found: Stats | null): found is Stats =>
  found?.isFIFO() === true && (found.mode & PERMISSIONS) === permissions;

/** Of a task that was just made: from now on its FIFO tells whether its process was let go, whoever does that. */
export const markWaiting = async (
  { paths, files }: Pick<ShimContext, 'paths' | 'files'>,
  { handler, containerId }: EffectOf<'CreateTask'>,
): Promise<void> => {
  const waiting = waitingOf(handler.binaryName);
  const fifo = join(paths.runtimeState(containerId), FIFO);
  const calls = files.callsAt(fifo);
  if (waiting === undefined || !isFifoOf(waiting, await statsOf(fifo, calls))) return;
  await calls.utimes(fifo, MARKED_AT, MARKED_AT);
  await calls.chmod(fifo, MARK | waiting.permissions);
};

/** Writing sets the time of change, reading that of access; a file system that keeps only one of them says it too. */
const wasWritten = ({ mode, atimeMs, mtimeMs }: Stats): boolean =>
  (mode & MARK) !== 0 && (mtimeMs !== MARKED_AT || atimeMs !== MARKED_AT);

/** Resolves once the process has begun, which is true, or has ended without that. Reads no more after it. */
const begins = async (fd: number, init: HeldProcess, timeoutMs: number, late: () => Error): Promise<boolean> => {
  const { promise: begun, resolve, reject } = Promise.withResolvers<boolean>();
  let isLetGo = false;
  let isOver = false;
  const look = (hasEnded: boolean): void => {
    if (isOver) return;
    try {
      let told = readAway(fd, BYTES_MAX);
      if (told === 'bytes') {
        isLetGo = true;
        told = readAway(fd, BYTES_MAX);
      }
      if (told === 'end' || hasEnded) resolve(isLetGo);
    } catch (error) {
      reject(error);
    }
  };
  const unwatch = watchReadable(fd, () => look(false));
  void init.ended.then(() => look(true));
  try {
    return await within(begun, timeoutMs, late);
  } finally {
    isOver = true;
    unwatch();
  }
};

/** What is not there is removed. */
const removeFifo = async (fifo: string, { unlink }: FileCalls): Promise<void> => {
  try {
    await unlink(fifo);
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT') throw error;
  }
};

/** Lets go of a process that waits for a byte. false: nobody reads there. */
const sayGo = async (fifo: string, calls: FileCalls): Promise<boolean> => {
  const fd = await openListenedFifo(fifo);
  if (fd === null) return false;
  try {
    writeSync(fd, GO);
    await removeFifo(fifo, calls);
    return true;
  } finally {
    closeDescriptor(fd);
  }
};

/** Resolves with whether the task's process has begun, or is about to; false: it has not, and nothing was done to it. */
export const startInit = async (
  { paths, timings, files }: Pick<ShimContext, 'paths' | 'timings' | 'files'>,
  { handler, containerId }: Pick<EffectOf<'StartTask'>, 'handler' | 'containerId'>,
  task: LaunchedTask,
): Promise<boolean> => {
  const fifo = join(paths.runtimeState(containerId), FIFO);
  const waiting = waitingOf(handler.binaryName);
  const calls = files.callsAt(fifo);
  if (waiting === undefined || !isFifoOf(waiting, await statsOf(fifo, calls))) return false;
  if (waiting.speaks === 'starter') return (await isAlive(task)) && (await sayGo(fifo, calls));
  const init = await holdProcess(task);
  if (init === null) return false;
  const message = `The process of container ${containerId} did not begin within ${timings.launchMs} ms.`;
  const late = (): Error => new FailureError('TimedOut', message);
  try {
    const fd = await openFifoReader(fifo, calls);
    try {
      if (!(await begins(fd, init, timings.launchMs, late))) return false;
      await removeFifo(fifo, calls);
      return true;
    } finally {
      closeDescriptor(fd);
    }
  } finally {
    init.release();
  }
};

/** Whether a task's process was let go; untold where an OCI runtime has it that keeps no such FIFO. */
export type Beginning = 'begun' | 'notBegun' | 'untold';

/** Of a task that its shim calls created, which may run all the same, or stopped, which may have ended without ever having begun. */
export const beginningOf = async (
  { paths }: Pick<ShimContext, 'paths'>,
  containerId: string,
  toldBundle: string,
): Promise<Beginning> => {
  const bundle = bundleOf(containerId, toldBundle);
  if (bundle === null) return 'untold';
  const waiting = waitingOf(await readFile(join(bundle, RUNTIME_FILE), 'utf8').catch(() => ''));
  if (waiting === undefined) return 'untold';
  const state = paths.runtimeState(containerId);
  if (!(await isThere(join(state, waiting.stateFile)))) return 'untold';
  const found = await statsOf(join(state, FIFO));
  if (found === null) return 'begun';
  if (!isFifoOf(waiting, found)) return 'untold';
  return wasWritten(found) ? 'begun' : 'notBegun';
};

/** What a daemon that was killed may have left to do for a task that runs. */
export const endStart = async (
  { paths, files }: Pick<ShimContext, 'paths' | 'files'>,
  containerId: string,
): Promise<void> => {
  const fifo = join(paths.runtimeState(containerId), FIFO);
  await removeFifo(fifo, files.callsAt(fifo));
};
