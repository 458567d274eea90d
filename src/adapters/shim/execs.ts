/**
 * The effects RunExec and EndExec: a command in a running container whose output goes to the caller. The caller gets
 * the result when the command has ended and its output is whole; tidying up, at the shim and on disk, goes on behind
 * that.
 */
import { unlink } from 'node:fs/promises';
import type { EffectOf, EffectResults } from '../../domain/effects.ts';
import { FailureError } from '../../domain/errors.ts';
import type { EffectContext } from '../../engine/ports.ts';
import { errorCodeOf } from '../linux/syscalls.ts';
import { isNotFound } from '../ttrpc/status.ts';
import { readExecProcess } from './bundle-spec.ts';
import type { ShimContext } from './context.ts';
import { type Capture, capture } from './exec-output.ts';
import { attempting, isUnreachable, messageOf } from './failures.ts';
import { makeFifo, openFifoReader } from './fifos.ts';
import { orAfter } from './retry.ts';
import type { TaskClient } from './task-client.ts';

const sigkill = 9;
const processType = 'types.containerd.io/opencontainers/runtime-spec/1/Process';
/** Per stream: kubelet's probes and crictl get no more, the rest is read and dropped. */
const outputBytesMax = 16 * 1024 * 1024;
const timerMsMax = 2_147_483_647;

interface ExecStreams {
  readonly stdout: Capture;
  readonly stderr: Capture;
}

type RunExec = EffectOf<'RunExec'>;

const removeFifos = async ({ paths }: ShimContext, execId: string): Promise<void> => {
  const remove = async (path: string): Promise<void> => {
    await unlink(path).catch((error: unknown) => {
      if (errorCodeOf(error) !== 'ENOENT') throw error;
    });
  };
  await Promise.all([remove(paths.execFifo(execId, 'stdout')), remove(paths.execFifo(execId, 'stderr'))]);
};

const openStreams = async ({ paths }: ShimContext, execId: string): Promise<ExecStreams> => {
  const openStream = async (stream: 'stdout' | 'stderr'): Promise<Capture> => {
    const path = paths.execFifo(execId, stream);
    await makeFifo(path);
    return capture(await openFifoReader(path), outputBytesMax);
  };
  const [stdout, stderr] = await Promise.allSettled([openStream('stdout'), openStream('stderr')]);
  if (stdout.status === 'fulfilled' && stderr.status === 'fulfilled')
    return { stdout: stdout.value, stderr: stderr.value };
  for (const opened of [stdout, stderr]) if (opened.status === 'fulfilled') opened.value.close();
  throw new FailureError('HostFailed', `The streams of exec ${execId} can not be opened.`, {
    cause: stdout.status === 'rejected' ? stdout.reason : stderr.status === 'rejected' ? stderr.reason : undefined,
  });
};

const closeStreams = ({ stdout, stderr }: ExecStreams): void => {
  stdout.close();
  stderr.close();
};

/** Tidying up that nobody waits for: the exec at the shim, then the streams, which are read until then. */
const discard = async (
  context: ShimContext,
  client: TaskClient,
  effect: RunExec,
  streams: ExecStreams,
): Promise<void> => {
  const { containerId, execId } = effect;
  try {
    await client.delete({ id: containerId, execId }, context.timings.endMs);
  } catch (error) {
    if (!isNotFound(error))
      context.log.debug({ execId, error: messageOf(error) }, 'an exec was not deleted at its shim');
  } finally {
    closeStreams(streams);
    await removeFifos(context, execId).catch(() => undefined);
  }
};

/**
 * Waits until both streams have ended. Children that the command left behind may hold them open: after its exit they
 * are read for as long as something comes, within bounds.
 */
const drain = async ({ timings }: ShimContext, { stdout, stderr }: ExecStreams): Promise<void> => {
  const ended = Promise.all([stdout.ended, stderr.ended]).then(() => true as const);
  const exitedMs = performance.now();
  for (;;) {
    const lastMs = Math.max(stdout.lastMs(), stderr.lastMs(), exitedMs);
    const giveUpMs = Math.min(lastMs + timings.drainSilenceMs, exitedMs + timings.drainMs);
    const leftMs = giveUpMs - performance.now();
    if (leftMs <= 0 || (await orAfter(ended, leftMs, false))) return;
  }
};

interface ExecEnd {
  readonly exitStatus: number;
  readonly timedOut: boolean;
}

/** Kills an exec whose time is up; how it ended then. */
const killOverdue = async (
  { timings, log }: ShimContext,
  client: TaskClient,
  { containerId, execId }: RunExec,
  exited: Promise<number>,
): Promise<ExecEnd> => {
  // Not waited for: the shim answers only when the start of the exec, should that hang, is through.
  client.kill({ id: containerId, execId, signal: sigkill, all: false }, timings.endMs).catch((error: unknown) => {
    if (!isNotFound(error))
      log.warn({ execId, error: messageOf(error) }, 'an exec whose time was up could not be killed');
  });
  const exitStatus = await orAfter(exited, timings.reapMs, null);
  if (exitStatus !== null) return { exitStatus, timedOut: true };
  throw new FailureError('TimedOut', `Exec ${execId} did not end within ${timings.reapMs} ms of SIGKILL.`);
};

const interruption = (execId: string): FailureError =>
  new FailureError('Interrupted', `The daemon ends while exec ${execId} runs.`);

/** Starts the added exec and sees it to its end, killing it when its time is up. */
const runToEnd = async (
  context: ShimContext,
  client: TaskClient,
  effect: RunExec,
  signal: AbortSignal,
): Promise<ExecEnd> => {
  const { containerId, execId, timeoutMs } = effect;
  if (signal.aborted) throw interruption(execId);
  const call = { id: containerId, execId };
  // A failed start ends the Wait too, with a status that means nothing: both have to succeed.
  const exited = Promise.all([client.start(call, context.timings.launchMs), client.wait(call, null)]).then(
    ([, { exitStatus }]) => exitStatus,
  );
  const { promise: cutShort, resolve: overtime, reject: interrupt } = Promise.withResolvers<null>();
  const onAbort = (): void => {
    interrupt(interruption(execId));
  };
  signal.addEventListener('abort', onAbort);
  const timer = timeoutMs === null ? undefined : setTimeout(overtime, Math.min(timeoutMs, timerMsMax), null).unref();
  try {
    const exitStatus = await Promise.race([exited, cutShort]);
    return exitStatus === null ? await killOverdue(context, client, effect, exited) : { exitStatus, timedOut: false };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
};

export const runExec = async (
  context: ShimContext,
  effect: RunExec,
  { signal, attach }: EffectContext,
): Promise<EffectResults['RunExec']> => {
  const { podSandboxId, containerId, execId, bundlePath, args } = effect;
  return attempting(`run a command in container ${containerId}`, async () => {
    const opening = openStreams(context, execId);
    const ready = Promise.all([context.sessions.clientOf(podSandboxId), readExecProcess(bundlePath, args), opening]);
    const [client, process, streams] = await ready.catch(async (error: unknown) => {
      const opened = await opening.catch(() => null);
      if (opened !== null) closeStreams(opened);
      await removeFifos(context, execId);
      throw error;
    });
    try {
      await client.exec(
        {
          id: containerId,
          execId,
          terminal: false,
          stdin: '',
          stdout: context.paths.execFifo(execId, 'stdout'),
          stderr: context.paths.execFifo(execId, 'stderr'),
          spec: { typeUrl: processType, value: Buffer.from(JSON.stringify(process)) },
        },
        context.timings.callMs,
      );
      const { exitStatus, timedOut } = await runToEnd(context, client, effect, signal);
      await drain(context, streams);
      const [stdout, stderr] = [streams.stdout.take(), streams.stderr.take()];
      attach({ stdout, stderr });
      return { exitStatus, timedOut, stdoutBytes: stdout.length, stderrBytes: stderr.length };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new FailureError('WrongState', `Container ${containerId} is not running.`, { cause: error });
    } finally {
      // Not before the result is on its way to the journal: tidying up then fills the time that its commit takes.
      setImmediate(() => void discard(context, client, effect, streams));
    }
  });
};

export const endExec = async (
  context: ShimContext,
  { podSandboxId, containerId, execId }: EffectOf<'EndExec'>,
): Promise<EffectResults['EndExec']> =>
  attempting(`end exec ${execId} of container ${containerId}`, async () => {
    const { sessions, timings } = context;
    await removeFifos(context, execId);
    // With the shim gone the exec is gone from it, and its process goes with the container.
    if (sessions.isGone(podSandboxId)) return {};
    const call = { id: containerId, execId };
    try {
      const client = await sessions.clientOf(podSandboxId);
      await client.kill({ ...call, signal: sigkill, all: false }, timings.endMs).catch((error: unknown) => {
        // One that was added and never started has no process, one that has ended is not found: Delete ends both.
        if (isUnreachable(error)) throw error;
      });
      await client.delete(call, timings.endMs).catch(async (error: unknown) => {
        if (isNotFound(error)) return;
        await client.wait(call, timings.reapMs);
        await client.delete(call, timings.endMs);
      });
    } catch (error) {
      if (!isNotFound(error) && !sessions.isGone(podSandboxId)) throw error;
    }
    return {};
  });
