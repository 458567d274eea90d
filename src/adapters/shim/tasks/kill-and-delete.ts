/**
 * The effects that end tasks: KillTask, DeleteTask. Each may be a repetition of one that a crash cut short, so each
 * first finds out how far things are. A task is never deleted before its exit is durable (C3).
 */
import { rmdir } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import { messageOf } from '../../../domain/model/errors.ts';
import { SIGKILL } from '../../../domain/values/signals.ts';
import { removeCgroup } from '../../../platform/linux/cgroup-removal.ts';
import { isThere } from '../../../platform/linux/exists.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { isClosed, isNotFound } from '../../../platform/ttrpc/status.ts';
import type { StateResponse } from '../../../wire/runtime/task/v3/shim.ts';
import { Status } from '../../../wire/types/task/task.ts';
import { readCgroupsPath } from '../bundle-spec.ts';
import type { ShimContext } from '../context.ts';
import { endDumpOf } from '../ending-dumps.ts';
import { attempting, isUnreachable } from '../failures.ts';
import { keepingRootfs } from './kept-rootfs.ts';
import { createLiveTask, type LiveTask, type LiveTaskOptions } from './live-task.ts';
import { unmountMapped } from './mapped-mounts.ts';
import { checkBundlePath } from '../paths.ts';
import { signalInit, signalUnknown } from './signal-init.ts';
import { beginningOf } from './start-init.ts';
import { type TaskClient, WHOLE_TASK } from '../task-client.ts';

/**
 * What the shim says of a task, which runs where the shim was not asked to start it too; null when it has none of that id. One
 * without a process was to be restored, and never was as far as the shim knows.
 */
export const stateOf = async (
  context: Pick<ShimContext, 'paths'>,
  client: TaskClient,
  containerId: string,
  timeoutMs: number,
): Promise<StateResponse | null> => {
  try {
    const state = await client.state({ id: containerId, execId: WHOLE_TASK }, timeoutMs);
    const { status, bundle, pid } = state;
    if (status !== Status.CREATED || pid === 0 || (await beginningOf(context, containerId, bundle)) !== 'begun')
      return state;
    return { ...state, status: Status.RUNNING };
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
};

const ENDED_TRIES = 20;
const ENDED_WAIT_MS = 100;

/** Makes the record of a task and keeps it until DeleteTask. */
export const addTask = (context: ShimContext, podSandboxId: string, containerId: string): LiveTask => {
  context.tasks.get(containerId)?.discard();
  const wait: LiveTaskOptions['wait'] = (client) => client.wait({ id: containerId, execId: WHOLE_TASK }, null);
  const task = createLiveTask({ ...context, podSandboxId, containerId, wait });
  context.tasks.set(containerId, task);
  return task;
};

export const forgetTask = (context: ShimContext, containerId: string): void => {
  context.tasks.get(containerId)?.discard();
  context.tasks.delete(containerId);
  context.created.delete(containerId);
};

/** The memory cgroup of a task: of its process while that lives, else where its spec says. */
export const findCgroup = async (
  { counters }: ShimContext,
  pid: number,
  bundlePath: string,
): Promise<string | null> => {
  const found = await counters.cgroupOfProcess(pid);
  if (found !== null) return found;
  const cgroupsPath = await readCgroupsPath(bundlePath);
  return cgroupsPath === null ? null : counters.cgroupOfSpec(cgroupsPath);
};

const deleteAtShim = async ({ timings }: ShimContext, client: TaskClient, id: string): Promise<void> => {
  try {
    await client.delete({ id, execId: WHOLE_TASK }, timings.endMs);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
};

/** Nobody tells when a process has ended that the shim does not know of; until then the OCI runtime refuses. */
const deleteOnceEnded = async (context: ShimContext, client: TaskClient, containerId: string): Promise<void> => {
  for (let left = ENDED_TRIES; ; left -= 1) {
    try {
      return await deleteAtShim(context, client, containerId);
    } catch (error) {
      if (left <= 1 || isUnreachable(error)) throw error;
    }
    await sleep(ENDED_WAIT_MS);
  }
};

/**
 * Ends and deletes a task over ttrpc. Resolves with whether the shim knew it. An exit that was not yet reported is
 * fetched and durable before Delete destroys its last source.
 */
export const removeTask = async (
  context: ShimContext,
  client: TaskClient,
  containerId: string,
  adopt: (pid: number) => LiveTask,
): Promise<boolean> => {
  const { timings, tasks } = context;
  const call = { id: containerId, execId: WHOLE_TASK };
  if (tasks.get(containerId)?.isExitDurable() === true) {
    try {
      await deleteAtShim(context, client, containerId);
      return true;
    } catch (error) {
      // It did not exit, whatever an event said of it: then it is ended as any other.
      if (isUnreachable(error)) throw error;
    }
  }
  const state = await stateOf(context, client, containerId, timings.callMs);
  if (state === null) return false;
  if (state.status === Status.CREATED && state.pid === 0) {
    // What was to be restored and was not: there is no process that could exit, but for one of a restore that was cut short.
    await client.kill({ ...call, signal: SIGKILL, all: true }, timings.endMs).catch(() => undefined);
    await deleteOnceEnded(context, client, containerId);
    return true;
  }
  if (state.status !== Status.STOPPED) {
    await client.kill({ ...call, signal: SIGKILL, all: true }, timings.endMs).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }
  const { exitStatus, exitedAt } = await client.wait(call, timings.reapMs);
  await (tasks.get(containerId) ?? adopt(state.pid)).reportExit({ pid: 0, exitStatus, exitedAt });
  await deleteAtShim(context, client, containerId);
  return true;
};

/** A call whose connection broke is made again on a new one: none of these does harm when done twice. */
export const onceMoreWhenClosed = async <T>(work: () => Promise<T>): Promise<T> => {
  try {
    return await work();
  } catch (error) {
    if (!isClosed(error)) throw error;
    return work();
  }
};

export const killTask = async (
  context: ShimContext,
  effect: EffectOf<'KillTask'>,
): Promise<EffectResults['KillTask']> => {
  const { shims, tasks, timings } = context;
  const { podSandboxId, containerId, signal, all } = effect;
  const send = async (): Promise<EffectResults['KillTask']> => {
    const client = await shims.clientOf(podSandboxId);
    try {
      const killByShim = () => client.kill({ id: containerId, execId: WHOLE_TASK, signal, all }, timings.endMs);
      if (!(await signalInit(context, effect, killByShim))) await killByShim();
      return { alreadyGone: false };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      const state = await stateOf(context, client, containerId, timings.callMs);
      const runs = state !== null && state.status !== Status.STOPPED;
      return { alreadyGone: !(runs && (await signalUnknown(context, effect, state.pid))) };
    }
  };
  // An exit that is recorded needs no signal, and no run of the OCI runtime to find that out.
  if (tasks.get(containerId)?.isExitDurable() === true) return { alreadyGone: true };
  if (signal === SIGKILL) endDumpOf(context, containerId);
  return attempting(`send signal ${signal} to the task of container ${containerId}`, () => onceMoreWhenClosed(send));
};

/** True when it was done over ttrpc; false when there is no shim that answers, or it knows nothing of the task. */
const deleteThroughShim = async (context: ShimContext, effect: EffectOf<'DeleteTask'>): Promise<boolean> => {
  const { podSandboxId, containerId, bundlePath } = effect;
  const { shims, log } = context;
  const adopt = (pid: number): LiveTask => {
    const task = addTask(context, podSandboxId, containerId);
    task.launched(pid, findCgroup(context, pid, bundlePath));
    task.release();
    return task;
  };
  if (shims.isGone(podSandboxId)) return false;
  const whenItSpeaks = async (): Promise<void> => {
    const client = await shims.clientOf(podSandboxId);
    await endGivenUp(context, client, effect, client.state({ id: containerId, execId: WHOLE_TASK }, null));
  };
  const remove = async (): Promise<boolean> =>
    removeTask(context, await shims.clientOf(podSandboxId), containerId, adopt);
  try {
    return await onceMoreWhenClosed(remove);
  } catch (error) {
    if (!isUnreachable(error)) throw error;
    log.warn({ containerId, error: messageOf(error) }, 'a shim does not delete its task; its binary has to');
    whenItSpeaks().catch(() => undefined);
    return false;
  }
};

/**
 * A shim whose caller goes away in the middle of Create, or of a restore, kills the OCI runtime, which then leaves the cgroup without a
 * state that `delete` could find it by. One that does not bear the task's id was chosen by an NRI plugin: others may be in
 * it, and it is left alone.
 */
export const removeLeftCgroup = async (
  { timings, files }: Pick<ShimContext, 'timings' | 'files'>,
  bundlePath: string,
): Promise<void> => {
  const cgroupsPath = await readCgroupsPath(bundlePath, files.callsAt(bundlePath));
  if (cgroupsPath?.includes(basename(bundlePath)) === true) await removeCgroup(cgroupsPath, timings.reapMs);
};

/**
 * A shim that was silent for long has `spoken`: it makes only now what was given up meanwhile, or still has what its binary
 * deleted. Nobody else ends that, and a shim that is ended leaves its tasks. Never rejects.
 */
export const endGivenUp = async (
  context: ShimContext,
  client: TaskClient,
  { containerId, handler, bundlePath }: Pick<EffectOf<'DeleteTask'>, 'containerId' | 'handler' | 'bundlePath'>,
  spoken: Promise<unknown>,
): Promise<void> => {
  const { tasks, binaries, timings, log } = context;
  const call = { id: containerId, execId: WHOLE_TASK };
  try {
    const isThereYet = await spoken.then(
      () => true,
      (error: unknown) => {
        if (isClosed(error) || isNotFound(error)) throw error;
        return false;
      },
    );
    // Somebody has made it anew, or is about to delete it.
    if (tasks.has(containerId)) return;
    if (isThereYet) {
      await client.kill({ ...call, signal: SIGKILL, all: true }, timings.endMs).catch(() => undefined);
      await client.wait(call, timings.reapMs);
      await deleteAtShim(context, client, containerId);
    } else if (await isThere(bundlePath)) {
      // What the OCI runtime had made when its time was over is known to no shim.
      await binaries.delete(handler, containerId, bundlePath);
      await removeLeftCgroup(context, bundlePath);
    }
    log.info({ containerId }, 'a task that was given up while its shim was silent is ended');
  } catch (error) {
    if (isNotFound(error) || isClosed(error)) return;
    log.warn(
      { containerId, error: messageOf(error) },
      'a task that was given up while its shim was silent is not ended',
    );
  }
};

/**
 * Where OCI runtimes mount the root file system for CRIU while they restore, which one that is ended meanwhile leaves; it would remove
 * the container's files with its own. Such a one leaves the cgroup, too. null: nothing was left.
 */
const unmountCriuRoot = async (
  { paths, mounts }: Pick<ShimContext, 'paths' | 'mounts'>,
  containerId: string,
): Promise<string | null> => {
  const path = join(paths.runtimeState(containerId), 'criu-root');
  if (!(await isThere(path))) return null;
  await mounts.unmount(path);
  return path;
};

const removeEmpty = async (dirs: readonly string[]): Promise<void> => {
  for (const dir of dirs)
    await rmdir(dir).catch((error: unknown) => {
      if (errorCodeOf(error) !== 'ENOENT') throw error;
    });
};

export const deleteTask = async (
  context: ShimContext,
  effect: EffectOf<'DeleteTask'>,
): Promise<EffectResults['DeleteTask']> => {
  const { containerId, handler, bundlePath } = effect;
  const { binaries, io, timings } = context;
  checkBundlePath(containerId, bundlePath);
  return attempting(`delete the task of container ${containerId}`, async () => {
    // Its end is held back for a start that never came: nobody waits for it.
    if (context.created.has(containerId)) context.tasks.get(containerId)?.discard();
    const criuRoot = await unmountCriuRoot(context, containerId);
    if (!(await deleteThroughShim(context, effect))) {
      await keepingRootfs(context, bundlePath, () => binaries.delete(handler, containerId, bundlePath));
      await removeLeftCgroup(context, bundlePath);
    }
    if (criuRoot !== null) {
      await removeLeftCgroup(context, bundlePath);
      await removeEmpty([criuRoot, dirname(criuRoot)]);
    }
    forgetTask(context, containerId);
    // Left there by a daemon that ended before the shim had heard of the task, or whose shim ended too.
    await unmountMapped(context, bundlePath);
    await io.release(containerId, timings.logCloseMs);
    return {};
  });
};
