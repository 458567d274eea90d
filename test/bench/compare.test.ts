/** The benchmark's arithmetic: medians, ratios that say the same whichever way is better, and goals held against them. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Measurement } from '../../bench/compare/measure.ts';
import type { Figures } from '../../bench/compare/metrics.ts';
import { errorsOf, rowsOf, tableOf } from '../../bench/compare/report.ts';
import type { RuntimeName } from '../../bench/compare/runtimes.ts';
import { aheadBy, compare, median, percentile } from '../../bench/compare/statistics.ts';
import { exitFigures, loopFigures } from '../../bench/compare/under-load.ts';

test('the median is the middle value, or the mean of the two in the middle', () => {
  assert.equal(median([3]), 3);
  assert.equal(median([9, 1, 3]), 3);
  assert.equal(median([10, 1, 4, 2]), 3);
  assert.ok(Number.isNaN(median([])));
});

test('the median leaves its input as it is, and sorts numbers as numbers', () => {
  const values = [100, 9, 20];
  assert.equal(median(values), 20);
  assert.deepEqual(values, [100, 9, 20]);
});

test('a percentile is a value that so many per cent do not exceed', () => {
  const hundred = Array.from({ length: 100 }, (_, index) => 100 - index);
  assert.equal(percentile(hundred, 99), 99);
  assert.equal(percentile([5, 3], 99), 5);
  assert.equal(percentile([5, 3], 1), 3);
  assert.ok(Number.isNaN(percentile([], 99)));
});

test('a ratio above 1 is better, whichever way is better', () => {
  assert.equal(aheadBy(50, 100, 'less'), 2);
  assert.equal(aheadBy(100, 50, 'more'), 2);
  assert.equal(aheadBy(100, 50, 'less'), 0.5);
});

test('a comparison has the medians, their ratio, and how it varied from round to round', () => {
  assert.deepEqual(compare([10, 30, 20], [40, 30, 50], 'less'), {
    ours: 20,
    peer: 40,
    ahead: 2,
    aheadMin: 1,
    aheadMax: 4,
  });
});

test('figures that do not belong together round by round are not compared', () => {
  assert.throws(() => compare([1, 2], [1], 'less'), /2 figures cannot be compared with 1/);
  assert.throws(() => compare([], [], 'more'), /one of each per round/);
});

const measurement = (runtime: RuntimeName, round: number, figures: Figures, ...errors: string[]): Measurement => ({
  phase: 'serial',
  round,
  runtime,
  figures,
  errors,
  raw: {},
});

/** Two rounds, in both of which scribe's figure is the first and containerd's the second. */
const twoRounds = (ours: Figures, peer: Figures): Measurement[] =>
  [1, 2].flatMap((round) => [measurement('scribe', round, ours), measurement('containerd', round, peer)]);

const goalsMet = (ours: Figures, peer: Figures): (boolean | undefined)[] =>
  rowsOf(twoRounds(ours, peer), 'containerd').map(({ goal }) => goal?.met);

test('goals are held against the ratio, the multiple or the figure itself', () => {
  assert.deepEqual(goalsMet({ startContainer: 100 }, { startContainer: 150 }), [true]);
  assert.deepEqual(goalsMet({ startContainer: 100 }, { startContainer: 149 }), [false]);
  assert.deepEqual(goalsMet({ listContainers: 130 }, { listContainers: 100 }), [true]);
  assert.deepEqual(goalsMet({ listContainers: 129 }, { listContainers: 100 }), [false]);
  assert.deepEqual(goalsMet({ memory: 100 }, { memory: 100 }), [true]);
  assert.deepEqual(goalsMet({ memory: 101 }, { memory: 100 }), [false]);
  assert.deepEqual(goalsMet({ memoryGrowth: 1.21 }, { memoryGrowth: 1 }), [false]);
  assert.deepEqual(goalsMet({ idle: 0.1 }, { idle: 3 }), [true]);
  assert.deepEqual(goalsMet({ restart: 600 }, { restart: 100 }), [true]);
  assert.deepEqual(goalsMet({ restart: 601 }, { restart: 2000 }), [false]);
});

test('a figure without a goal has none, and what was not measured has no row', () => {
  assert.deepEqual(goalsMet({ version: 1 }, { version: 100 }), [undefined]);
  assert.deepEqual(rowsOf([], 'containerd'), []);
});

test('beside an earlier state of scribe there are no goals', () => {
  const before = twoRounds({ runPodSandbox: 90 }, { runPodSandbox: 100 }).map((one) =>
    one.runtime === 'containerd' ? { ...one, runtime: 'before' as const } : one,
  );
  const rows = rowsOf(before, 'before');
  assert.deepEqual(
    rows.map(({ goal, comparison }) => [goal, comparison.peer]),
    [[null, 100]],
  );
  assert.match(tableOf(rows, 'before'), /\| scribe \| before \|/);
});

test('the table shows every row with its goal, in columns of equal width', () => {
  const table = tableOf(
    rowsOf(twoRounds({ startContainer: 51.26, version: 9321 }, { startContainer: 99.9, version: 9000 }), 'containerd'),
    'containerd',
  );
  const lines = table.split('\n');
  assert.equal(lines.length, 4);
  assert.equal(new Set(lines.map((line) => line.length)).size, 1);
  assert.match(
    table,
    /\| StartContainer, ms +\| +51\.3 \| +99\.9 \| +1\.95 \| +1\.95 to 1\.95 \| ratio at least 1\.5 +\| met/,
  );
  assert.match(table, /\| Version, \/s +\| +9,321 \| +9,000 \|/);
});

test('what containerd has nothing of is held against its goal alone', () => {
  assert.deepEqual(goalsMet({ loopDelay: 20 }, {}), [true]);
  assert.deepEqual(goalsMet({ loopDelay: 20.1 }, {}), [false]);
  const table = tableOf(rowsOf(twoRounds({ loopDelay: 21.26 }, {}), 'containerd'), 'containerd');
  assert.match(table, /delay p99\.9, ms \| +21\.3 \| +\| +\| +\| at most 20 ms \| MISSED/);
});

test('alone nothing is compared, and goals beside a peer are not held against it', () => {
  const alone = [measurement('scribe', 1, { startContainer: 100, restart: 601 })];
  const rows = rowsOf(alone, null);
  assert.deepEqual(
    rows.map(({ key, goal, comparison }) => [key, goal?.met, comparison.ours]),
    [
      ['startContainer', undefined, 100],
      ['restart', false, 601],
    ],
  );
  assert.match(tableOf(rows, null), /restart after kill -9, ms \| +601 \| +\| +\| +\| at most 600 ms \| MISSED/);
});

test('the delay of the event loop is what 999 of 1,000 times were at most', () => {
  const text = ['p99', 'p999', 'max'].map((name, index) => `scribe_event_loop_delay_${name}_seconds 0.00${index}`);
  assert.deepEqual(loopFigures(`${text.join('\n')}\n`), { loopDelay: 1 });
  assert.deepEqual(loopFigures('scribe_event_loop_delay_seconds{quantile="0.999"} 0.002\n'), { loopDelay: 2 });
  assert.throws(() => loopFigures(text.slice(0, 1).join('\n')), /does not tell/);
});

test('of exits, the 99th of 100 counts, and when the last of all was told', () => {
  const samplesMs = { ExitToEvent: Array.from({ length: 200 }, (_, index) => 200 - index), GateToEvent: [7, 9, 8] };
  assert.deepEqual(exitFigures({ samplesMs }), { exitToEvent: 198, exitsTold: 9 });
});

test('what failed is told with where it failed', () => {
  const failed = measurement('containerd', 2, {}, 'ExecSync: no');
  assert.deepEqual(errorsOf([measurement('scribe', 1, {}), failed]), ['containerd, serial 2: ExecSync: no']);
});
