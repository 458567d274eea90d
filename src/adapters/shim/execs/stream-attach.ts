/**
 * The effect StreamAttach: a client's session hears a container's output, from the log keeper, and writes to its stdin.
 * Nothing of before is heard. The session ends when the output does, or when the client has gone; the container goes on.
 */
import { join } from 'node:path';
import { messageOf } from '../../../domain/model/errors.ts';
import type { EffectOf, EffectResults } from '../../../domain/model/effects.ts';
import type { EffectContext } from '../../../engine/ports.ts';
import type { ProcessClient, Pump } from '../../streaming/types.ts';
import { isNotFound } from '../../../platform/ttrpc/status.ts';
import type { ShimContext } from '../context.ts';
import { attempting } from '../failures.ts';
import { openListenedFifo } from '../fifos.ts';
import { followSize } from './terminal-size.ts';
import { type TaskClient, WHOLE_TASK } from '../task-client.ts';

type StreamAttach = EffectOf<'StreamAttach'>;

/** null when the client sends nothing, or there is nobody to take it: the container has none, or it was closed before. */
const openInput = async (
  { paths }: ShimContext,
  { containerId, stdin }: StreamAttach,
  session: ProcessClient,
): Promise<Pump | null> => {
  if (!session.has.stdin) return null;
  const fd = stdin ? await openListenedFifo(join(paths.ioDir(containerId), 'stdin')) : null;
  if (fd !== null) return session.pumpInput(fd);
  session.dropInput();
  return null;
};

/**
 * Passes the client's input on until it ends or the session is `over`, and resolves with how much it was. With
 * stdin_once the container reads an end when the first session with its stdin is over, in whichever way.
 */
const feed = async (
  context: ShimContext,
  client: TaskClient,
  effect: StreamAttach,
  session: ProcessClient,
  over: AbortSignal,
): Promise<number> => {
  const { containerId, closeStdin } = effect;
  const { timings, log } = context;
  const input = await openInput(context, effect, session);
  if (input === null) return 0;
  over.addEventListener('abort', input.close);
  if (over.aborted) input.close();
  await input.ended;
  if (closeStdin) {
    await client
      .closeIO({ id: containerId, execId: WHOLE_TASK, stdin: true }, timings.callMs)
      .catch((error: unknown) => {
        if (!isNotFound(error))
          log.warn({ containerId, error: messageOf(error) }, 'the stdin of a container could not be closed');
      });
  }
  return input.sizeBytes();
};

export const streamAttach = async (
  context: ShimContext,
  effect: StreamAttach,
  { signal }: EffectContext,
): Promise<EffectResults['StreamAttach']> => {
  const { podSandboxId, containerId, sessionId, terminal } = effect;
  return attempting(`attach to container ${containerId}`, async () => {
    const session = context.processClientOf(sessionId);
    const client = await context.shims.clientOf(podSandboxId);
    // What a client says is not passed on before it hears what comes of it.
    const { promise: attached, resolve: onAttached } = Promise.withResolvers<boolean>();
    const over = new AbortController();
    const inputClosed = attached.then((isAttached) =>
      isAttached ? feed(context, client, effect, session, over.signal) : 0,
    );
    // Waited for below; until then nobody hears it fail.
    inputClosed.catch(() => undefined);
    try {
      if (terminal) followSize(context, client, { id: containerId, execId: WHOLE_TASK }, session, attached);
      const ended = AbortSignal.any([signal, session.signal]);
      const { stdoutBytes, stderrBytes } = await context.attachOutput(containerId, (keeperPath) =>
        session.hear({ keeperPath, containerId }, ended, () => onAttached(true)),
      );
      over.abort();
      // It may have gone before it was attached: then there is no input that could end.
      onAttached(false);
      return { stdinBytes: await inputClosed, stdoutBytes, stderrBytes };
    } finally {
      over.abort();
    }
  });
};
