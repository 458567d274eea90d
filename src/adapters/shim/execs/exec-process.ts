/**
 * What commands in a running container have in common, whoever gets their output: adding one to its shim, seeing it to
 * its end, waiting for the rest of its output, and tidying up. Knows nothing of who asked.
 */
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import type { JsonObject } from '../../../domain/values/json.ts';
import { SIGKILL } from '../../../domain/values/signals.ts';
import { monotonicMs } from '../../../platform/linux/monotonic.ts';
import { killTree } from '../../../platform/linux/process-tree.ts';
import { readProcessStat } from '../../../platform/linux/processes.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { isNotFound } from '../../../platform/ttrpc/status.ts';
import type { ShimContext } from '../context.ts';
import type { ExecStream } from '../paths.ts';
import { orAfter, timerMs } from '../../../platform/rpc/timeout.ts';
import type { TaskClient } from '../task-client.ts';
import type { ExecOutput } from './exec-output.ts';

const processType = 'types.containerd.io/opencontainers/runtime-spec/1/Process';

export interface ExecName {
  readonly podSandboxId: string;
  readonly containerId: string;
  readonly execId: string;
}

/** Removes what may be there of the FIFOs of a command. */
export const removeExecFifos = async ({ paths, files }: ShimContext, execId: string): Promise<void> => {
  const remove = async (stream: ExecStream): Promise<void> => {
    const path = paths.execFifo(execId, stream);
    await files
      .callsAt(path)
      .unlink(path)
      .catch((error: unknown) => {
        if (errorCodeOf(error) !== 'ENOENT') throw error;
      });
  };
  await Promise.all([remove('stdin'), remove('stdout'), remove('stderr')]);
};

/**
 * Adds the command to its shim: Start is yet to come. `streams` are those that have FIFOs. Who has a time for the command is
 * not kept much longer than that by a shim that does not answer (`timeoutMs` as in ExecBounds).
 */
export const addExec = async (
  { paths, timings }: ShimContext,
  client: TaskClient,
  { containerId, execId }: ExecName,
  process: JsonObject,
  streams: readonly ExecStream[],
  timeoutMs: number | null,
): Promise<void> => {
  const callMs = timeoutMs === null ? timings.callMs : Math.min(timings.callMs, timeoutMs + timings.overdueMs);
  const pathOf = (stream: ExecStream): string => (streams.includes(stream) ? paths.execFifo(execId, stream) : '');
  await client.exec(
    {
      id: containerId,
      execId,
      terminal: process.terminal === true,
      stdin: pathOf('stdin'),
      stdout: pathOf('stdout'),
      stderr: pathOf('stderr'),
      spec: { typeUrl: processType, value: Buffer.from(JSON.stringify(process)) },
    },
    callMs,
  );
};

/**
 * Kills a command's process, which its shim says is `pid`, with all that it has started. Only where that is a process of
 * this node, a child of the shim: in a machine of its own the pid names another, and the shim's Kill has to do.
 */
export const killProcesses = async (
  { shims, tasks, counters, timings, log }: ShimContext,
  { podSandboxId, containerId, execId }: ExecName,
  pid: number,
): Promise<void> => {
  const mainPid = tasks.get(containerId)?.pid() ?? 0;
  const shimPid = shims.get(podSandboxId)?.shim.pid;
  if (pid <= 1 || mainPid <= 1 || pid === mainPid || shimPid === undefined) return;
  const kill = async (): Promise<void> => {
    if ((await readProcessStat(pid))?.parentPid !== shimPid) return;
    const cgroupDir = await counters.cgroupOfProcess(pid);
    if (cgroupDir !== null) await killTree({ rootPid: pid, mainPid, cgroupDir });
  };
  const killed = kill().catch((error: unknown) => {
    log.warn({ execId, error: messageOf(error) }, 'what a command has started could not be killed');
  });
  await orAfter(killed, timings.treeMs, undefined);
};

export interface ExecEnd {
  readonly exitStatus: number;
  /** It was killed: its time was up, or whom it ran for had gone. */
  readonly cutShort: boolean;
}

/** Kills a command that is to run no longer, and what it has started; how it ended then. */
const killExec = async (
  context: ShimContext,
  client: TaskClient,
  name: ExecName,
  started: Promise<number>,
  exited: Promise<number>,
): Promise<ExecEnd> => {
  const { timings, log } = context;
  const { containerId, execId } = name;
  // It may run, and have started others, before the shim has told its pid.
  await killProcesses(context, name, await orAfter(started, timings.treeMs, 0));
  // Not waited for: the shim answers only when the start of the exec, should that hang, is through.
  client.kill({ id: containerId, execId, signal: SIGKILL, all: false }, timings.endMs).catch((error: unknown) => {
    if (!isNotFound(error)) log.warn({ execId, error: messageOf(error) }, 'an exec could not be killed');
  });
  const exitStatus = await orAfter(exited, timings.reapMs, null);
  if (exitStatus !== null) return { exitStatus, cutShort: true };
  throw new FailureError('TimedOut', `Exec ${execId} did not end within ${timings.reapMs} ms of SIGKILL.`);
};

/** As killExec, for a caller who waits: no longer than that, what its shim has not ended by then is ended later. */
const killInTime = async (
  killing: Promise<ExecEnd>,
  { execId }: ExecName,
  timeoutMs: number,
  { overdueMs }: ShimContext['timings'],
): Promise<ExecEnd> => {
  // Nobody listens any more to what comes of it later.
  killing.catch(() => undefined);
  const end = await orAfter(killing, overdueMs, null);
  if (end !== null) return end;
  const message = `The command did not end within ${timeoutMs} ms, and its shim did not say how exec ${execId} ended within ${overdueMs} ms more.`;
  throw new FailureError('TimedOut', message);
};

const interruption = (execId: string): FailureError =>
  new FailureError('Interrupted', `The daemon ends while exec ${execId} runs.`);

export interface ExecBounds {
  /** null: as long as it takes. */
  readonly timeoutMs: number | null;
  /** Aborted when the daemon ends: the command is then left to the next one. */
  readonly daemonEnds: AbortSignal;
  /** Aborted when nobody wants the command any more: it is killed. */
  readonly unwanted?: AbortSignal;
  /** Called once its process runs. */
  readonly onStart?: () => void;
}

/**
 * Starts the added exec and sees it to its end, killing it when its time is up or nobody wants it. Its turn is over with that:
 * a shim that does not answer keeps nobody waiting behind it.
 */
export const runToEnd = async (
  context: ShimContext,
  client: TaskClient,
  name: ExecName,
  { timeoutMs, daemonEnds, unwanted, onStart }: ExecBounds,
): Promise<ExecEnd> => {
  const { podSandboxId, containerId, execId } = name;
  if (daemonEnds.aborted) throw interruption(execId);
  const call = { id: containerId, execId };
  let timer: NodeJS.Timeout | undefined;
  /** With its pid, or 0 where it never ran. */
  const { promise: started, resolve: onPid } = Promise.withResolvers<number>();
  const { promise: exited, resolve: onExit, reject: onFailure } = Promise.withResolvers<number>();
  const run = async (): Promise<void> => {
    // What it has to wait for its turn is not its own time.
    if (timeoutMs !== null) timer = setTimeout(onUnwanted, timerMs(timeoutMs)).unref();
    const starting = context.joining.during(() => client.start(call, context.timings.launchMs));
    const ended = client.wait(call, null).then(({ exitStatus }) => exitStatus);
    // A failed start ends the Wait too, with a status that means nothing: nobody listens to it then.
    ended.catch(() => undefined);
    onPid((await starting).pid);
    onStart?.();
    onExit(ended);
    await orAfter(ended, context.timings.turnMs, undefined).catch(() => undefined);
  };
  const waiting = new AbortController();
  const { promise: over, resolve: onOver } = Promise.withResolvers<void>();
  const untilOver = (): Promise<void> => Promise.race([run(), over]);
  const turn = context.shims.get(podSandboxId)?.execTurn;
  (turn === undefined ? run() : turn(waiting.signal, untilOver)).catch((error: unknown) => {
    onPid(0);
    onFailure(error);
  });
  const { promise: cutShort, resolve: cut, reject: interrupt } = Promise.withResolvers<null>();
  const onDaemonEnd = (): void => {
    interrupt(interruption(execId));
    waiting.abort(interruption(execId));
  };
  function onUnwanted(): void {
    cut(null);
    waiting.abort(new FailureError('Cancelled', 'The caller went away before the command began.'));
  }
  daemonEnds.addEventListener('abort', onDaemonEnd);
  unwanted?.addEventListener('abort', onUnwanted);
  if (unwanted?.aborted === true) onUnwanted();
  try {
    const exitStatus = await Promise.race([exited, cutShort]);
    if (exitStatus !== null) return { exitStatus, cutShort: false };
    const killing = killExec(context, client, name, started, exited);
    if (timeoutMs === null || unwanted?.aborted === true) return await killing;
    return await killInTime(killing, name, timeoutMs, context.timings);
  } finally {
    onOver();
    clearTimeout(timer);
    daemonEnds.removeEventListener('abort', onDaemonEnd);
    unwanted?.removeEventListener('abort', onUnwanted);
  }
};

/**
 * Waits until the output has ended. Children that the command left behind may hold it open: after its exit it is read
 * for as long as something comes, within bounds. Time in which a slow taker holds it back does not count.
 */
export const drainOutput = async ({ timings }: ShimContext, outputs: readonly ExecOutput[]): Promise<void> => {
  const ended = Promise.all(outputs.map((output) => output.ended)).then(() => true as const);
  let fromMs = monotonicMs();
  for (;;) {
    const nowMs = monotonicMs();
    if (outputs.some((output) => output.isHeld())) fromMs = nowMs;
    const lastMs = Math.max(fromMs, ...outputs.map((output) => output.lastMs()));
    const leftMs = Math.min(lastMs + timings.drainSilenceMs, fromMs + timings.drainMs) - nowMs;
    if (leftMs <= 0 || (await orAfter(ended, leftMs, false))) return;
  }
};

/** Tidying up that nobody waits for: the exec at the shim, then its streams, which are read until then. */
export const discardExec = async (
  context: ShimContext,
  client: TaskClient,
  { containerId, execId }: ExecName,
  closeStreams: () => void,
): Promise<void> => {
  try {
    await client.delete({ id: containerId, execId }, context.timings.endMs);
  } catch (error) {
    if (!isNotFound(error))
      context.log.debug({ execId, error: messageOf(error) }, 'an exec was not deleted at its shim');
  } finally {
    closeStreams();
    await removeExecFifos(context, execId).catch(() => undefined);
  }
};
