/** Lines come out as they went in, however the stream is cut, and none is held beyond its bound. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { createLineReader } from '../../../src/platform/rpc/lines.ts';

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
