/** ttrpc frames: the documented test vector, and that neither the cutting of the stream nor garbage can upset the decoder. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import {
  createFrameReader,
  encodeFrame,
  type Frame,
  FrameType,
  frameDataBytesMax,
  frameHeaderBytes,
  type OversizeFrame,
} from '../../../src/platform/ttrpc/frame.ts';
import { Response } from '../../../src/wire/ttrpc.ts';

const decodeAll = (chunks: readonly Buffer[]): (Frame | OversizeFrame)[] => {
  const frames: (Frame | OversizeFrame)[] = [];
  const read = createFrameReader((frame) => frames.push(frame));
  for (const chunk of chunks) read(chunk);
  return frames;
};

/** Cuts `bytes` at the given places, each taken modulo what is left. */
const cut = (bytes: Buffer, sizes: readonly number[]): Buffer[] => {
  const chunks: Buffer[] = [];
  let rest = bytes;
  for (const size of sizes) {
    if (rest.length === 0) break;
    const taken = (size % rest.length) + 1;
    chunks.push(rest.subarray(0, taken));
    rest = rest.subarray(taken);
  }
  chunks.push(rest);
  return chunks;
};

const frameArbitrary = fc.record({
  streamId: fc.integer({ min: 0, max: 0xffff_ffff }),
  type: fc.integer({ min: 0, max: 255 }),
  flags: fc.integer({ min: 0, max: 255 }),
  data: fc.uint8Array({ maxLength: 300 }),
});

describe('ttrpc frames', () => {
  it('encode an error reply as the protocol documents it', () => {
    const data = Response.encode({
      status: { code: 12, message: 'method Nope', details: [] },
      payload: Buffer.alloc(0),
    }).finish();
    const frame = encodeFrame(1, FrameType.Response, 0, data);
    assert.equal(frame.toString('hex'), '00000011000000010200' + '0a0f080c120b6d6574686f64204e6f7065');
  });

  it('come out as they went in, however the stream is cut', () => {
    fc.assert(
      fc.property(fc.array(frameArbitrary, { maxLength: 8 }), fc.array(fc.nat()), (frames, sizes) => {
        const bytes = Buffer.concat(frames.map((f) => encodeFrame(f.streamId, f.type, f.flags, f.data)));
        const decoded = decodeAll(cut(bytes, sizes));
        assert.deepEqual(
          decoded,
          frames.map((f) => ({ kind: 'frame', ...f, data: Buffer.from(f.data) })),
        );
      }),
    );
  });

  it('are found again after one that is too large', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 100_000 }),
        fc.array(fc.nat(200_000), { maxLength: 40 }),
        frameArbitrary,
        (excess, sizes, next) => {
          const sizeBytes = frameDataBytesMax + excess;
          const header = Buffer.alloc(frameHeaderBytes);
          header.writeUInt32BE(sizeBytes, 0);
          header.writeUInt32BE(7, 4);
          header.writeUInt8(FrameType.Request, 8);
          const bytes = Buffer.concat([
            header,
            Buffer.alloc(sizeBytes),
            encodeFrame(next.streamId, next.type, next.flags, next.data),
          ]);
          assert.deepEqual(decodeAll(cut(bytes, sizes)), [
            { kind: 'oversize', streamId: 7, type: FrameType.Request, sizeBytes },
            { kind: 'frame', ...next, data: Buffer.from(next.data) },
          ]);
        },
      ),
      { numRuns: 20 },
    );
  });

  it('never throw on garbage', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 64 })), (chunks) => {
        decodeAll(chunks.map((chunk) => Buffer.from(chunk)));
      }),
    );
  });
});
