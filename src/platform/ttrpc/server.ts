/**
 * The server's end of ttrpc: answers unary calls over any byte stream, and listens on unix sockets. Calls of one
 * connection run side by side; handlers that need an order make it. Garbage, oversize frames and too many calls are
 * answered with a code and leave the connection usable. Knows no service.
 */
import type { Duplex } from 'node:stream';
import { GrpcCode } from '../../domain/model/errors.ts';
import { Request, Response } from '../../wire/ttrpc.ts';
import { listenUnix, type UnixListener } from '../linux/unix-listener.ts';
import { TIMER_MS_MAX, within } from '../rpc/timeout.ts';
import {
  createFrameReader,
  encodeFrame,
  type Frame,
  FrameType,
  frameDataBytesMax,
  type OversizeFrame,
} from './frame.ts';
import { TtrpcStatusError } from './status.ts';

export interface TtrpcCallContext {
  readonly metadata: ReadonlyMap<string, string>;
}

/** Takes and returns encoded messages; throws TtrpcStatusError to answer a code, anything else answers UNKNOWN. */
export type MethodHandler = (payload: Buffer, context: TtrpcCallContext) => Promise<Uint8Array>;

/** Full service name to short method name to handler. */
export type TtrpcServices = Readonly<Record<string, Readonly<Record<string, MethodHandler>>>>;

export interface TtrpcServerOptions {
  /** Calls under way on one connection; more are answered RESOURCE_EXHAUSTED. */
  readonly callsMax?: number;
}

const callsMaxDefault = 1024;
const connectionsMax = 8192;
const nsPerMs = 1_000_000n;

const statusOf = (error: unknown): TtrpcStatusError =>
  error instanceof TtrpcStatusError
    ? error
    : new TtrpcStatusError(GrpcCode.UNKNOWN, error instanceof Error ? error.message : 'the handler failed');

const encodeError = ({ code, message }: TtrpcStatusError): Uint8Array =>
  Response.encode({ status: { code, message, details: [] }, payload: Buffer.alloc(0) }).finish();

const encodeAnswer = (payload: Uint8Array): Uint8Array => {
  const data = Response.encode({ status: undefined, payload: Buffer.from(payload) }).finish();
  if (data.length <= frameDataBytesMax) return data;
  return encodeError(
    new TtrpcStatusError(GrpcCode.RESOURCE_EXHAUSTED, `an answer of ${data.length} bytes is above the limit`),
  );
};

/** Rejects with DEADLINE_EXCEEDED when the caller's own deadline has passed: it has forgotten the call by then. */
const withinDeadline = async (timeoutNano: bigint, work: Promise<Uint8Array>): Promise<Uint8Array> => {
  const timeoutMs = Number(timeoutNano / nsPerMs + 1n);
  // What no timer can hold is no deadline.
  if (timeoutNano <= 0n || timeoutMs > TIMER_MS_MAX) return work;
  return within(
    work,
    timeoutMs,
    () => new TtrpcStatusError(GrpcCode.DEADLINE_EXCEEDED, 'the deadline of the call has passed'),
  );
};

const tableOf = (services: TtrpcServices): ReadonlyMap<string, ReadonlyMap<string, MethodHandler>> =>
  new Map(Object.entries(services).map(([name, methods]) => [name, new Map(Object.entries(methods))]));

/**
 * Answers calls over `stream` (made with allowHalfOpen, so that a peer that has said all still gets its answers).
 * Resolves, never rejects, when the connection has closed.
 */
export const serveTtrpc = (
  stream: Duplex,
  services: TtrpcServices,
  options: TtrpcServerOptions = {},
): Promise<void> => {
  const table = tableOf(services);
  const callsMax = options.callsMax ?? callsMaxDefault;
  const { promise: closed, resolve: settleClosed } = Promise.withResolvers<void>();
  let highestStreamId = 0;
  let calls = 0;
  let ended = false;

  const answer = (streamId: number, data: Uint8Array): void => {
    if (stream.destroyed || stream.writableEnded) return;
    // A peer that does not read its answers gets no more calls in: its backlog stays bounded.
    if (!stream.write(encodeFrame(streamId, FrameType.Response, 0, data))) stream.pause();
  };
  const refuse = (streamId: number, code: GrpcCode, message: string): void => {
    answer(streamId, encodeError(new TtrpcStatusError(code, message)));
  };
  const finish = (): void => {
    if (ended && calls === 0) stream.end();
  };

  const perform = async (request: Request): Promise<Uint8Array> => {
    const methods = table.get(request.service);
    if (methods === undefined) throw new TtrpcStatusError(GrpcCode.UNIMPLEMENTED, `service ${request.service}`);
    const handle = methods.get(request.method);
    if (handle === undefined) throw new TtrpcStatusError(GrpcCode.UNIMPLEMENTED, `method ${request.method}`);
    const metadata = new Map(request.metadata.map(({ key, value }) => [key.toLowerCase(), value]));
    return encodeAnswer(await withinDeadline(BigInt(request.timeoutNano), handle(request.payload, { metadata })));
  };

  const run = async (streamId: number, request: Request): Promise<void> => {
    calls += 1;
    const data = await perform(request).catch((error: unknown) => encodeError(statusOf(error)));
    calls -= 1;
    answer(streamId, data);
    finish();
  };

  const onRequest = (frame: Frame | OversizeFrame): void => {
    const { streamId } = frame;
    if (streamId % 2 === 0) {
      refuse(streamId, GrpcCode.INVALID_ARGUMENT, `stream id ${streamId} is not a client's: it is even`);
      return;
    }
    if (streamId <= highestStreamId) {
      refuse(streamId, GrpcCode.INVALID_ARGUMENT, `stream id ${streamId} was used before`);
      return;
    }
    highestStreamId = streamId;
    if (frame.kind === 'oversize') {
      refuse(streamId, GrpcCode.RESOURCE_EXHAUSTED, `a request of ${frame.sizeBytes} bytes is above the limit`);
      return;
    }
    if (calls >= callsMax) {
      refuse(streamId, GrpcCode.RESOURCE_EXHAUSTED, `more than ${callsMax} calls are under way`);
      return;
    }
    let request: Request;
    try {
      request = Request.decode(frame.data);
    } catch {
      refuse(streamId, GrpcCode.INVALID_ARGUMENT, 'the request cannot be decoded');
      return;
    }
    void run(streamId, request);
  };

  stream.on(
    'data',
    createFrameReader((frame) => {
      if (frame.type === FrameType.Request) onRequest(frame);
    }),
  );
  stream.on('drain', () => {
    stream.resume();
  });
  stream.on('end', () => {
    ended = true;
    finish();
  });
  stream.on('error', () => {
    stream.destroy();
  });
  stream.on('close', () => {
    settleClosed();
  });
  return closed;
};

/** Listens on a unix socket (0600), taking the place of a socket that a dead process has left there. */
export const listenTtrpc = (
  path: string,
  services: TtrpcServices,
  options: TtrpcServerOptions = {},
): Promise<UnixListener> => listenUnix(path, connectionsMax, (socket) => void serveTtrpc(socket, services, options));
