/**
 * ttrpc frames: a header of ten bytes, big-endian (data length, stream id, type, flags), then the data.
 * Owns encoding and incremental decoding, whatever the pieces in which bytes arrive. Data above the protocol's limit
 * is skipped without being held, so a hostile length costs no memory. Knows nothing of requests, and does no I/O.
 */

export const FrameType = { Request: 1, Response: 2, Data: 3 } as const;

export const frameHeaderBytes = 10;

/** The protocol's limit on the data of one frame, in bytes. */
export const frameDataBytesMax = 4_194_304;

export interface Frame {
  readonly kind: 'frame';
  readonly streamId: number;
  /** Any byte: types other than FrameType's have to be ignored. */
  readonly type: number;
  /** Of streaming calls; a unary call has none. */
  readonly flags: number;
  readonly data: Buffer;
}

/** A frame whose data was skipped because it is above the limit. */
export interface OversizeFrame {
  readonly kind: 'oversize';
  readonly streamId: number;
  readonly type: number;
  readonly sizeBytes: number;
}

/** Encodes one frame. The caller has made sure that `data` is within frameDataBytesMax. */
export const encodeFrame = (streamId: number, type: number, flags: number, data: Uint8Array): Buffer => {
  const frame = Buffer.allocUnsafe(frameHeaderBytes + data.length);
  frame.writeUInt32BE(data.length, 0);
  frame.writeUInt32BE(streamId, 4);
  frame.writeUInt8(type, 8);
  frame.writeUInt8(flags, 9);
  frame.set(data, frameHeaderBytes);
  return frame;
};

/** Feeds on chunks as they arrive and calls `emit` once per frame, in order. Never throws, whatever the bytes. */
export const createFrameDecoder = (
  emit: (frame: Frame | OversizeFrame) => void,
): { readonly push: (chunk: Buffer) => void } => {
  let pending: Buffer[] = [];
  let pendingBytes = 0;
  let skipBytes = 0;
  let wantBytes = frameHeaderBytes;

  const take = (): Buffer => {
    const whole = pending.length === 1 && pending[0] !== undefined ? pending[0] : Buffer.concat(pending, pendingBytes);
    pending = [];
    pendingBytes = 0;
    return whole;
  };
  const keep = (rest: Buffer): void => {
    if (rest.length === 0) return;
    pending.push(rest);
    pendingBytes += rest.length;
  };
  /** Emits the frame at the start of `bytes` and returns how many bytes it took, 0 when more are needed. */
  const decodeOne = (bytes: Buffer): number => {
    if (bytes.length < frameHeaderBytes) {
      wantBytes = frameHeaderBytes;
      return 0;
    }
    const sizeBytes = bytes.readUInt32BE(0);
    const streamId = bytes.readUInt32BE(4);
    const type = bytes.readUInt8(8);
    if (sizeBytes > frameDataBytesMax) {
      skipBytes = sizeBytes;
      emit({ kind: 'oversize', streamId, type, sizeBytes });
      return frameHeaderBytes;
    }
    const endsAt = frameHeaderBytes + sizeBytes;
    if (bytes.length < endsAt) {
      wantBytes = endsAt;
      return 0;
    }
    emit({ kind: 'frame', streamId, type, flags: bytes.readUInt8(9), data: bytes.subarray(frameHeaderBytes, endsAt) });
    return endsAt;
  };

  return {
    push: (chunk) => {
      let rest = chunk;
      while (rest.length > 0) {
        if (skipBytes > 0) {
          const skipped = Math.min(skipBytes, rest.length);
          skipBytes -= skipped;
          rest = rest.subarray(skipped);
          continue;
        }
        keep(rest);
        if (pendingBytes < wantBytes) return;
        const bytes = take();
        const taken = decodeOne(bytes);
        if (taken === 0) {
          keep(bytes);
          return;
        }
        wantBytes = frameHeaderBytes;
        rest = bytes.subarray(taken);
      }
    },
  };
};
