/** How the window of time moves, where the axis has its marks, and how a view stands in the address. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { momentText, ticksOf } from '../../src/ui/ticks.ts';
import {
  bounded,
  following,
  panned,
  showing,
  type TimeWindow,
  wholeOf,
  widthOf,
  zoomed,
} from '../../src/ui/time-window.ts';
import { FIRST_VIEW, hashOf, viewOf } from '../../src/ui/view-state.ts';

const DAY = Date.UTC(2026, 10, 21);
const whole = wholeOf(DAY, DAY + 100_000);

describe('the window', () => {
  test('the whole has a margin, also where there is one record only', () => {
    assert.deepEqual(whole, { fromMs: DAY - 1000, toMs: DAY + 101_000 });
    assert.ok(widthOf(wholeOf(DAY, DAY)) > 0);
  });

  test('zooming keeps the moment under the mouse where it is', () => {
    const window = { fromMs: DAY, toMs: DAY + 10_000 };
    assert.deepEqual(zoomed(window, 0.5, DAY + 2000, whole), { fromMs: DAY + 1000, toMs: DAY + 6000 });
    assert.deepEqual(zoomed(window, 0.5, DAY, whole), { fromMs: DAY, toMs: DAY + 5000 });
  });

  test('zooming out from anywhere ends at all that is recorded, not beside it', () => {
    const window = { fromMs: DAY + 99_999, toMs: DAY + 100_000 };
    assert.deepEqual(zoomed(window, 1e9, DAY + 99_999.5, whole), whole);
  });

  test('nobody zooms out of the whole, in past a millisecond, or pans away from what is recorded', () => {
    const moves = fc.array(
      fc.record({
        factor: fc.double({ min: 0.01, max: 100, noNaN: true }),
        share: fc.double({ min: -3, max: 3, noNaN: true }),
      }),
    );
    fc.assert(
      fc.property(moves, (steps) => {
        let window: TimeWindow = whole;
        for (const { factor, share } of steps) {
          window = panned(zoomed(window, factor, window.fromMs + widthOf(window) / 3, whole), share, whole);
          assert.ok(widthOf(window) >= 0.99 && widthOf(window) <= widthOf(whole) + 1);
          assert.ok(window.toMs > whole.fromMs && window.fromMs < whole.toMs);
        }
      }),
    );
  });

  test('panning by a share and back comes to the same place', () => {
    const window = { fromMs: DAY + 40_000, toMs: DAY + 50_000 };
    assert.deepEqual(panned(panned(window, 0.5, whole), -0.5, whole), window);
  });

  test('following keeps the width and has the newest near the end; showing moves only where it has to', () => {
    const window = { fromMs: DAY, toMs: DAY + 10_000 };
    assert.deepEqual(following(window, DAY + 50_000), { fromMs: DAY + 40_500, toMs: DAY + 50_500 });
    assert.equal(showing(window, DAY + 5), window);
    assert.deepEqual(showing(window, DAY + 60_000), { fromMs: DAY + 55_000, toMs: DAY + 65_000 });
  });

  test('an end that is not said is that of all that is recorded, wherever the other is', () => {
    const bounds = (since: number, until: number): TimeWindow => bounded({ fromMs: since, toMs: until }, whole);
    assert.deepEqual(bounds(DAY + 5, Number.POSITIVE_INFINITY), { fromMs: DAY + 5, toMs: whole.toMs });
    assert.deepEqual(bounds(Number.NEGATIVE_INFINITY, DAY + 5), { fromMs: whole.fromMs, toMs: DAY + 5 });
    assert.deepEqual(bounds(DAY, DAY + 5), { fromMs: DAY, toMs: DAY + 5 });
    for (const [since, until] of [
      [whole.toMs + 1e9, Number.POSITIVE_INFINITY],
      [Number.NEGATIVE_INFINITY, whole.fromMs - 1e9],
    ] as const)
      assert.ok(widthOf(bounds(since, until)) > 0);
  });
});

describe('the axis', () => {
  const labels = (fromMs: number, toMs: number): string[] =>
    ticksOf({ fromMs, toMs }, 6, 'UTC').map(({ label }) => label);

  test('marks stand at round moments, and say as much as is needed', () => {
    assert.deepEqual(labels(DAY + 1, DAY + 60_000), [
      '00:00:10',
      '00:00:20',
      '00:00:30',
      '00:00:40',
      '00:00:50',
      '00:01:00',
    ]);
    assert.deepEqual(labels(DAY - 3_600_000, DAY + 3_600_000), ['23:00', '23:30', '2026-11-21', '00:30', '01:00']);
    assert.deepEqual(labels(DAY + 1000, DAY + 1010), [
      '00:00:01.000',
      '00:00:01.002',
      '00:00:01.004',
      '00:00:01.006',
      '00:00:01.008',
      '00:00:01.010',
    ]);
    assert.deepEqual(labels(DAY, DAY + 4 * 86_400_000), [
      '2026-11-21',
      '2026-11-22',
      '2026-11-23',
      '2026-11-24',
      '2026-11-25',
    ]);
  });

  test('marks are at round moments of a zone also where it changes its distance from UTC', () => {
    const [fromMs, toMs] = [Date.UTC(2026, 9, 23, 12), Date.UTC(2026, 9, 27, 12)];
    assert.deepEqual(
      ticksOf({ fromMs, toMs }, 6, 'Europe/Berlin').map(
        ({ atMs, label }) => `${new Date(atMs).toISOString()} ${label}`,
      ),
      [
        '2026-10-23T22:00:00.000Z 2026-10-24',
        '2026-10-24T22:00:00.000Z 2026-10-25',
        '2026-10-25T23:00:00.000Z 2026-10-26',
        '2026-10-26T23:00:00.000Z 2026-10-27',
      ],
    );
    assert.equal(momentText(DAY, 'Asia/Kathmandu'), '2026-11-21 05:45:00.000');
  });

  test('where clocks are put forward or back there are as many marks as elsewhere, each in its place', () => {
    const berlin = (fromMs: number, toMs: number): string[] =>
      ticksOf({ fromMs, toMs }, 4.5, 'Europe/Berlin').map(
        ({ atMs, label }) => `${new Date(atMs).toISOString().slice(11, 16)}Z ${label}`,
      );
    const [forward, back] = [Date.UTC(2026, 2, 29, 1), Date.UTC(2026, 9, 25, 1)];
    const [minutes, hours] = [60_000, 3_600_000];
    assert.deepEqual(berlin(forward - 10 * minutes, forward + 10 * minutes), [
      ...['00:50Z 01:50', '00:55Z 01:55', '01:00Z 03:00', '01:05Z 03:05', '01:10Z 03:10'],
    ]);
    assert.deepEqual(berlin(back - 10 * minutes, back + 10 * minutes), [
      ...['00:50Z 02:50', '00:55Z 02:55', '01:00Z 02:00', '01:05Z 02:05', '01:10Z 02:10'],
    ]);
    assert.deepEqual(berlin(forward - 4 * hours, forward + 4 * hours), [
      ...['21:00Z 22:00', '23:00Z 2026-03-29', '01:00Z 03:00', '02:00Z 04:00', '04:00Z 06:00'],
    ]);
    assert.deepEqual(berlin(back - 4 * hours, back + 4 * hours), [
      ...['22:00Z 2026-10-25', '00:00Z 02:00', '03:00Z 04:00', '05:00Z 06:00'],
    ]);
    // Zoomed in on the change: counted by the clock there would be a million.
    for (const change of [forward, back])
      assert.equal(ticksOf({ fromMs: change - 5, toMs: change + 5 }, 5, 'Europe/Berlin').length, 5);
  });

  test('ten years have days for marks', () => {
    const marks = labels(DAY, DAY + 3650 * 86_400_000);
    assert.ok(marks.length >= 3 && marks.length <= 11, marks.join(' '));
  });

  test('never many more marks than there is room for', () => {
    const zone = fc.constantFrom('UTC', 'Europe/Berlin', 'Australia/Lord_Howe', 'Asia/Kathmandu');
    const from = fc.integer({ min: DAY - 365 * 86_400_000, max: DAY });
    fc.assert(
      fc.property(from, fc.double({ min: 1, max: 1e12, noNaN: true }), zone, (fromMs, width, timeZone) => {
        const ticks = ticksOf({ fromMs, toMs: fromMs + width }, 8, timeZone);
        // A night in which clocks are put forward has one more.
        assert.ok(ticks.length <= 10);
        assert.ok(ticks.every(({ atMs }, index) => atMs > (ticks[index - 1]?.atMs ?? 0) && atMs <= fromMs + width));
      }),
    );
  });

  test('a moment is told with its milliseconds', () => {
    assert.equal(momentText(DAY + 11_523_007, 'UTC'), '2026-11-21 03:12:03.007');
  });
});

describe('the address', () => {
  test('the first view needs no words, and nonsense is the first view', () => {
    assert.equal(hashOf(FIRST_VIEW), '');
    assert.deepEqual(viewOf(''), FIRST_VIEW);
    assert.deepEqual(viewOf('#since=yesterday&record=-4&live=1'), FIRST_VIEW);
    assert.deepEqual(viewOf('#since=2026-11-21T00:00:10Z&until=nonsense'), FIRST_VIEW);
    assert.deepEqual(viewOf('#since=2026-11-21T00:00:10Z&until=2026-11-21T00:00:00Z'), FIRST_VIEW);
  });

  test('every view comes back as it was, also one that has a beginning or an end alone', () => {
    const views = fc.record(
      {
        window: fc.option(
          fc
            .tuple(
              fc.integer({ min: 0, max: 4e12 }),
              fc.integer({ min: 1, max: 1e12 }),
              fc.constantFrom('both', 'since', 'until'),
            )
            .map(([fromMs, width, ends]) => ({
              fromMs: ends === 'until' ? Number.NEGATIVE_INFINITY : fromMs,
              toMs: ends === 'since' ? Number.POSITIVE_INFINITY : fromMs + width,
            })),
        ),
        filter: fc.string(),
        record: fc.option(fc.integer({ min: 1, max: 2 ** 40 })),
        live: fc.boolean(),
        steps: fc.boolean(),
      },
      { noNullPrototype: true },
    );
    fc.assert(fc.property(views, (view) => assert.deepEqual(viewOf(hashOf(view)), view)));
  });
});
