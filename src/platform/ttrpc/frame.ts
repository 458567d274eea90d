/**
 * ttrpc frames: a header of ten bytes, big-endian (data length, stream id, type, flags), then the data.
 * Data above the protocol's limit is skipped without being held, so a hostile length costs no memory. Knows nothing of
 * requests, and does no I/O.
 */
import { createFrameReader as createReader, encodeFrame as encode, type FrameForm } from '../rpc/framing.ts';

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

type FrameHead = Pick<Frame, 'streamId' | 'type' | 'flags'>;

const form: FrameForm<FrameHead> = {
  headBytes: frameHeaderBytes,
  bodyBytesMax: frameDataBytesMax,
  writeHead: (target, { streamId, type, flags }, dataBytes) => {
    target.writeUInt32BE(dataBytes, 0);
    target.writeUInt32BE(streamId, 4);
    target.writeUInt8(type, 8);
    target.writeUInt8(flags, 9);
  },
  headOf: (source, at) => ({
    streamId: source.readUInt32BE(at + 4),
    type: source.readUInt8(at + 8),
    flags: source.readUInt8(at + 9),
  }),
  bodyBytesOf: (source, at) => source.readUInt32BE(at),
};

/** Encodes one frame. The caller has made sure that `data` is within frameDataBytesMax. */
export const encodeFrame = (streamId: number, type: number, flags: number, data: Uint8Array): Buffer =>
  encode(form, { streamId, type, flags }, data);

/** Takes chunks as they arrive and calls `emit` once per frame, in order. Never throws, whatever the bytes. */
export const createFrameReader = (emit: (frame: Frame | OversizeFrame) => void): ((chunk: Buffer) => void) =>
  createReader(form, {
    frame: (head, data) => emit({ kind: 'frame', ...head, data }),
    misfit: ({ streamId, type }, sizeBytes) => emit({ kind: 'oversize', streamId, type, sizeBytes }),
  });
