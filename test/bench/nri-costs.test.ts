/** What NRI costs, of rounds: the median of what differs within each of them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { costsOf, type NriRound } from '../../bench/compare/nri-costs.ts';
import { nriModes } from '../../bench/compare/runtimes.ts';

/** Each round: off, none, logger. */
const rounds = (runtime: 'scribe' | 'containerd', ...times: readonly (readonly number[])[]): readonly NriRound[] =>
  times.flatMap((row, at) =>
    nriModes.map((nri, mode) => ({
      ...{ round: at + 1, runtime, nri, createContainerMs: row[mode] ?? Number.NaN },
      cpuMs: (row[mode] ?? Number.NaN) / 2,
    })),
  );

test('a cost is the median of the differences within the rounds, and not the difference of medians', () => {
  const [off, none, logger, ...others] = costsOf([
    ...rounds('scribe', [10, 11, 13], [30, 31, 34], [20, 25, 22]),
    ...rounds('containerd', [5, 5, 9]),
  ]);
  assert.deepEqual([off?.createContainerMs, off?.moreMs, off?.moreCpuMs], [20, 0, 0]);
  assert.deepEqual([none?.createContainerMs, none?.moreMs, none?.moreCpuMs], [25, 1, 0.5]);
  assert.deepEqual([logger?.moreMs, logger?.between], [3, [3, 4]]);
  assert.deepEqual(
    others.map(({ runtime, nri, moreMs }) => [runtime, nri, moreMs]),
    [
      ['containerd', 'off', 0],
      ['containerd', 'none', 0],
      ['containerd', 'logger', 4],
    ],
  );
});
