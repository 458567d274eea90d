/**
 * The effect ReconnectShim: finds the shim of before a restart again, or asks the one that is connected, for each task
 * of its pod. Within one budget of time for all, so that a mute shim keeps nobody waiting for long.
 */
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import type { ObservedTask, ShimAddress } from '../../../domain/model/tasks.ts';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { holdProcess, readProcessStat } from '../../../platform/linux/processes.ts';
import type { StateResponse } from '../../../wire/runtime/task/v3/shim.ts';
import { Status } from '../../../wire/types/task/task.ts';
import type { ShimContext } from '../context.ts';
import { attempting } from '../failures.ts';
import { bundleOf } from '../paths.ts';
import type { LiveTask } from '../tasks/live-task.ts';
import { unmountMapped } from '../tasks/mapped-mounts.ts';
import { type LogDrain, openLogDrain } from './log-drain.ts';
import { makeShimDir, originOf } from './start-and-stop.ts';
import { createLiveShim, dialShim, isRefused, type LiveShim } from './live-shim.ts';
import { type TaskClient, WHOLE_TASK } from '../task-client.ts';
import { observeSandbox } from '../sandbox/sandbox-service.ts';
import { addTask, findCgroup, stateOf } from '../tasks/kill-and-delete.ts';
import { beginningOf, endStart } from '../tasks/start-init.ts';

type ReconnectShim = EffectOf<'ReconnectShim'>;

/** How much of the budget is left, in milliseconds, at least 1. */
type Budget = () => number;

const budgetOf = (totalMs: number): Budget => {
  const giveUpAt = performance.now() + totalMs;
  return () => Math.max(1, Math.ceil(giveUpAt - performance.now()));
};

const noDrain: LogDrain = { close: () => undefined };

/** Exactly this shim: as it is known already, or held and called anew; null when it is gone. */
const liveShimOf = async (context: ShimContext, effect: ReconnectShim, budget: Budget): Promise<LiveShim | null> => {
  const { shims } = context;
  const { podSandboxId, shim, shared } = effect;
  const known = shims.get(podSandboxId);
  if (known !== undefined && isSame(known.shim, shim)) return known.isGone() ? null : known;
  const openAgain = (): Promise<LiveShim | null> => open(context, effect, budget);
  const joined = shared === undefined ? null : await shims.share(shared.id, openAgain);
  // Another pod's under that id may have been started after this one's had ended, or the other way round.
  const live = joined !== null && isSame(joined.shim, shim) ? joined : await openAgain();
  if (live !== null) shims.add(podSandboxId, live);
  return live;
};

const isSame = (one: ShimAddress, other: ShimAddress): boolean =>
  one.pid === other.pid && one.startTicks === other.startTicks;

const openLogAgain = async (dir: string, log: ShimContext['log']): Promise<LogDrain> => {
  await makeShimDir(dir);
  return openLogDrain(dir, log);
};

/** null when it is gone. */
const open = async (context: ShimContext, effect: ReconnectShim, budget: Budget): Promise<LiveShim | null> => {
  const { timings, log } = context;
  const { shim } = effect;
  const { id, dir } = originOf(effect);
  const process = await holdProcess(shim);
  if (process === null) return null;
  // First of all: a shim whose log nobody reads may hang in writing it. Somebody may have emptied the state directory, and without
  // its own the shim can have nothing done: the OCI runtime's log goes there.
  const logDrain = await openLogAgain(dir, log.child({ shimId: id })).catch((error: unknown) => {
    log.warn({ shimId: id, error: messageOf(error) }, 'the log of a shim cannot be read again');
    return noDrain;
  });
  try {
    const client = await dialShim(shim, budget());
    return createLiveShim({ id, shim, version: null, process, logDrain, client, connectMs: timings.connectMs });
  } catch (error) {
    logDrain.close();
    process.release();
    if (isRefused(error)) return null;
    throw error;
  }
};

/** What a task's status means to the engine; a value that is in no version of the API is told by the process itself. */
const statusOf = async ({ status, pid }: StateResponse): Promise<'created' | 'running' | 'stopped'> => {
  switch (status) {
    case Status.CREATED:
      return 'created';
    case Status.RUNNING:
    case Status.PAUSED:
    case Status.PAUSING:
      return 'running';
    case Status.STOPPED:
      return 'stopped';
    default:
      return (await readProcessStat(pid)) === null ? 'stopped' : 'running';
  }
};

/** Makes the record of a task that an earlier daemon has started, unless this one has it already. */
const takeUp = (context: ShimContext, podSandboxId: string, containerId: string, state: StateResponse): LiveTask => {
  const known = context.tasks.get(containerId);
  if (known?.pid() === state.pid) return known;
  const task = addTask(context, podSandboxId, containerId);
  const { pid } = state;
  const bundle = bundleOf(containerId, state.bundle);
  task.launched(pid, bundle === null ? context.counters.cgroupOfProcess(pid) : findCgroup(context, pid, bundle));
  // The engine hears what this effect found first, and of exits after.
  setImmediate(task.release);
  return task;
};

const observeTask = async (
  context: ShimContext,
  client: TaskClient,
  podSandboxId: string,
  containerId: string,
  budget: Budget,
): Promise<ObservedTask> => {
  const state = await stateOf(context, client, containerId, budget());
  if (state === null) return { containerId, status: 'absent', pid: 0 };
  const { pid } = state;
  const status = await statusOf(state);
  const isNew = context.tasks.get(containerId)?.pid() !== pid;
  const task = takeUp(context, podSandboxId, containerId, state);
  const bundle = bundleOf(containerId, state.bundle);
  if (isNew && bundle !== null) await unmountMapped(context, bundle);
  if (status === 'stopped') {
    const { exitStatus, exitedAt } = await client.wait({ id: containerId, execId: WHOLE_TASK }, budget());
    const isUnbegun = (await beginningOf(context, containerId, state.bundle)) === 'notBegun';
    const exit = await task.exitOf({ pid, exitStatus, exitedAt });
    return { containerId, status, pid, exit, ...(isUnbegun ? { neverBegan: true } : {}) };
  }
  if (isNew) {
    if (status === 'running') await endStart(context, containerId);
    task.watch();
  }
  // By the pid alone a later daemon could not tell whether this process still runs.
  const stat = await readProcessStat(pid);
  return { containerId, status, pid, ...(stat === null ? {} : { startTicks: stat.startTicks }) };
};

export const reconnectShim = (context: ShimContext, effect: ReconnectShim): Promise<EffectResults['ReconnectShim']> =>
  attempting(`reach the shim of pod sandbox ${effect.podSandboxId} again`, async () => {
    const { podSandboxId, containerIds, sandboxPid } = effect;
    await context.reconnectTurn();
    const budget = budgetOf(context.timings.connectMs);
    const live = await liveShimOf(context, effect, budget);
    if (live === null) return { gone: true, tasks: [] };
    try {
      const client = await live.client();
      const tasks = containerIds.map((containerId) => observeTask(context, client, podSandboxId, containerId, budget));
      if (sandboxPid !== undefined) tasks.push(observeSandbox(context, client, podSandboxId, sandboxPid, budget));
      return { gone: false, tasks: await Promise.all(tasks) };
    } catch (error) {
      const isDeaf = error instanceof FailureError && isRefused(error.cause);
      if (live.isGone() || isDeaf) return { gone: true, tasks: [] };
      throw error;
    }
  });
