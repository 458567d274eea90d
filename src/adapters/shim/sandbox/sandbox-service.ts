/**
 * The effects StartSandbox and StopSandbox, and the sandbox's part of ReconnectShim: a pod that its shim holds by its
 * own sandbox service. Such a shim's word is checked before anything rests on it: its process must be younger than the
 * shim, its answers must be about this pod.
 */
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import type { LaunchedTask, ObservedTask } from '../../../domain/model/tasks.ts';
import type { SandboxPlatform } from '../../../domain/model/sandboxer.ts';
import { FailureError, GrpcCode } from '../../../domain/model/errors.ts';
import { configWithoutOrders } from '../../../domain/oci/annotations.ts';
import { readProcessStat } from '../../../platform/linux/processes.ts';
import { hasStatus, isNotFound, isTimeout } from '../../../platform/ttrpc/status.ts';
import { type DeepPartial, PodSandboxConfig } from '../../../wire/cri/api.ts';
import type { SandboxStatusResponse } from '../../../wire/runtime/sandbox/v1/sandbox.ts';
import type { ShimContext } from '../context.ts';
import { attempting, isUnreachable } from '../failures.ts';
import { createLiveTask, type LiveTask, type ToldExit } from '../tasks/live-task.ts';
import type { SandboxClient, TaskClient } from '../task-client.ts';
import { forgetTask, onceMoreWhenClosed } from '../tasks/kill-and-delete.ts';

/** The name that shims know the options by. */
const configType = 'runtime.v1.PodSandboxConfig';
/** What SandboxStatus says of a sandbox that is there; everything else means that it is not. */
const readyState = 'SANDBOX_READY';
const linux = 'linux';

type StartSandbox = EffectOf<'StartSandbox'>;

/** The answer to SandboxStatus; null when the shim has no such sandbox. Throws when it tells of another. */
export const statusOfSandbox = async (
  { sandbox }: TaskClient,
  sandboxId: string,
  verbose: boolean,
  timeoutMs: number,
): Promise<SandboxStatusResponse | null> => {
  try {
    const status = await sandbox.status({ sandboxId, verbose }, timeoutMs);
    if (status.sandboxId === sandboxId) return status;
  } catch (error) {
    if (isNotFound(error)) return null;
    throw error;
  }
  throw new FailureError('ShimFailed', `The shim of pod sandbox ${sandboxId} answers for another sandbox.`);
};

const unknownStatus = 255;

/** A sandbox that its shim knows of no more has ended, and how is lost: whoever waits would wait for ever. */
const endOf = async ({ sandbox }: TaskClient, sandboxId: string): Promise<Omit<ToldExit, 'pid'>> => {
  try {
    return await sandbox.wait({ sandboxId }, null);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return { exitStatus: unknownStatus, exitedAt: undefined };
  }
};

/** Keeps a Wait pending at the shim: the sandbox's end is told as a task's exit is, under the pod's id. */
const watchSandbox = (context: ShimContext, podSandboxId: string, pid: number): LiveTask => {
  context.tasks.get(podSandboxId)?.discard();
  const task = createLiveTask({
    ...context,
    podSandboxId,
    containerId: podSandboxId,
    wait: (client) => endOf(client, podSandboxId),
  });
  context.tasks.set(podSandboxId, task);
  task.launched(pid, Promise.resolve(null));
  task.watch();
  // The engine hears of the sandbox first and of its exit after.
  setImmediate(task.release);
  return task;
};

/** Containers join this process's namespaces, so it must not be one of the node's own. */
const checkedProcess = async (pid: number, { podSandboxId, shim }: StartSandbox): Promise<LaunchedTask> => {
  if (pid === 0) return { pid, startTicks: '0' };
  const stat = await readProcessStat(pid);
  if (stat !== null && pid !== process.pid && BigInt(stat.startTicks) >= BigInt(shim.startTicks))
    return { pid, startTicks: stat.startTicks };
  throw new FailureError(
    'ShimFailed',
    `The shim says that pod sandbox ${podSandboxId} is process ${pid}, which ${stat === null ? 'does not run' : 'was there before the pod'}.`,
  );
};

/** Containers are told to be Linux's, so a sandbox that runs something else can't have them. */
const platformOf = async (
  { timings }: ShimContext,
  sandbox: SandboxClient,
  sandboxId: string,
): Promise<SandboxPlatform | undefined> => {
  try {
    const { platform } = await sandbox.platform({ sandboxId }, timings.callMs);
    if (platform === undefined || platform.os === '') return undefined;
    const { os, architecture, variant } = platform;
    if (os === linux) return { os, architecture, ...(variant === '' ? {} : { variant }) };
    const message = `The shim of pod sandbox ${sandboxId} runs containers of ${JSON.stringify(os.slice(0, 64))}, and scribe's are of ${linux}.`;
    throw new FailureError('ShimFailed', message);
  } catch (error) {
    if (hasStatus(error, GrpcCode.UNIMPLEMENTED)) return undefined;
    throw error;
  }
};

/** Creates the sandbox, or finds the one of an earlier try. Resolves with the process of one that was started already. */
const createSandbox = async (
  { timings }: ShimContext,
  client: TaskClient,
  effect: StartSandbox,
): Promise<number | null> => {
  const { podSandboxId: sandboxId, bundlePath, rootfs, netnsPath } = effect;
  const config = configWithoutOrders(effect.config);
  // The same fields under the same names; fromPartial changes nothing of what it is given.
  const message = PodSandboxConfig.fromPartial(config as DeepPartial<PodSandboxConfig>);
  const options = Buffer.from(PodSandboxConfig.encode(message).finish());
  try {
    await client.sandbox.create(
      {
        sandboxId,
        bundlePath,
        rootfs: rootfs.map((mount) => ({ ...mount, target: mount.target ?? '', options: [...mount.options] })),
        options: { typeUrl: configType, value: options },
        netnsPath: netnsPath ?? '',
        annotations: { ...config.annotations },
      },
      timings.launchMs,
    );
    return null;
  } catch (error) {
    if (hasStatus(error, GrpcCode.UNIMPLEMENTED)) {
      const message =
        'The shim has no sandbox service (containerd.runtime.sandbox.v1): set sandboxer of its runtime handler to "pause" or "none".';
      throw new FailureError('HostLacks', message, { cause: error });
    }
    if (!hasStatus(error, GrpcCode.ALREADY_EXISTS)) throw error;
  }
  const status = await statusOfSandbox(client, sandboxId, false, timings.callMs);
  return status?.state === readyState ? status.pid : null;
};

export const startSandbox = (context: ShimContext, effect: StartSandbox): Promise<EffectResults['StartSandbox']> =>
  attempting(`start pod sandbox ${effect.podSandboxId} by its shim`, async () => {
    const { podSandboxId } = effect;
    const { shims, timings } = context;
    const client = await shims.clientOf(podSandboxId);
    const { sandbox } = client;
    const known = await createSandbox(context, client, effect);
    const pid = known ?? (await sandbox.start({ sandboxId: podSandboxId }, timings.launchMs)).pid;
    const task = await checkedProcess(pid, effect);
    const platform = await platformOf(context, sandbox, podSandboxId);
    watchSandbox(context, podSandboxId, pid);
    return { task, ...(platform === undefined ? {} : { platform }) };
  });

/** What a shim that did not answer StopSandbox in time does otherwise, for who reads the history. */
const explained = async ({ shims, timings }: ShimContext, sandboxId: string, cause: unknown): Promise<FailureError> => {
  const ping = async (): Promise<void> => {
    const { sandbox } = await shims.clientOf(sandboxId);
    await sandbox.ping({ sandboxId }, timings.detailsMs);
  };
  const answers = await ping().then(
    () => true,
    (error: unknown) => !isUnreachable(error),
  );
  const message = `Pod sandbox ${sandboxId} was not stopped by its shim in time, which ${answers ? 'answers PingSandbox' : 'does not answer PingSandbox either'}.`;
  return new FailureError('TimedOut', message, { cause });
};

const msPerSecond = 1_000;

export const stopSandbox = (
  context: ShimContext,
  effect: EffectOf<'StopSandbox'>,
): Promise<EffectResults['StopSandbox']> =>
  attempting(`stop pod sandbox ${effect.podSandboxId} by its shim`, async () => {
    const { podSandboxId: sandboxId, timeoutSeconds } = effect;
    const { shims, timings, tasks } = context;
    if (shims.isGone(sandboxId)) {
      forgetTask(context, sandboxId);
      return {};
    }
    const timeoutMs = timeoutSeconds * msPerSecond + timings.detailsMs;
    try {
      await onceMoreWhenClosed(async () => {
        const { sandbox } = await shims.clientOf(sandboxId);
        await sandbox.stop({ sandboxId, timeoutSecs: timeoutSeconds }, timeoutMs);
        const { exitStatus, exitedAt } = await sandbox.wait({ sandboxId }, timings.reapMs);
        // C3: the exit is durable before its shim goes.
        await tasks.get(sandboxId)?.reportExit({ pid: 0, exitStatus, exitedAt });
      });
    } catch (error) {
      if (!isNotFound(error)) throw isTimeout(error) ? await explained(context, sandboxId, error) : error;
    } finally {
      forgetTask(context, sandboxId);
    }
    return {};
  });

/** The sandbox as its shim sees it after a restart, and its end from now on. */
export const observeSandbox = async (
  context: ShimContext,
  client: TaskClient,
  podSandboxId: string,
  pid: number,
  budget: () => number,
): Promise<ObservedTask> => {
  const seen = { containerId: podSandboxId, pid };
  const status = await statusOfSandbox(client, podSandboxId, false, budget());
  if (status === null) return { ...seen, status: 'absent' };
  const known = context.tasks.get(podSandboxId);
  if (status.state === readyState) {
    if (known === undefined) watchSandbox(context, podSandboxId, pid);
    return { ...seen, status: 'running' };
  }
  const { exitStatus, exitedAt } = await client.sandbox.wait({ sandboxId: podSandboxId }, budget());
  const exit = await (known ?? watchSandbox(context, podSandboxId, pid)).exitOf({ pid, exitStatus, exitedAt });
  return { ...seen, status: 'stopped', exit };
};
