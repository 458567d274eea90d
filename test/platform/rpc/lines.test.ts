/** Lines come out as they went in, however the stream is cut, and none is held beyond its bound. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { describe, it } from 'node:test';
import { createLineReader, readLine } from '../../../src/platform/rpc/lines.ts';

const linesOf = (chunks: readonly Buffer[], bytesMax: number): { lines: string[]; tooLong: number } => {
  const lines: string[] = [];
  let tooLong = 0;
  const read = createLineReader(
    bytesMax,
    (line) => lines.push(line),
    () => {
      tooLong += 1;
    },
  );
  chunks.forEach(read);
  return { lines, tooLong };
};

describe('a stream of lines', () => {
  it('gives each line, in whatever pieces it comes', () => {
    const bytes = Buffer.from('first\n\nthird, and älter\nunfinished');
    for (let pieceBytes = 1; pieceBytes <= bytes.length; pieceBytes += 1) {
      const pieces = Array.from({ length: Math.ceil(bytes.length / pieceBytes) }, (_, piece) =>
        bytes.subarray(piece * pieceBytes, (piece + 1) * pieceBytes),
      );
      assert.deepEqual(linesOf(pieces, 100), { lines: ['first', '', 'third, and älter'], tooLong: 0 });
    }
  });

  it('ends with the first line that is too long, and says so once', () => {
    const pieces = ['short\n', 'x'.repeat(11), 'y\n', 'short\n'].map((text) => Buffer.from(text));
    assert.deepEqual(linesOf(pieces, 10), { lines: ['short'], tooLong: 1 });
    assert.deepEqual(linesOf([Buffer.from('0123456789\n')], 10), { lines: ['0123456789'], tooLong: 0 });
  });
});

describe('the first line of a stream', () => {
  it('is read, in whatever pieces, and what follows it stays in the stream', async () => {
    const stream = new PassThrough();
    const reading = readLine(stream);
    for (const piece of ['80', '80', '\nbytes\nof another', ' kind']) {
      stream.write(piece);
      await new Promise((resolve) => setImmediate(resolve));
    }
    assert.equal(await reading, '8080');
    stream.end();
    assert.equal(Buffer.concat(await stream.toArray()).toString(), 'bytes\nof another kind');
  });

  it('is refused when it is longer than any that is sent, ended or not', async () => {
    for (const text of ['x'.repeat(1025), `${'x'.repeat(1025)}\n`]) {
      const stream = new PassThrough();
      stream.write(text);
      await assert.rejects(readLine(stream), /^Error: the other side sent no line$/);
    }
  });

  it('is not waited for when the stream has ended before', async () => {
    const stream = new PassThrough();
    const reading = readLine(stream);
    stream.end('no newline');
    await assert.rejects(reading, /^Error: the other side has gone$/);
  });
});
