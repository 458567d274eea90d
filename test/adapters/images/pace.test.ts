/** When a transfer is too slow to be waited for: by what came while it was waited for. What follows: registry-faults.test.ts. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createPace } from '../../../src/adapters/images/registry/pace.ts';

const PIECE = 1000;

/** After how many pieces, each waited for so long, it is too little; null: not after so many. */
const givenUpAfter = (waitedMs: number, bytes: number, bytesMin = 65_536): number | null => {
  const isTooLittle = createPace({ timeoutMs: 300_000, bytesMin });
  for (let pieces = 1; pieces <= 100_000; pieces += 1) if (isTooLittle(waitedMs, bytes)) return pieces;
  return null;
};

test('a byte every few seconds is too little, and is found out when the time is over', () => {
  assert.equal(givenUpAfter(3_000, 1), 100);
  assert.equal(givenUpAfter(250_000, 1), 2);
});

test('a slow link is none, however many share it', () => {
  // 1 Mbit/s among four ranges of each of twelve layers, and 56 kbit/s among twelve layers.
  for (const bytesPerSecond of [125_000 / 48, 7_000 / 12])
    assert.equal(givenUpAfter((PIECE / bytesPerSecond) * 1000, PIECE), null);
});

test('what is not waited for is never too late, nor is any byte where none is wanted', () => {
  assert.equal(givenUpAfter(0, 1), null);
  assert.equal(givenUpAfter(250_000, 1, 0), null);
  assert.equal(createPace({ timeoutMs: Number.POSITIVE_INFINITY, bytesMin: 65_536 })(1e12, 1), false);
});
