/** Hashing a long text in slices: the same hash, and others have their turn in between. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hashOfPieces } from '../../src/journal/slices.ts';
import { hashOfState } from '../../src/journal/snapshots.ts';

const pieces = Array.from({ length: 1000 }, (_, index) => `piece ${index}: \u00e9\u{1f600} `);

test('C17: the hash of pieces is that of the whole, and after every slice others have their turn', async () => {
  let clockMs = 0;
  const pauses: number[] = [];
  const hash = await hashOfPieces(pieces, {
    sliceMs: 4,
    // A millisecond for each look at the clock, of which a piece takes one.
    nowMs: () => clockMs++,
    pause: async () => void pauses.push(clockMs),
  });
  assert.equal(hash, hashOfState(pieces.join('')));
  const slicesMs = pauses.map((atMs, index) => atMs - (pauses[index - 1] ?? 0));
  assert.ok(pauses.length >= 199, `${pauses.length} pauses`);
  assert.ok(Math.max(...slicesMs) <= 6, `a slice of ${Math.max(...slicesMs)} ms`);
});

test('nothing but an empty text has no slices', async () => {
  const pause = (): Promise<void> => assert.fail('a pause');
  assert.equal(await hashOfPieces([], { sliceMs: 4, nowMs: () => 0, pause }), hashOfState(''));
});
