/**
 * The effect StreamExec: a command in a running container between the streams of a client's session. It lives as long
 * as the session: when the client has gone, it is killed. The session ends when the command has, with its output whole.
 */
import { close } from 'node:fs';
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import type { EffectContext } from '../../../engine/ports.ts';
import type { ProcessClient, Pump } from '../../streaming/types.ts';
import { isNotFound } from '../../../platform/ttrpc/status.ts';
import { readExecProcess } from '../bundle-spec.ts';
import type { ShimContext } from '../context.ts';
import { addExec, discardExec, drainOutput, removeExecFifos, runToEnd } from './exec-process.ts';
import { attempting } from '../failures.ts';
import { type FifoWriter, makeFifo, openFifoReader, openFifoWriter } from '../fifos.ts';
import type { ExecStream } from '../paths.ts';
import { followSize } from './terminal-size.ts';
import type { TaskClient } from '../task-client.ts';

type StreamExec = EffectOf<'StreamExec'>;

interface Pumps {
  readonly stdin: Pump | null;
  readonly stdout: Pump;
  readonly stderr: Pump | null;
  /** Of the FIFO that stdin is, where it has one. */
  readonly endInput: FifoWriter['end'];
  readonly release: () => void;
}

/** A terminal has one output; without one, shims want both, whether or not the client does. */
const streamsOf = ({ tty }: StreamExec, { has }: ProcessClient): readonly ExecStream[] => [
  ...(has.stdin ? (['stdin'] as const) : []),
  'stdout',
  ...(tty ? [] : (['stderr'] as const)),
];

const openPumps = async (context: ShimContext, effect: StreamExec, client: ProcessClient): Promise<Pumps> => {
  const opened = new Map<ExecStream, number>();
  let endInput: FifoWriter['end'] = async () => {};
  let release = (): void => undefined;
  const openStream = async (stream: ExecStream): Promise<void> => {
    const path = context.paths.execFifo(effect.execId, stream);
    const calls = context.files.callsAt(path);
    await makeFifo(path, calls);
    if (stream !== 'stdin') return void opened.set(stream, await openFifoReader(path, calls));
    const writer = await openFifoWriter(path, calls);
    opened.set(stream, writer.fd);
    ({ end: endInput, release } = writer);
  };
  const results = await Promise.allSettled(streamsOf(effect, client).map(openStream));
  const [stdin, stdout, stderr] = [opened.get('stdin'), opened.get('stdout'), opened.get('stderr')];
  const failed = results.find((result) => result.status === 'rejected');
  if (failed !== undefined || stdout === undefined) {
    for (const fd of opened.values()) close(fd, () => undefined);
    release();
    await removeExecFifos(context, effect.execId).catch(() => undefined);
    const message = `The streams of exec ${effect.execId} cannot be opened.`;
    throw new FailureError('HostFailed', message, { cause: failed?.reason });
  }
  return {
    stdin: stdin === undefined ? null : client.pumpInput(stdin),
    stdout: client.pumpOutput('stdout', stdout),
    stderr: stderr === undefined ? null : client.pumpOutput('stderr', stderr),
    endInput,
    release,
  };
};

const closePumps = ({ stdin, stdout, stderr, release }: Pumps): void => {
  stdin?.close();
  stdout.close();
  stderr?.close();
  release();
};

/**
 * The client has sent all: so the command reads an end, which nothing is in the way of then but the shim's own end of the FIFO. On a
 * busy machine the shim may open the other only after it has said that the command was started.
 */
const passEndOn = async (
  { timings, log }: ShimContext,
  client: TaskClient,
  { containerId, execId }: StreamExec,
  inputEnded: Promise<unknown>,
  pass: () => Promise<void>,
): Promise<void> => {
  try {
    await inputEnded;
    await pass();
    await client.closeIO({ id: containerId, execId, stdin: true }, timings.callMs);
  } catch (error) {
    if (!isNotFound(error)) log.debug({ execId, error: messageOf(error) }, 'the stdin of an exec could not be closed');
  }
};

export const streamExec = async (
  context: ShimContext,
  effect: StreamExec,
  { signal }: EffectContext,
): Promise<EffectResults['StreamExec']> => {
  const { podSandboxId, containerId, execId, bundlePath, args, tty } = effect;
  return attempting(`run a command in container ${containerId}`, async () => {
    const command = args.map(context.filledArg);
    const session = context.processClientOf(execId);
    const [client, process] = await Promise.all([
      context.shims.clientOf(podSandboxId),
      readExecProcess(bundlePath, command, tty, context.files.callsAt(bundlePath)),
    ]);
    const pumps = await openPumps(context, effect, session);
    const { stdin, stdout, stderr } = pumps;
    let isOver = false;
    const outputs = stderr === null ? [stdout] : [stdout, stderr];
    const { promise: started, resolve: onStart } = Promise.withResolvers<void>();
    try {
      await addExec(context, client, effect, process, streamsOf(effect, session), null);
      if (tty) followSize(context, client, { id: containerId, execId }, session, started);
      // Closing it would end a terminal's output too.
      else if (stdin !== null) {
        const inputEnded = Promise.all([started, stdin.ended]);
        void passEndOn(context, client, effect, inputEnded, () => pumps.endInput(() => isOver));
      }
      const bounds = { timeoutMs: null, daemonEnds: signal, unwanted: session.signal, onStart };
      const { exitStatus } = await runToEnd(context, client, effect, bounds);
      await drainOutput(context, outputs);
      return {
        exitStatus,
        stdinBytes: stdin?.sizeBytes() ?? 0,
        stdoutBytes: stdout.sizeBytes(),
        stderrBytes: stderr?.sizeBytes() ?? 0,
      };
    } catch (error) {
      if (!isNotFound(error)) throw error;
      throw new FailureError('WrongState', `Container ${containerId} is not running.`, { cause: error });
    } finally {
      isOver = true;
      setImmediate(() => void discardExec(context, client, effect, () => closePumps(pumps)));
    }
  });
};
