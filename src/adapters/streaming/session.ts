/**
 * One session from the moment the client's streams are there until its ending has been told: the same for all
 * protocols. The caller owns the connection that the streams run over, and closes it.
 */
import type { Readable, Writable } from 'node:stream';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { finish } from './halves.ts';
import { listenForSizes } from './resize.ts';
import { type Ending, endingText } from './status.ts';
import type {
  AttachRequest,
  ExecRequest,
  PortForwardRequest,
  PortStreams,
  SessionStreams,
  StreamingBackend,
} from './types.ts';

export interface SessionContext {
  readonly backend: StreamingBackend;
  readonly log: { readonly warn: (message: string) => void };
  /** Aborted when the client has gone, the session idled out, or the server closes. */
  readonly signal: AbortSignal;
}

export interface ProcessChannels {
  readonly stdin: Readable | null;
  readonly stdout: Writable | null;
  readonly stderr: Writable | null;
  readonly error: Writable;
  readonly resize: Readable | null;
  /** Whether the client reads a Status on the error stream, or a sentence. */
  readonly hasStructuredStatus: boolean;
}

const failureText = (error: unknown, { log, signal }: SessionContext): string => {
  if (error instanceof FailureError) return error.failure.message;
  const message = messageOf(error);
  if (!signal.aborted) log.warn(`a streaming session failed in a way that should not be: ${message}`);
  return message;
};

const perform = async (
  request: ExecRequest | AttachRequest,
  streams: SessionStreams,
  { backend }: SessionContext,
): Promise<Ending> => {
  if (request.kind === 'Exec') return { kind: 'exited', exitCode: (await backend.exec(request, streams)).exitCode };
  await backend.attach(request, streams);
  return { kind: 'done' };
};

const whatFailed = { Exec: 'error executing command in container', Attach: 'error attaching to container' } as const;

/** Performs an Exec or Attach and tells its ending on the error stream. Never rejects. */
export const runProcessSession = async (
  request: ExecRequest | AttachRequest,
  channels: ProcessChannels,
  context: SessionContext,
): Promise<void> => {
  const { stdin, stdout, stderr, error, resize, hasStructuredStatus } = channels;
  const onResize = listenForSizes(resize);
  const streams: SessionStreams = { stdin, stdout, stderr, onResize, signal: context.signal };
  const ending = await perform(request, streams, context).catch(
    (failure: unknown): Ending => ({
      kind: 'failed',
      message: `${whatFailed[request.kind]}: ${failureText(failure, context)}`,
    }),
  );
  // The client takes the end of its streams for the end of the output, so all of it goes first.
  await Promise.all([finish(stdout), finish(stderr)]);
  await finish(error, endingText(ending, hasStructuredStatus));
};

export interface PortChannels {
  readonly port: number;
  /** What the session can begin without. Rejects when they don't come. */
  readonly streams: Promise<PortStreams>;
  readonly error: Writable;
}

/** Forwards one connection and tells on the error stream what went wrong. Never rejects; true if all went well. */
export const runPortForward = async (
  request: PortForwardRequest,
  { port, streams, error }: PortChannels,
  context: SessionContext,
): Promise<boolean> => {
  try {
    await context.backend.portForward(request, port, streams, context.signal);
    await finish((await streams).output);
    await finish(error);
    return true;
  } catch (failure) {
    await finish(
      error,
      `error forwarding port ${port} to pod ${request.podSandboxId}: ${failureText(failure, context)}`,
    );
    return false;
  } finally {
    streams.then(
      ({ input }) => input.destroy(),
      () => undefined,
    );
  }
};
