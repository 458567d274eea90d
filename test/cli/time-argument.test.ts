/** The one argument for a moment: what people type, what it means by the clock, and in a journal. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { localTime, shortUtcTime, utcTime } from '../../src/cli/format.ts';
import {
  type Moment,
  MOMENT_FORMS,
  parseMoment,
  parseRange,
  seqAt,
  seqsOf,
  type Timeline,
} from '../../src/cli/time-argument.ts';

const nowMs = Date.UTC(2026, 10, 21, 12, 30, 15, 250);
const nsOf = (ms: number): bigint => BigInt(ms) * 1_000_000n;
const local = (...parts: [number, number, number, number?, number?, number?, number?]): bigint =>
  nsOf(new Date(...parts).getTime());
const time = (atNs: bigint): Moment => ({ kind: 'time', atNs });
const record = (seq: number): Moment => ({ kind: 'record', seq });
const parse = (text: string): Moment => parseMoment(text, '--since', nowMs);

describe('moments', () => {
  const today = new Date(nowMs);
  const [year, month, day] = [today.getFullYear(), today.getMonth(), today.getDate()];
  const understood: readonly (readonly [text: string, ns: bigint])[] = [
    ['2026-11-21T03:12:00Z', nsOf(Date.UTC(2026, 10, 21, 3, 12))],
    ['2026-11-21T03:12:00.123456789Z', nsOf(Date.UTC(2026, 10, 21, 3, 12, 0, 123)) + 456_789n],
    ['2026-11-21T03:12:00+02:00', nsOf(Date.UTC(2026, 10, 21, 1, 12))],
    ['2026-11-21 03:12:00.5-0130', nsOf(Date.UTC(2026, 10, 21, 4, 42, 0, 500))],
    ['2026-11-21 03:12 UTC', nsOf(Date.UTC(2026, 10, 21, 3, 12))],
    ['2026-11-21 03:12', local(2026, 10, 21, 3, 12)],
    ['2026-11-21T03:12:05', local(2026, 10, 21, 3, 12, 5)],
    ['2026-11-21', local(2026, 10, 21)],
    ['2024-02-29', local(2024, 1, 29)],
    ['@1795230000', 1_795_230_000_000_000_000n],
    ['@1795230000.5', 1_795_230_000_500_000_000n],
    ['@1795230000.000000007', 1_795_230_000_000_000_007n],
    ['90s', nsOf(nowMs - 90_000)],
    ['2h30m', nsOf(nowMs - 9_000_000)],
    ['7d', nsOf(nowMs - 7 * 86_400_000)],
    ['now', nsOf(nowMs)],
    ['today', local(year, month, day)],
    ['yesterday', local(year, month, day - 1)],
    ['03:12', local(year, month, day, 3, 12)],
    ['3:12:09', local(year, month, day, 3, 12, 9)],
  ];
  for (const [text, ns] of understood) {
    test(text, () => assert.deepEqual(parse(text), time(ns)));
  }

  test('what clocks passed over, or showed twice, is refused, unless with its zone', () => {
    const zone = process.env['TZ'];
    process.env['TZ'] = 'Europe/Berlin';
    try {
      assert.throws(() => parse('2026-03-29 02:30'), /02:30: clocks were put forward over that time; say the zone/);
      assert.throws(
        () => parse('2026-10-25 02:30'),
        /02:30: clocks were put back and showed that time twice; say the zone/,
      );
      assert.deepEqual(parse('2026-10-25 02:30+02:00'), time(nsOf(Date.UTC(2026, 9, 25, 0, 30))));
      for (const text of ['2026-03-29 01:59', '2026-03-29 03:00', '2026-10-25 01:59', '2026-10-25 03:00', '2026-10-25'])
        assert.equal(parse(text).kind, 'time', text);
    } finally {
      if (zone === undefined) delete process.env['TZ'];
      else process.env['TZ'] = zone;
    }
  });

  test('no time is later than the last one that a record can have', () => {
    const last = time(2n ** 63n - 1n);
    for (const text of ['9999-12-31', '@99999999999']) assert.deepEqual(parse(text), last);
  });

  test('what the help names is one', () => {
    const forms = MOMENT_FORMS.match(/\d{4}-\S+|\d\d:\d\d(?= )|\d+[smhd]\w*|now|today|yesterday/g) ?? [];
    assert.ok(forms.length >= 10);
    for (const form of forms) assert.equal(parse(form.replace(/[,;:.]$/, '')).kind, 'time', form);
  });

  test('a bare number is that of a record', () => {
    assert.deepEqual(parse('12'), record(12));
    assert.deepEqual(parse('999999999999999'), record(999_999_999_999_999));
  });

  for (const text of [
    ...['', 'tomorrow', '24:61', '25:00', '12:60', '2026-13-01', '2026-02-30', '2025-02-29', '2026-11-21T25:00'],
    ...[
      '2026-11-21T03:12:60Z',
      '2026-11-21T03:12+15:00',
      '-1',
      '1.5',
      '1.5h',
      '@x',
      '-5m',
      '21.11.2026',
      '2026-11-21T',
    ],
    ...['1e3', '0x10', '9999999999999999', 'Z', '12 ', '2026-11-21 03:12 CET'],
  ]) {
    test(`"${text}" is none`, () => {
      assert.throws(() => parseMoment(text, '--until', nowMs), /^CliError: --until .*that is no time/);
    });
  }

  const anyNs = fc.bigInt({ min: 0n, max: 4_102_444_800_000_000_000n });

  test('what a program was told is the same moment when it is asked for', () => {
    fc.assert(fc.property(anyNs, (atNs) => assert.deepEqual(parse(utcTime(atNs)), time(atNs))));
  });

  test('what a person was shown is the same moment to the millisecond', () => {
    fc.assert(
      fc.property(anyNs, (atNs) => {
        const shown = time(atNs - (atNs % 1_000_000n));
        assert.deepEqual(parse(shortUtcTime(atNs)), shown);
        assert.deepEqual(parse(localTime(atNs)), shown);
      }),
    );
  });

  test('any text is a moment or refused in words', () => {
    const typed = fc.string({ unit: fc.constantFrom(...'0123456789-:.TZ @smhd+ untoday') });
    fc.assert(
      fc.property(fc.oneof(typed, fc.string()), (text) => {
        try {
          const moment = parse(text);
          assert.ok(moment.kind === 'time' ? typeof moment.atNs === 'bigint' : Number.isSafeInteger(moment.seq));
        } catch (error) {
          assert.match(String(error), /^CliError: --since /);
        }
      }),
      { numRuns: 2000 },
    );
  });
});

describe('ranges', () => {
  test('one that ends before it begins is refused', () => {
    assert.throws(() => parseRange({ since: '1h', until: '2h' }, nowMs), /--since 1h is later than --until 2h/);
    assert.throws(() => parseRange({ since: '7', until: '6' }), /--since 7 is later than --until 6/);
    assert.deepEqual(parseRange({ since: '7', until: '7' }), { since: record(7), until: record(7) });
    assert.deepEqual(parseRange({}), { since: null, until: null });
  });

  /** Records at these moments, as the journal looks them up: by the greatest time so far. */
  const timelineOf = (timesNs: readonly bigint[]): Timeline => ({
    head: () => ({ seq: timesNs.length, hash: new Uint8Array() }),
    seqAtTime: (tNs) => {
      const later = timesNs.findIndex((atNs) => atNs > tNs);
      return later < 0 ? timesNs.length : later;
    },
  });

  const growing = fc
    .array(fc.bigInt({ min: 0n, max: 5n }), { maxLength: 30 })
    .map((steps) => steps.map((_, index) => steps.slice(0, index + 1).reduce((sum, step) => sum + step, 0n)));

  test('holds just what was recorded from one end to the other, both within it', () => {
    const at = fc.bigInt({ min: 0n, max: 160n });
    fc.assert(
      fc.property(growing, at, at, (timesNs, one, other) => {
        const [sinceNs, untilNs] = one < other ? [one, other] : [other, one];
        const { fromSeq, toSeq } = seqsOf(timelineOf(timesNs), { since: time(sinceNs), until: time(untilNs) });
        const inside = timesNs.flatMap((atNs, index) => (atNs >= sinceNs && atNs <= untilNs ? [index + 1] : []));
        assert.deepEqual(
          Array.from({ length: Math.max(0, toSeq - fromSeq + 1) }, (_, index) => fromSeq + index),
          inside,
        );
      }),
    );
  });

  test('by numbers: from this record to that, and nothing beyond the end', () => {
    const timeline = timelineOf([1n, 2n, 3n]);
    assert.deepEqual(seqsOf(timeline, { since: record(2), until: record(3) }), { fromSeq: 2, toSeq: 3 });
    assert.deepEqual(seqsOf(timeline, { since: null, until: record(9) }), { fromSeq: 1, toSeq: 3 });
    assert.deepEqual(seqsOf(timeline, { since: null, until: null }), { fromSeq: 1, toSeq: 3 });
    assert.equal(seqAt(timeline, record(2)), 2);
    assert.equal(seqAt(timeline, record(9)), 3);
    assert.equal(seqAt(timeline, time(0n)), 0);
  });
});
