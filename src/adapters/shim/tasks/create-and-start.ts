/**
 * The effects CreateTask and StartTask, which begins when that is done. Each may be a repetition of one that a crash cut
 * short, so each first finds out how far things are; one that fails leaves nothing of the task behind.
 */
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { CHECKPOINT_FILES } from '../../../domain/model/checkpoint-files.ts';
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import { FailureError, GrpcCode, messageOf } from '../../../domain/model/errors.ts';
import { takesRuncOptions } from '../../../domain/model/runtime-handler.ts';
import type { LaunchedTask } from '../../../domain/model/tasks.ts';
import { isAlive, readProcessStat } from '../../../platform/linux/processes.ts';
import { within } from '../../../platform/rpc/timeout.ts';
import { isTimeout, TtrpcStatusError } from '../../../platform/ttrpc/status.ts';
import { Status } from '../../../wire/types/task/task.ts';
import type { ShimContext } from '../context.ts';
import { asTaskFailure } from '../failures.ts';
import { checkBundlePath } from '../paths.ts';
import { type TaskClient, WHOLE_TASK } from '../task-client.ts';
import type { TaskStreams } from './container-io.ts';
import { addTask, endGivenUp, findCgroup, forgetTask, removeTask, stateOf } from './kill-and-delete.ts';
import type { CreatedTask, LiveTask } from './live-task.ts';
import { whileMapped } from './mapped-mounts.ts';
import { isSignalledHere } from './signal-init.ts';
import { markWaiting, startInit, startsHere } from './start-init.ts';
import { taskOptions } from './task-options.ts';

type CreateTask = EffectOf<'CreateTask'>;
type StartTask = EffectOf<'StartTask'>;

/** One that is gone has no start; one that could not be looked at must not be taken for it, or a restart finds its task dead. */
const processOf = async (pid: number): Promise<LaunchedTask> => {
  const stat = await readProcessStat(pid);
  return { pid, startTicks: stat?.startTicks ?? '0' };
};

const no = Promise.resolve(false);

const knownPid = (pid: number, { containerId }: CreateTask | StartTask): number => {
  if (pid > 0) return pid;
  throw new FailureError('ShimFailed', `The shim created a task of container ${containerId} but told no process.`);
};

const createAtShim = async (
  context: ShimContext,
  client: TaskClient,
  effect: CreateTask,
  streams: TaskStreams,
): Promise<number> => {
  const { launchMs } = context.timings;
  const creating = client.create(
    {
      ...streams,
      id: effect.containerId,
      bundle: effect.bundlePath,
      rootfs: effect.rootfs.map(({ type, source, target, options }) => ({
        type,
        source,
        target: target ?? '',
        options: [...options],
      })),
      terminal: effect.terminal,
      checkpoint: effect.checkpointDir === undefined ? '' : join(effect.checkpointDir, CHECKPOINT_FILES.images),
      parentCheckpoint: '',
      options: taskOptions(effect, context.paths.runtimeRoot),
    },
    launchMs,
  );
  const late = (): Error =>
    new TtrpcStatusError(GrpcCode.DEADLINE_EXCEEDED, `its shim did not answer Create within ${launchMs} ms`);
  const { pid } = await within(creating, launchMs, late).catch((error: unknown) => {
    if (isTimeout(error)) void endGivenUp(context, client, effect, creating);
    throw error;
  });
  // What is restored has no process before it is started.
  return effect.checkpointDir === undefined ? knownPid(pid, effect) : pid;
};

/** Waiting for the shim to be done with others is not its own time, and has a bound of its own. */
const inTurn = async <T>(
  { shims, timings }: ShimContext,
  { podSandboxId, containerId }: CreateTask,
  work: () => Promise<T>,
): Promise<T> => {
  const turn = shims.get(podSandboxId)?.createTurn;
  if (turn === undefined) return work();
  const waiting = new AbortController();
  const message = `Could not create the task of container ${containerId}: its shim created others for ${timings.launchMs} ms.`;
  const timer = setTimeout(() => waiting.abort(new FailureError('TimedOut', message)), timings.launchMs);
  try {
    return await turn(waiting.signal, () => {
      clearTimeout(timer);
      return work();
    });
  } finally {
    clearTimeout(timer);
  }
};

/**
 * runc's shim opens the FIFOs when the OCI runtime has made the process, which waits, so they may come to be read meanwhile.
 * Another shim may open them before, and fail where nobody reads.
 */
const opensStreamsLast = ({ handler }: CreateTask): boolean =>
  takesRuncOptions(handler) && handler.sandboxer !== 'shim';

const checkTarget = async ({ target }: CreateTask): Promise<void> => {
  if (target === undefined || (target !== null && (await isAlive(target)))) return;
  throw new FailureError(
    'WrongState',
    'The container that namespace_options.target_id names does not run any more: start it first.',
  );
};

/** From here on its exit is waited for, and held back until somebody knows of it. */
const launched = (context: ShimContext, live: LiveTask, pid: number, bundlePath: string): Promise<LaunchedTask> => {
  live.launched(pid, findCgroup(context, pid, bundlePath));
  live.watch();
  return processOf(pid);
};

const undo = async (context: ShimContext, client: TaskClient, live: LiveTask): Promise<void> => {
  const { containerId } = live;
  live.discard();
  await removeTask(context, client, containerId, () => live).catch((error: unknown) => {
    context.log.warn({ containerId, error: messageOf(error) }, 'a task that failed to start is not deleted yet');
  });
  forgetTask(context, containerId);
  await context.io.release(containerId, 0);
};

const create = async (context: ShimContext, effect: CreateTask): Promise<CreatedTask> => {
  const { podSandboxId, containerId, bundlePath, checkpointDir, mapped } = effect;
  const { shims, timings, io, joining } = context;
  checkBundlePath(containerId, bundlePath);
  const client = await shims.clientOf(podSandboxId);
  const live = addTask(context, podSandboxId, containerId);
  const making = io.make(effect);
  const reading = making.then((streams) => io.read(effect, streams));
  // It may fail before anybody waits for it.
  reading.catch(() => undefined);
  try {
    const streams = await making;
    // A creation that a crash cut short may have made, even started, this task already.
    const isNew = shims.get(podSandboxId)?.lacks(containerId) === true;
    const known = isNew ? null : await stateOf(context, client, containerId, timings.callMs);
    const isStarted = known !== null && known.status !== Status.CREATED;
    if (!opensStreamsLast(effect)) await reading;
    const make = async (): Promise<number> => {
      await checkTarget(effect);
      const made = await createAtShim(context, client, effect, streams);
      // Alive now, it was the one whose namespace was joined.
      await checkTarget(effect);
      return made;
    };
    if (checkpointDir !== undefined && !isStarted) {
      if (known === null) await inTurn(context, effect, make);
      await reading;
      return { live, process: null, isStarted, startsHere: no };
    }
    // Found out while the shim makes it.
    const alone = known === null ? startsHere(context, effect) : no;
    const makeMapped = (): Promise<number> => joining.during(() => whileMapped(context, mapped, make));
    const pid = known?.pid ?? (await inTurn(context, effect, makeMapped));
    await Promise.all([reading, isStarted ? undefined : markWaiting(context, effect)]);
    return { live, process: await launched(context, live, pid, bundlePath), isStarted, startsHere: alone };
  } catch (error) {
    await reading.catch(() => undefined);
    await undo(context, client, live);
    throw asTaskFailure(error, `create the task of container ${containerId}`, effect.handler);
  }
};

export const createTask = async (context: ShimContext, effect: CreateTask): Promise<EffectResults['CreateTask']> => {
  const created = await create(context, effect);
  context.created.set(effect.containerId, created);
  return { task: created.process ?? { pid: 0, startTicks: '0' } };
};

/** Holds the memory of the container, which is in use now. What can't be removed here goes with the container. */
const dropCheckpoint = async ({ log }: ShimContext, { containerId, restored }: StartTask): Promise<void> => {
  if (restored === undefined) return;
  await rm(restored.checkpointDir, { recursive: true, force: true }).catch((error: unknown) => {
    log.warn({ containerId, error: messageOf(error) }, 'a checkpoint that was restored is not removed yet');
  });
};

export const startTask = async (context: ShimContext, effect: StartTask): Promise<EffectResults['StartTask']> => {
  const { podSandboxId, containerId, bundlePath, restored } = effect;
  const { shims, timings } = context;
  const created = context.created.get(containerId);
  if (created === undefined)
    throw new FailureError('RuntimeFailed', `There is no task of container ${containerId} that could be started.`);
  const { live, process: known, isStarted, startsHere: alone } = created;
  const client = await shims.clientOf(podSandboxId);
  const start = (): Promise<{ readonly pid: number }> =>
    client.start({ id: containerId, execId: WHOLE_TASK }, timings.launchMs);
  const restore = async (): Promise<LaunchedTask> => {
    const { pid } = await whileMapped(context, restored?.mapped, start);
    return launched(context, live, knownPid(pid, effect), bundlePath);
  };
  try {
    const task = known ?? (await restore());
    const isLeftToStart = !isStarted && known !== null;
    if (isLeftToStart && !((await alone) && (await startInit(context, effect, task)))) await start();
    if (isSignalledHere(effect.handler)) live.signalHere(task);
    await dropCheckpoint(context, effect);
    context.created.delete(containerId);
    // The engine hears of the task first and of its exit after.
    setImmediate(live.release);
    return { task };
  } catch (error) {
    await undo(context, client, live);
    throw asTaskFailure(error, `start the task of container ${containerId}`, effect.handler);
  }
};
