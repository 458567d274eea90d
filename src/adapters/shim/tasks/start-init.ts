/**
 * Starts the main process of a task without its shim, which would have the OCI runtime started to do no more than this: 7 ms
 * of processor time. Only where it is no more: see `startsHere`; whoever is told false asks the shim.
 *
 *   runc init                               here
 *   opens exec.fifo, waits for a reader <── opens it to read, if it is there and as runc makes it
 *   writes a byte ────────────────────────> reads it
 *   runs startContainer hooks, closes it,
 *   execve ───────────────────────────────> reads its end, and takes the file away: for runc the task runs from then on
 *   ends without a byte ──────────────────> the shim is asked, which says so
 *
 * The shim goes on calling such a task created: `hasBegun` says which of those run.
 */
import { lstat, readFile, rm } from 'node:fs/promises';
import { basename, join } from 'node:path';
import type { EffectOf } from '../../../domain/model/effects.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { type RuntimeHandler, takesRuncOptions } from '../../../domain/model/runtime-handler.ts';
import type { LaunchedTask } from '../../../domain/model/tasks.ts';
import { isThere } from '../../../platform/linux/exists.ts';
import { type HeldProcess, holdProcess } from '../../../platform/linux/processes.ts';
import { closeDescriptor } from '../../../platform/linux/syscalls.ts';
import { readAway, watchReadable } from '../../../platform/linux/watch-readable.ts';
import { within } from '../../../platform/rpc/timeout.ts';
import { hasPoststartHooks } from '../bundle-spec.ts';
import type { ShimContext } from '../context.ts';
import { openFifoReader } from '../fifos.ts';
import { bundleOf } from '../paths.ts';
import { watchesMemoryFromCreation } from '../../../domain/model/shim-version.ts';

/** crun, for one, waits at a FIFO of that name the other way round; and a wrapper may do more at a start. */
const RUNTIME = 'runc';
const FIFO = 'exec.fifo';
/** As runc makes it whatever the umask; crun's is 0600. */
const FIFO_PERMISSIONS = 0o622;
const PERMISSIONS = 0o777;
const BYTES_MAX = 16;
/** Where runc's shim notes which OCI runtime a bundle is for. */
const RUNTIME_FILE = 'runtime';

const isRunc = (binaryName: string): boolean => basename(binaryName) === RUNTIME;

/**
 * Whether a start does no more than to let the process go. Else: poststart hooks are to be run (which runc does at the start
 * after 1.5), or the shim is to watch the task's memory from then on.
 */
export const startsHere = async (
  { shims }: Pick<ShimContext, 'shims'>,
  { handler, podSandboxId, bundlePath }: EffectOf<'CreateTask'>,
): Promise<boolean> => {
  const version = shims.get(podSandboxId)?.version ?? null;
  if (!isPlain(handler) || !watchesMemoryFromCreation(version)) return false;
  // Without a spec that can be read, it is the shim's to say what is wrong.
  return !(await hasPoststartHooks(bundlePath).catch(() => true));
};

const isPlain = (handler: RuntimeHandler): boolean =>
  takesRuncOptions(handler) && handler.sandboxer !== 'shim' && isRunc(handler.binaryName);

/** Whether runc's init waits there. A FIFO that it waits at has to be read once it was opened, or init fails to write. */
const isInitFifo = async (path: string): Promise<boolean> => {
  const found = await lstat(path).catch(() => null);
  return found?.isFIFO() === true && (found.mode & PERMISSIONS) === FIFO_PERMISSIONS;
};

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

/** Resolves with whether the task's process has begun; false: it has not, and nothing was done to it. */
export const startInit = async (
  { paths, timings }: Pick<ShimContext, 'paths' | 'timings'>,
  containerId: string,
  task: LaunchedTask,
): Promise<boolean> => {
  const fifo = join(paths.runtimeState(containerId), FIFO);
  if (!(await isInitFifo(fifo))) return false;
  const init = await holdProcess(task);
  if (init === null) return false;
  const message = `The process of container ${containerId} did not begin within ${timings.launchMs} ms.`;
  const late = (): Error => new FailureError('TimedOut', message);
  try {
    const fd = await openFifoReader(fifo);
    try {
      if (!(await begins(fd, init, timings.launchMs, late))) return false;
      await rm(fifo, { force: true });
      return true;
    } finally {
      closeDescriptor(fd);
    }
  } finally {
    init.release();
  }
};

/**
 * Of a task that its shim calls created: it runs, or has run, for runc, which has no word of its own for that. So does one
 * that was let go of just before the daemon was killed.
 */
export const hasBegun = async (
  { paths }: Pick<ShimContext, 'paths'>,
  containerId: string,
  toldBundle: string,
): Promise<boolean> => {
  const bundle = bundleOf(containerId, toldBundle);
  if (bundle === null) return false;
  if (!isRunc(await readFile(join(bundle, RUNTIME_FILE), 'utf8').catch(() => ''))) return false;
  const state = paths.runtimeState(containerId);
  return (await isThere(join(state, 'state.json'))) && !(await isThere(join(state, FIFO)));
};
