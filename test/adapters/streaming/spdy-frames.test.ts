/** SPDY frames and header blocks: vectors, and that neither the cutting of the stream nor garbage upsets the decoder. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createInflate, deflateSync } from 'node:zlib';
import fc from 'fast-check';
import { headerDictionary } from '../../../src/adapters/streaming/spdy/dictionary.ts';
import {
  controlBytesMax,
  createFrameDecoder,
  encodeDataHeader,
  encodeGoAway,
  encodePing,
  encodeRstStream,
  encodeSynReply,
  FrameType,
  RstStatus,
  type SpdyFrame,
  SpdyProtocolError,
} from '../../../src/adapters/streaming/spdy/frames.ts';
import { createEmptyBlocks, createHeaderInflater, parseHeaders } from '../../../src/adapters/streaming/spdy/headers.ts';
import { control, createBlocks, data, ping, plainBlock, rstStream, synStream } from './spdy-client.ts';

const decodeAll = (chunks: readonly Buffer[]): SpdyFrame[] => {
  const decoder = createFrameDecoder();
  const frames: SpdyFrame[] = [];
  for (const chunk of chunks) {
    decoder.push(chunk);
    for (let frame = decoder.next(); frame !== null; frame = decoder.next()) frames.push(frame);
  }
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

/** Pieces of one data frame put together again. */
const joined = (frames: readonly SpdyFrame[]): SpdyFrame[] => {
  const whole: SpdyFrame[] = [];
  for (const frame of frames) {
    const last = whole.at(-1);
    if (frame.kind === 'data' && last?.kind === 'data' && !last.fin && last.streamId === frame.streamId) {
      whole[whole.length - 1] = { ...frame, data: Buffer.concat([last.data, frame.data]) };
    } else whole.push(frame);
  }
  return whole;
};

const id = fc.integer({ min: 1, max: 0x7fff_ffff });
const bytes = fc.uint8Array({ maxLength: 300 }).map((array) => Buffer.from(array));

/** A frame as a client writes it, and as it has to be understood. */
const said = (wire: Buffer, meaning: SpdyFrame) => ({ wire, meaning });

const frame = fc.oneof(
  // With FIN, so that joined() finds where a frame ends.
  fc
    .tuple(id, bytes)
    .map(([streamId, payload]) =>
      said(data(streamId, payload, 1), { kind: 'data', streamId, data: payload, fin: true }),
    ),
  fc
    .tuple(id, bytes, fc.nat(3))
    .map(([streamId, block, flags]) =>
      said(synStream(streamId, block, flags), { kind: 'synStream', streamId, flags, block }),
    ),
  id.map((streamId) => said(rstStream(streamId), { kind: 'rstStream', streamId })),
  id.map((pingId) => said(ping(pingId), { kind: 'ping', id: pingId })),
  bytes.map((payload) => said(control(FrameType.Settings, 0, payload), { kind: 'ignored' })),
  bytes.map((payload) => said(control(FrameType.WindowUpdate, 0, payload), { kind: 'ignored' })),
);

describe('SPDY frames', () => {
  it('are written as the protocol has them', () => {
    assert.equal(encodeDataHeader(1, true, 5).toString('hex'), '0000000101000005');
    assert.equal(encodeDataHeader(3, false, 65_536).toString('hex'), '0000000300010000');
    assert.equal(
      encodeRstStream(5, RstStatus.Cancel).toString('hex'),
      '80030003' + '00000008' + '00000005' + '00000005',
    );
    assert.equal(encodePing(2).toString('hex'), '80030006' + '00000004' + '00000002');
    assert.equal(encodeGoAway(7).toString('hex'), '80030007' + '00000008' + '00000007' + '00000000');
    assert.equal(
      encodeSynReply(1, Buffer.from('aa', 'hex')).toString('hex'),
      '80030002' + '00000005' + '00000001' + 'aa',
    );
  });

  it('come out as they went in, however the stream is cut', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 8 }), fc.array(fc.nat()), (frames, sizes) => {
        const decoded = decodeAll(cut(Buffer.concat(frames.map(({ wire }) => wire)), sizes));
        assert.deepEqual(
          joined(decoded),
          frames.map(({ meaning }) => meaning),
        );
      }),
    );
  });

  it('of garbage are refused or passed over, never more', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 2000 }), fc.array(fc.nat()), (garbage, sizes) => {
        try {
          decodeAll(cut(Buffer.from(garbage), sizes));
        } catch (error) {
          assert.ok(error instanceof SpdyProtocolError);
        }
      }),
    );
  });

  it('hand data on before the whole frame is there', () => {
    const whole = data(1, Buffer.alloc(1000, 7));
    assert.deepEqual(decodeAll([whole.subarray(0, 108)]), [
      { kind: 'data', streamId: 1, data: Buffer.alloc(100, 7), fin: false },
    ]);
  });

  for (const [what, wire] of Object.entries({
    'of another version': control(FrameType.Ping, 0, Buffer.alloc(4), 2),
    'too large for control': control(FrameType.Settings, 0, Buffer.alloc(controlBytesMax + 1)),
    'too short for their kind': control(FrameType.SynStream, 0, Buffer.alloc(9)),
    'of data for stream 0': data(0, 'x'),
    'only a server may send': control(FrameType.SynReply, 0, Buffer.alloc(8)),
  })) {
    it(`${what} are refused`, () => {
      assert.throws(() => decodeAll([wire]), SpdyProtocolError);
    });
  }
});

describe('SPDY header blocks', () => {
  it('start from the dictionary of the protocol', () => {
    // zlib names the dictionary it wants by its Adler-32.
    const wanted = deflateSync(Buffer.from('x'), { dictionary: headerDictionary }).readUInt32BE(2);
    assert.equal(wanted, 0xe3c6_a7c2);
    assert.equal(headerDictionary.length, 1423);
  });

  it('are read one after the other', async () => {
    const header = fc.stringMatching(/^[a-z0-9-]{1,20}$/);
    const headers = fc.dictionary(header, fc.stringMatching(/^[ -~]{0,60}$/), { maxKeys: 10, noNullPrototype: true });
    await fc.assert(
      fc.asyncProperty(fc.array(headers, { minLength: 1, maxLength: 6 }), async (sets) => {
        const compress = createBlocks();
        const inflater = createHeaderInflater();
        for (const set of sets) {
          const read = parseHeaders(await inflater.inflate(await compress(plainBlock(set))));
          assert.deepEqual(new Map(read), new Map(Object.entries(set)));
        }
        inflater.close();
      }),
      { numRuns: 25 },
    );
  });

  it('have their names in lower case, and the first of several values', () => {
    const headers = parseHeaders(plainBlock({ StreamType: 'stdin\0stdout' }));
    assert.equal(headers.get('streamtype'), 'stdin');
  });

  it('are refused when they would inflate to much more than they are', async () => {
    const inflater = createHeaderInflater();
    const bomb = await createBlocks()(Buffer.alloc(4_000_000));
    assert.ok(bomb.length < controlBytesMax);
    await assert.rejects(inflater.inflate(bomb), SpdyProtocolError);
    await assert.rejects(inflater.inflate(bomb), SpdyProtocolError);
  });

  it('of garbage are refused', async () => {
    await assert.rejects(createHeaderInflater().inflate(Buffer.from('garbage')), SpdyProtocolError);
    await assert.rejects(createHeaderInflater().inflate(Buffer.alloc(0)), SpdyProtocolError);
    for (const block of ['', '00000001', '00000001ffffffff', '7fffffff', '0000000100000001']) {
      assert.throws(() => parseHeaders(Buffer.from(block, 'hex')), SpdyProtocolError);
    }
  });

  it('that the server sends say nothing, to any inflater', async () => {
    const empty = createEmptyBlocks();
    const inflate = createInflate({ dictionary: headerDictionary });
    const chunks: Buffer[] = [];
    inflate.on('data', (chunk: Buffer) => chunks.push(chunk));
    for (let i = 0; i < 3; i += 1) await new Promise<void>((done) => inflate.write(empty(), () => done()));
    inflate.destroy();
    assert.equal(Buffer.concat(chunks).toString('hex'), '00000000'.repeat(3));
  });
});
