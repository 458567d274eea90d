/**
 * The effects RunExec and EndExec: a command in a running container whose output goes to the caller. The caller gets
 * the result when the command has ended and its output is whole; tidying up, at the shim and on disk, goes on behind
 * that.
 */
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { SIGKILL } from '../../../domain/values/signals.ts';
import type { EffectContext } from '../../../engine/ports.ts';
import { fifoSocket } from '../../../platform/linux/fifo-socket.ts';
import { isNotFound } from '../../../platform/ttrpc/status.ts';
import { readExecProcess } from '../bundle-spec.ts';
import type { ShimContext } from '../context.ts';
import { type Capture, capture, createOutputBound } from './exec-output.ts';
import { addExec, discardExec, drainOutput, killProcesses, removeExecFifos, runToEnd } from './exec-process.ts';
import { attempting, isUnreachable } from '../failures.ts';
import { makeFifo, openFifoReader } from '../fifos.ts';

interface ExecStreams {
  readonly stdout: Capture;
  readonly stderr: Capture;
}

const openStreams = async ({ paths, files, execOutput }: ShimContext, execId: string): Promise<ExecStreams> => {
  const limits = { memory: execOutput.memory, bound: createOutputBound(execOutput.bytesMax) };
  const openStream = async (stream: 'stdout' | 'stderr'): Promise<Capture> => {
    const path = paths.execFifo(execId, stream);
    const calls = files.callsAt(path);
    await makeFifo(path, calls);
    return capture(fifoSocket(await openFifoReader(path, calls), 'reader'), limits);
  };
  const [stdout, stderr] = await Promise.allSettled([openStream('stdout'), openStream('stderr')]);
  if (stdout.status === 'fulfilled' && stderr.status === 'fulfilled')
    return { stdout: stdout.value, stderr: stderr.value };
  for (const opened of [stdout, stderr]) if (opened.status === 'fulfilled') opened.value.close();
  throw new FailureError('HostFailed', `The streams of exec ${execId} cannot be opened.`, {
    cause: stdout.status === 'rejected' ? stdout.reason : stderr.status === 'rejected' ? stderr.reason : undefined,
  });
};

const closeStreams = ({ stdout, stderr }: ExecStreams): void => {
  stdout.close();
  stderr.close();
};

export const runExec = async (
  context: ShimContext,
  effect: EffectOf<'RunExec'>,
  { signal, callerGone, attach }: EffectContext,
): Promise<EffectResults['RunExec']> => {
  const { podSandboxId, containerId, execId, bundlePath, args, timeoutMs } = effect;
  return attempting(`run a command in container ${containerId}`, async () => {
    const command = args.map(context.filledArg);
    const opening = openStreams(context, execId);
    const ready = Promise.all([
      context.shims.clientOf(podSandboxId),
      readExecProcess(bundlePath, command, false, context.files.callsAt(bundlePath)),
      opening,
    ]);
    const [client, process, streams] = await context.joining
      .during(() => ready)
      .catch(async (error: unknown) => {
        const opened = await opening.catch(() => null);
        if (opened !== null) closeStreams(opened);
        await removeExecFifos(context, execId);
        throw error;
      });
    try {
      await addExec(context, client, effect, process, ['stdout', 'stderr'], timeoutMs);
      // Nobody would get what it says: a command that nobody waits for may run for ever.
      const bounds = { timeoutMs, daemonEnds: signal, ...(callerGone === undefined ? {} : { unwanted: callerGone }) };
      const { exitStatus, cutShort } = await runToEnd(context, client, effect, bounds);
      if (cutShort && callerGone?.aborted === true)
        throw new FailureError('Cancelled', 'The caller went away, so the command was killed.');
      await drainOutput(context, [streams.stdout, streams.stderr]);
      const [stdout, stderr] = [streams.stdout.take(), streams.stderr.take()];
      attach({ stdout, stderr });
      return { exitStatus, timedOut: cutShort, stdoutBytes: stdout.length, stderrBytes: stderr.length };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new FailureError('WrongState', `Container ${containerId} is not running.`, { cause: error });
    } finally {
      // Not before the result is on its way to the journal: tidying up then fills the time that its commit takes.
      setImmediate(() => void discardExec(context, client, effect, () => closeStreams(streams)));
    }
  });
};

export const endExec = async (context: ShimContext, effect: EffectOf<'EndExec'>): Promise<EffectResults['EndExec']> => {
  const { podSandboxId, containerId, execId } = effect;
  return attempting(`end exec ${execId} of container ${containerId}`, async () => {
    const { shims, timings } = context;
    await removeExecFifos(context, execId);
    // With the shim gone the exec is gone from it, and its process goes with the container.
    if (shims.isGone(podSandboxId)) return {};
    const call = { id: containerId, execId };
    try {
      const client = await shims.clientOf(podSandboxId);
      const pid = await client.state(call, timings.callMs).then(
        (state) => state.pid,
        // Never started, or over.
        () => 0,
      );
      await killProcesses(context, effect, pid);
      await client.kill({ ...call, signal: SIGKILL, all: false }, timings.endMs).catch((error: unknown) => {
        // One that was added and never started has no process, one that has ended is not found: Delete ends both.
        if (isUnreachable(error)) throw error;
      });
      await client.delete(call, timings.endMs).catch(async (error: unknown) => {
        if (isNotFound(error)) return;
        await client.wait(call, timings.reapMs);
        await client.delete(call, timings.endMs);
      });
    } catch (error) {
      if (!isNotFound(error) && !shims.isGone(podSandboxId)) throw error;
    }
    return {};
  });
};
