/**
 * SPDY/3.1 frames: a header of eight bytes, big-endian, then the payload. Owns encoding what a server says and decoding
 * whatever arrives, in whatever pieces. Data is handed on in the pieces in which it comes, so a frame of 16 MiB costs
 * no memory; control frames are bounded. Knows nothing of streams, and does no I/O.
 */

export const FrameType = {
  SynStream: 1,
  SynReply: 2,
  RstStream: 3,
  Settings: 4,
  Ping: 6,
  GoAway: 7,
  Headers: 8,
  WindowUpdate: 9,
} as const;

export const RstStatus = { ProtocolError: 1, RefusedStream: 3, Cancel: 5 } as const;

/** The same bit in control frames and in data. */
export const flagFin = 0x01;
export const flagUnidirectional = 0x02;

export const frameHeaderBytes = 8;
/** Ours: the protocol allows 16 MiB, but nobody has that much to say in headers. */
export const controlBytesMax = 16_384;

const version = 3;
const controlBit = 0x8000_0000;
const idMask = 0x7fff_ffff;
const lengthMask = 0xff_ffff;

export type SpdyFrame =
  /** `fin` is on the last piece of a frame that has the flag. */
  | { readonly kind: 'data'; readonly streamId: number; readonly data: Buffer; readonly fin: boolean }
  | {
      readonly kind: 'synStream';
      readonly streamId: number;
      readonly flags: number;
      /** Compressed. */
      readonly block: Buffer;
    }
  | { readonly kind: 'headers'; readonly streamId: number; readonly flags: number; readonly block: Buffer }
  | { readonly kind: 'rstStream'; readonly streamId: number }
  | { readonly kind: 'ping'; readonly id: number }
  | { readonly kind: 'goAway' }
  /** Means nothing to a server without flow control, or is unknown, which has to be ignored. */
  | { readonly kind: 'ignored' };

/** What a peer sent breaks the protocol: the connection can't go on. */
export class SpdyProtocolError extends Error {
  constructor(message: string) {
    super(message);
    this.name = 'SpdyProtocolError';
  }
}

export interface FrameDecoder {
  readonly push: (chunk: Buffer) => void;
  /** The next frame or piece of data; null when more bytes are needed. Throws SpdyProtocolError. */
  readonly next: () => SpdyFrame | null;
}

const at = (payload: Buffer, offset: number, what: string): number => {
  if (payload.length < offset + 4)
    throw new SpdyProtocolError(`a ${what} frame of ${payload.length} bytes is too short`);
  return payload.readUInt32BE(offset);
};

const controlFrame = (type: number, flags: number, payload: Buffer): SpdyFrame => {
  switch (type) {
    case FrameType.SynStream: {
      const streamId = at(payload, 0, 'SYN_STREAM') & idMask;
      // The stream it belongs to, its priority and its slot follow: nothing here depends on them.
      if (payload.length < 10) throw new SpdyProtocolError('a SYN_STREAM frame is too short');
      return { kind: 'synStream', streamId, flags, block: payload.subarray(10) };
    }
    case FrameType.Headers:
      return { kind: 'headers', streamId: at(payload, 0, 'HEADERS') & idMask, flags, block: payload.subarray(4) };
    case FrameType.SynReply:
      throw new SpdyProtocolError('a client answered a stream that was never opened (SYN_REPLY)');
    case FrameType.RstStream:
      return { kind: 'rstStream', streamId: at(payload, 0, 'RST_STREAM') & idMask };
    case FrameType.Ping:
      return { kind: 'ping', id: at(payload, 0, 'PING') };
    case FrameType.GoAway:
      return { kind: 'goAway' };
    default:
      return { kind: 'ignored' };
  }
};

export const createFrameDecoder = (): FrameDecoder => {
  let pending: Buffer = Buffer.alloc(0);
  /** Data of the frame under way that has not come yet. */
  let data: { readonly streamId: number; readonly fin: boolean; leftBytes: number } | null = null;

  const take = (sizeBytes: number): Buffer => {
    const taken = pending.subarray(0, sizeBytes);
    pending = pending.subarray(sizeBytes);
    return taken;
  };

  const nextData = (streamId: number, fin: boolean, leftBytes: number): SpdyFrame | null => {
    if (leftBytes > 0 && pending.length === 0) {
      data = { streamId, fin, leftBytes };
      return null;
    }
    const piece = take(Math.min(leftBytes, pending.length));
    const left = leftBytes - piece.length;
    data = left === 0 ? null : { streamId, fin, leftBytes: left };
    return { kind: 'data', streamId, data: piece, fin: fin && left === 0 };
  };

  return {
    push: (chunk) => {
      pending = pending.length === 0 ? chunk : Buffer.concat([pending, chunk]);
    },
    next: () => {
      if (data !== null) return nextData(data.streamId, data.fin, data.leftBytes);
      if (pending.length < frameHeaderBytes) return null;
      const first = pending.readUInt32BE(0);
      const second = pending.readUInt32BE(4);
      const flags = second >>> 24;
      const sizeBytes = second & lengthMask;
      if ((first & controlBit) === 0) {
        if (first === 0) throw new SpdyProtocolError('data for stream 0, which cannot be');
        pending = pending.subarray(frameHeaderBytes);
        return nextData(first, (flags & flagFin) !== 0, sizeBytes);
      }
      const saidVersion = (first >>> 16) & 0x7fff;
      if (saidVersion !== version) throw new SpdyProtocolError(`version ${saidVersion} is not SPDY/3`);
      if (sizeBytes > controlBytesMax) {
        throw new SpdyProtocolError(`a control frame of ${sizeBytes} bytes is above the limit of ${controlBytesMax}`);
      }
      if (pending.length < frameHeaderBytes + sizeBytes) return null;
      pending = pending.subarray(frameHeaderBytes);
      return controlFrame(first & 0xffff, flags, take(sizeBytes));
    },
  };
};

const encodeControl = (type: number, flags: number, payload: Buffer): Buffer => {
  const frame = Buffer.allocUnsafe(frameHeaderBytes + payload.length);
  frame.writeUInt32BE((controlBit | (version << 16) | type) >>> 0, 0);
  frame.writeUInt32BE(((flags << 24) | payload.length) >>> 0, 4);
  payload.copy(frame, frameHeaderBytes);
  return frame;
};

const words = (...values: readonly number[]): Buffer => {
  const bytes = Buffer.allocUnsafe(4 * values.length);
  for (const [index, value] of values.entries()) bytes.writeUInt32BE(value, 4 * index);
  return bytes;
};

/** The header of a data frame; the data goes behind it unchanged. */
export const encodeDataHeader = (streamId: number, fin: boolean, sizeBytes: number): Buffer =>
  words(streamId, (((fin ? flagFin : 0) << 24) | sizeBytes) >>> 0);

export const encodeSynReply = (streamId: number, block: Buffer): Buffer =>
  encodeControl(FrameType.SynReply, 0, Buffer.concat([words(streamId), block]));

export const encodeRstStream = (streamId: number, status: number): Buffer =>
  encodeControl(FrameType.RstStream, 0, words(streamId, status));

export const encodePing = (id: number): Buffer => encodeControl(FrameType.Ping, 0, words(id));

/** Status 0: nothing is wrong. */
export const encodeGoAway = (lastStreamId: number): Buffer =>
  encodeControl(FrameType.GoAway, 0, words(lastStreamId, 0));
