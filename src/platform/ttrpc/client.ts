/**
 * The client's end of one ttrpc connection, over any byte stream. Unary calls run side by side and are answered in any
 * order. ttrpc has no cancel frame: a deadline passed here forgets the stream and drops its late answer. When the
 * stream closes all pending calls fail at once. It does not reconnect; whoever made the stream does.
 */
import type { Duplex } from 'node:stream';
import { GrpcCode } from '../../domain/model/errors.ts';
import { Request, Response } from '../../wire/ttrpc.ts';
import { createPendingReplies } from '../rpc/pending.ts';
import {
  createFrameReader,
  encodeFrame,
  type Frame,
  FrameType,
  frameDataBytesMax,
  type OversizeFrame,
} from './frame.ts';
import { TtrpcClosedError, TtrpcGarbageError, TtrpcStatusError } from './status.ts';

export interface CallOptions {
  /** What the other side is told, and how long its answer is waited for; null: for as long as the connection lives. */
  readonly timeoutMs: number | null;
  /** The answer is waited for as long as the connection lives, whatever the other side is told. */
  readonly waitsOn?: boolean;
  readonly metadata?: Readonly<Record<string, string>>;
}

export interface TtrpcClient {
  /**
   * Calls service (full name) / method (short name); resolves with the answer's payload. Rejects with
   * TtrpcStatusError when the other side answers an error or the deadline passes, TtrpcClosedError on a close.
   */
  readonly call: (service: string, method: string, payload: Uint8Array, options: CallOptions) => Promise<Buffer>;
  readonly isOpen: () => boolean;
  /** Settles, never rejects, when the connection has closed, whoever closed it. */
  readonly closed: Promise<void>;
  readonly close: () => void;
}

const streamIdMax = 0xffff_ffff;
const nsPerMs = 1_000_000n;

/** Speaks ttrpc as a client over `stream`, which it owns from now on. `name` tells connections apart in messages. */
export const createTtrpcClient = (stream: Duplex, name: string): TtrpcClient => {
  const pending = createPendingReplies<Buffer>();
  let nextStreamId = 1;
  let open = true;
  const { promise: closed, resolve: settleClosed } = Promise.withResolvers<void>();

  const shut = (cause?: Error): void => {
    if (!open) return;
    open = false;
    stream.destroy();
    pending.close(new TtrpcClosedError(`the connection to ${name} closed before it answered`, { cause }));
    settleClosed();
  };

  const onFrame = (frame: Frame | OversizeFrame): void => {
    // Unknown types, and Data on calls that are not streams, are ignored.
    const { streamId } = frame;
    if (frame.type !== FrameType.Response || !pending.has(streamId)) return;
    const fail = (code: number, message: string): void => pending.reject(streamId, new TtrpcStatusError(code, message));
    if (frame.kind === 'oversize')
      return fail(GrpcCode.RESOURCE_EXHAUSTED, `the answer of ${name} has ${frame.sizeBytes} bytes, above the limit`);
    try {
      const { status, payload } = Response.decode(frame.data);
      if (status === undefined || status.code === GrpcCode.OK) pending.resolve(streamId, payload);
      else fail(status.code, status.message);
    } catch (error) {
      pending.reject(streamId, new TtrpcGarbageError(`${name} answered what cannot be decoded: ${String(error)}`));
    }
  };

  stream.on('data', createFrameReader(onFrame));
  stream.on('error', shut);
  stream.on('end', () => {
    shut();
  });
  stream.on('close', () => {
    shut();
  });

  return {
    call: (service, method, payload, { timeoutMs, waitsOn = false, metadata = {} }) => {
      if (!open) return Promise.reject(new TtrpcClosedError(`the connection to ${name} is closed`));
      const data = Request.encode({
        service,
        method,
        payload: Buffer.from(payload.buffer, payload.byteOffset, payload.byteLength),
        timeoutNano: timeoutMs === null ? '0' : String(BigInt(Math.ceil(timeoutMs)) * nsPerMs),
        metadata: Object.entries(metadata).map(([key, value]) => ({ key: key.toLowerCase(), value })),
      }).finish();
      if (data.length > frameDataBytesMax) {
        const message = `a request to ${name} of ${data.length} bytes is above the limit of ${frameDataBytesMax}`;
        return Promise.reject(new TtrpcStatusError(GrpcCode.RESOURCE_EXHAUSTED, message));
      }
      if (nextStreamId > streamIdMax) {
        shut();
        return Promise.reject(new TtrpcClosedError(`the connection to ${name} has used up its stream ids`));
      }
      const streamId = nextStreamId;
      nextStreamId += 2;
      const late = (): Error =>
        new TtrpcStatusError(GrpcCode.DEADLINE_EXCEEDED, `${name} did not answer ${method} within ${timeoutMs} ms`);
      const reply = pending.wait(streamId, timeoutMs === null || waitsOn ? {} : { bound: { timeoutMs, late } });
      stream.write(encodeFrame(streamId, FrameType.Request, 0, data));
      return reply;
    },
    isOpen: () => open,
    closed,
    close: () => {
      shut();
    },
  };
};
