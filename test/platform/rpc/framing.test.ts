/** Frames come out as they went in, however the stream is cut, and no length that a head claims is believed beyond its bound. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createFrameReader, encodeFrame, type FrameForm } from '../../../src/platform/rpc/framing.ts';

/** A byte that names the frame, then the length with the head's own three bytes, as some protocols count it. */
const form: FrameForm<number> = {
  headBytes: 3,
  bodyBytesMax: 200,
  writeHead: (target, name, bodyBytes) => {
    target.writeUInt8(name, 0);
    target.writeUInt16BE(bodyBytes + 3, 1);
  },
  headOf: (source, at) => source.readUInt8(at),
  bodyBytesOf: (source, at) => source.readUInt16BE(at + 1) - 3,
};

type Told = readonly [name: number, body: string] | readonly [name: number, misfitBytes: number];

const readAll = (chunks: readonly Buffer[]): Told[] => {
  const told: Told[] = [];
  const read = createFrameReader(form, {
    frame: (name, body) => told.push([name, body.toString('hex')]),
    misfit: (name, bodyBytes) => told.push([name, bodyBytes]),
  });
  for (const chunk of chunks) read(chunk);
  return told;
};

/** Cuts `bytes` at the given places, each taken modulo what is left; empty pieces among them. */
const cut = (bytes: Buffer, sizes: readonly number[]): Buffer[] => {
  const chunks: Buffer[] = [];
  let rest = bytes;
  for (const size of sizes) {
    const taken = size % (rest.length + 1);
    chunks.push(rest.subarray(0, taken));
    rest = rest.subarray(taken);
  }
  return [...chunks, rest];
};

const head = (name: number, claimed: number): Buffer => Buffer.from([name, claimed >> 8, claimed & 0xff]);

describe('frames', () => {
  it('come out as they went in, however the stream is cut', () => {
    const frames = fc.array(fc.tuple(fc.nat(255), fc.uint8Array({ maxLength: 200 })), { maxLength: 6 });
    fc.assert(
      fc.property(frames, fc.array(fc.nat(500)), (sent, sizes) => {
        const bytes = Buffer.concat(sent.map(([name, body]) => encodeFrame(form, name, body)));
        const expected = sent.map(([name, body]) => [name, Buffer.from(body).toString('hex')]);
        assert.deepEqual(readAll(cut(bytes, sizes)), expected);
      }),
    );
  });

  it('are found again behind one that is too long, which is told once', () => {
    fc.assert(
      fc.property(fc.integer({ min: 201, max: 5000 }), fc.array(fc.nat(6000)), (bodyBytes, sizes) => {
        const next = encodeFrame(form, 9, Buffer.from('next'));
        const bytes = Buffer.concat([head(7, bodyBytes + 3), Buffer.alloc(bodyBytes, 1), next, next]);
        const nextTold = [9, Buffer.from('next').toString('hex')];
        assert.deepEqual(readAll(cut(bytes, sizes)), [[7, bodyBytes], nextTold, nextTold]);
      }),
    );
  });

  it('are told as misfits when they claim less than nothing', () => {
    assert.deepEqual(readAll([head(7, 2), encodeFrame(form, 8, Buffer.alloc(0))]), [
      [7, -1],
      [8, ''],
    ]);
  });

  it('as long as the bound pass, and longer ones are not made', () => {
    const longest = encodeFrame(form, 1, Buffer.alloc(200, 0xab));
    assert.deepEqual(readAll([longest]), [[1, 'ab'.repeat(200)]]);
    assert.throws(() => encodeFrame(form, 1, Buffer.alloc(201)), /^RangeError: .* 201 bytes, above the limit of 200/);
  });

  it('end with what a listener throws, for a protocol in which a misfit is the end', () => {
    const read = createFrameReader(form, {
      frame: () => assert.fail('there is no frame'),
      misfit: (_name, bodyBytes) => {
        throw new Error(`a frame of ${bodyBytes} bytes`);
      },
    });
    assert.throws(() => read(head(7, 1003)), /^Error: a frame of 1000 bytes$/);
  });
});
