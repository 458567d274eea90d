/** Splitting output into CRI log records: the same bytes give the same records, however they arrive. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createRecordEncoder, LINE_BYTES_LIMIT, type StreamName } from '../../../src/adapters/log-keeper/records.ts';
import { systemClock } from '../../../src/adapters/log-keeper/stamp.ts';

interface LogRecord {
  readonly stream: string;
  readonly tag: string;
  readonly content: string;
}

/** As the configuration has it by default. */
const CONTENT_BYTES_MAX = 16384;

const encoder = createRecordEncoder(systemClock);
const recordPattern = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{9}Z (stdout|stderr) ([PF]) (.*)$/s;

const parse = (log: Buffer): { records: LogRecord[]; times: string[] } => {
  const text = log.toString('latin1');
  assert.ok(text === '' || text.endsWith('\n'), 'the log ends with a whole record');
  const lines = text.split('\n').slice(0, -1);
  const records = lines.map((line) => {
    const [, stream = '', tag = '', content = ''] = recordPattern.exec(line) ?? assert.fail(`no record: ${line}`);
    return { stream, tag, content };
  });
  return { records, times: lines.map((line) => line.slice(0, 30)) };
};

/** Encodes the bytes as they would arrive in pieces of these lengths (the last one again and again). */
const encodeInPieces = (
  bytes: Buffer,
  lengths: readonly number[],
  lineBytesMax = CONTENT_BYTES_MAX,
  stream: StreamName = 'stdout',
): Buffer => {
  const written: Buffer[] = [];
  const write = (records: Buffer, used: number): void => {
    written.push(Buffer.from(records.subarray(0, used)));
  };
  let held = Buffer.alloc(0);
  for (let at = 0, piece = 0; at < bytes.length; piece += 1) {
    const length = Math.min(lengths[Math.min(piece, lengths.length - 1)] ?? 1, encoder.readArea.length);
    const read = bytes.copy(encoder.readArea, 0, at, at + length);
    held = Buffer.from(encoder.encode(stream, held, read, lineBytesMax, write));
    assert.ok(held.length <= lineBytesMax + 1);
    at += read;
  }
  encoder.encodeTail(stream, held, lineBytesMax, write);
  return Buffer.concat(written);
};

const piecesOf = (content: string, size: number): string[] =>
  Array.from({ length: Math.max(1, Math.ceil(content.length / size)) }, (_, piece) =>
    content.slice(piece * size, (piece + 1) * size),
  );

/** The same by plain string work on the whole. */
const expectedRecords = (bytes: Buffer, lineBytesMax: number): LogRecord[] => {
  const lines = bytes.toString('latin1').split('\n');
  const tail = lines.pop() ?? '';
  const finished = lines.flatMap((line) => {
    const pieces = piecesOf(line.replace(/\r$/, ''), lineBytesMax);
    return pieces.map((content, index) => ({
      stream: 'stdout',
      tag: index === pieces.length - 1 ? 'F' : 'P',
      content,
    }));
  });
  const unfinished =
    tail === '' ? [] : piecesOf(tail, lineBytesMax).map((content) => ({ stream: 'stdout', tag: 'P', content }));
  return [...finished, ...unfinished];
};

const run = (byte: string, length: number): Buffer => Buffer.alloc(length, byte);
const near = (length: number): fc.Arbitrary<number> => fc.integer({ min: length - 3, max: length + 3 });

/** Output with everything that could go wrong at an edge: empty lines, \r anywhere, lines about as long as fit. */
const output = fc
  .array(
    fc.oneof(
      { weight: 4, arbitrary: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)) },
      { weight: 3, arbitrary: fc.constantFrom('\n', '\r', '\r\n', '\n\n', 'x', '').map((text) => Buffer.from(text)) },
      { weight: 2, arbitrary: fc.oneof(near(CONTENT_BYTES_MAX), near(2 * CONTENT_BYTES_MAX)).map((n) => run('a', n)) },
      { weight: 1, arbitrary: fc.oneof(near(65536), fc.nat(200_000)).map((n) => run('b', n)) },
    ),
    { maxLength: 12 },
  )
  .map((parts) => Buffer.concat(parts));

const lengths = fc.array(
  fc.oneof(fc.integer({ min: 1, max: 30 }), near(CONTENT_BYTES_MAX), fc.integer({ min: 1, max: 65536 })),
  { minLength: 1, maxLength: 20 },
);

const lineLimits = fc.constantFrom(1024, CONTENT_BYTES_MAX, LINE_BYTES_LIMIT);

const cutInto = (bytes: Buffer, cuts: readonly number[]): readonly number[] => {
  // Pieces of one byte make sense for short outputs only; long ones would take for ever.
  const last = cuts.at(-1) ?? 1;
  return bytes.length > 50_000 && last < 1000 ? [...cuts, 4093] : cuts;
};

describe('log records', () => {
  it('C16: are the same however the bytes are cut, and hold every byte once', () => {
    fc.assert(
      fc.property(output, lengths, lineLimits, (bytes, cuts, lineBytesMax) => {
        const { records } = parse(encodeInPieces(bytes, cutInto(bytes, cuts), lineBytesMax));
        assert.deepEqual(records, expectedRecords(bytes, lineBytesMax));
        const joined = records.map(({ tag, content }) => (tag === 'F' ? `${content}\n` : content)).join('');
        assert.equal(joined, bytes.toString('latin1').replaceAll('\r\n', '\n'));
      }),
      { numRuns: 400 },
    );
  });

  it('split content at 16384 bytes, the last piece tagged full', () => {
    const cases = [
      [CONTENT_BYTES_MAX, [['F', CONTENT_BYTES_MAX]]],
      [
        CONTENT_BYTES_MAX + 1,
        [
          ['P', CONTENT_BYTES_MAX],
          ['F', 1],
        ],
      ],
      [
        2 * CONTENT_BYTES_MAX,
        [
          ['P', CONTENT_BYTES_MAX],
          ['F', CONTENT_BYTES_MAX],
        ],
      ],
    ] as const;
    for (const [length, expected] of cases) {
      for (const newline of ['\n', '\r\n']) {
        const bytes = Buffer.concat([run('a', length), Buffer.from(newline)]);
        const { records } = parse(encodeInPieces(bytes, [65536]));
        assert.deepEqual(
          records.map(({ tag, content }) => [tag, content.length]),
          expected,
        );
      }
    }
  });

  it('tag what no newline ends as partial, and keep a lone \\r', () => {
    const { records } = parse(
      encodeInPieces(Buffer.from('one\r\ntwo\rthree\nno end\r'), [65536], CONTENT_BYTES_MAX, 'stderr'),
    );
    assert.deepEqual(records, [
      { stream: 'stderr', tag: 'F', content: 'one' },
      { stream: 'stderr', tag: 'F', content: 'two\rthree' },
      { stream: 'stderr', tag: 'P', content: 'no end\r' },
    ]);
  });

  it('have times that are their own, rise, and are of now', () => {
    const before = Date.now();
    const { times } = parse(encodeInPieces(Buffer.from('\n'.repeat(50_000)), [65536]));
    const after = Date.now();
    for (const [index, time] of times.entries()) assert.ok(index === 0 || time > (times[index - 1] ?? ''), time);
    assert.ok(Date.parse(times[0] ?? '') >= before - 2, `${times[0]} is not before ${before}`);
    assert.ok(Date.parse(times.at(-1) ?? '') <= after + 2, `${times.at(-1)} is not after ${after}`);
  });

  it('carry notes of our own on stderr', () => {
    const { records } = parse(encoder.note('something\nhappened'));
    assert.deepEqual(records, [{ stream: 'stderr', tag: 'F', content: 'something happened' }]);
  });
});
