/** Counting for reports: groups, the slowest, and what there is no room for. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createSlowest, createTally, firstOfEach, type Item } from '../../../src/cli/report/count.ts';

const item = (name: string, durationMs: number | null, period: string | null = null): Item => ({
  period,
  key: { name },
  atNs: 1n,
  failed: false,
  answered: true,
  durationMs,
  sizeBytes: null,
});

describe('counting', () => {
  test('what there is no room for is counted, too', () => {
    const tally = createTally(2);
    for (const name of ['a', 'b', 'c', 'b', 'c', 'b']) tally.add(item(name, 2));
    const shown = tally.groups().map(({ key, count, totalMs }) => [key['name'], count, totalMs]);
    assert.deepEqual(shown, [
      ['b', 3, 6],
      ['a', 1, 2],
    ]);
    assert.equal(tally.beyond(), 2);
  });

  test('of each period the slowest are kept, however many there are', () => {
    const slowest = createSlowest(3);
    for (let index = 0; index < 1000; index += 1)
      slowest.add(item(`call ${index}`, (index * 7919) % 1000, index % 2 === 0 ? 'even' : 'odd'));
    slowest.add(item('still under way', null, 'even'));
    const kept = slowest.groups().map(({ period, maxMs }) => [period, maxMs]);
    assert.deepEqual(kept, [
      ['even', 998],
      ['even', 996],
      ['even', 994],
      ['odd', 999],
      ['odd', 997],
      ['odd', 995],
    ]);
    const { groups, left } = firstOfEach(slowest.groups(), 2);
    assert.deepEqual([groups.map(({ maxMs }) => maxMs), left], [[998, 996, 999, 997], 2]);
  });
});
