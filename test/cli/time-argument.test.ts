/** The one argument for a moment: what people type, what it means by the clock, and in a journal. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { localTime, shortUtcTime, utcTime } from '../../src/cli/format.ts';
import { timesIn } from '../../src/cli/local-zone.ts';
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
/** With TZ as a shell would set it. */
const inZone = <T>(zone: string, work: () => T): T => {
  const before = process.env['TZ'];
  process.env['TZ'] = zone;
  try {
    return work();
  } finally {
    if (before === undefined) delete process.env['TZ'];
    else process.env['TZ'] = before;
  }
};

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
    ['-2h30m', nsOf(nowMs - 9_000_000)],
    ['2h30m ago', nsOf(nowMs - 9_000_000)],
    ['7d', nsOf(nowMs - 7 * 86_400_000)],
    ['today', local(year, month, day)],
    ['yesterday', local(year, month, day - 1)],
    ['03:12', local(year, month, day, 3, 12)],
    ['3:12:09', local(year, month, day, 3, 12, 9)],
  ];
  for (const [text, ns] of understood) {
    test(text, () => assert.deepEqual(parse(text), time(ns)));
  }

  test('what clocks passed over, or showed twice, is refused, unless with its zone', () => {
    inZone('Europe/Berlin', () => {
      assert.throws(() => parse('2026-03-29 02:30'), /02:30: clocks were put forward over that time; say the zone/);
      assert.throws(
        () => parse('2026-10-25 02:30'),
        /02:30: clocks were put back and showed that time twice; say the zone/,
      );
      assert.deepEqual(parse('2026-10-25 02:30+02:00'), time(nsOf(Date.UTC(2026, 9, 25, 0, 30))));
      for (const text of ['2026-03-29 01:59', '2026-03-29 03:00', '2026-10-25 01:59', '2026-10-25 03:00', '2026-10-25'])
        assert.equal(parse(text).kind, 'time', text);
    });
  });

  test('no time is before the first or behind the last one that a record can have', () => {
    const last = time(2n ** 63n - 1n);
    for (const text of ['9999-12-31', '@99999999999']) assert.deepEqual(parse(text), last);
    for (const text of ['1000-01-01', '200000d', '1969-12-31']) assert.deepEqual(parse(text), time(0n));
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
      '-5m ago',
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
    headSeq: () => timesNs.length,
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

  test('now is behind all records, also of a clock that went ahead', () => {
    const now = parse('now');
    assert.deepEqual(now, { ...time(nsOf(nowMs)), isNow: true });
    const timeline = timelineOf([nsOf(nowMs) - 5n, nsOf(nowMs) + 3_600_000_000_000n, nsOf(nowMs) - 1n]);
    assert.equal(seqAt(timeline, now), 3);
    assert.deepEqual(seqsOf(timeline, { since: null, until: now }), { fromSeq: 1, toSeq: 3 });
    assert.deepEqual(seqsOf(timeline, { since: now, until: null }), { fromSeq: 4, toSeq: 3 });
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

describe('the local zone', () => {
  const summer = '2026-05-28T12:00:00.000Z';
  // What date(1) shows for them, too.
  for (const [zone, shown] of [
    ['UTC', '12:00:00.000+00:00'],
    ['', '12:00:00.000+00:00'],
    ['UTC0', '12:00:00.000+00:00'],
    ['Europe/Berlin', '14:00:00.000+02:00'],
    [':Europe/Berlin', '14:00:00.000+02:00'],
    ['posix/Europe/Berlin', '14:00:00.000+02:00'],
    [':/usr/share/zoneinfo/Europe/Berlin', '14:00:00.000+02:00'],
    ['Asia/Calcutta', '17:30:00.000+05:30'],
    ['EST5EDT', '08:00:00.000-04:00'],
    ['EST', '07:00:00.000-05:00'],
    ['JST-9', '21:00:00.000+09:00'],
    ['<+03>-3', '15:00:00.000+03:00'],
  ] as const) {
    test(`TZ=${zone}`, () => {
      const time = inZone(zone, () => timesIn({})(nsOf(Date.parse(summer))));
      assert.equal(time, `2026-05-28 ${shown}`);
    });
  }

  test("the node's own, by its file, is what it is where TZ is not set", () => {
    const of = (zone: string): string => inZone(zone, () => timesIn({})(nsOf(Date.parse(summer))));
    const { TZ: _, ...env } = process.env;
    const script = `process.stdout.write(String(new Date('${summer}').getTimezoneOffset()))`;
    const unset = Number(spawnSync(process.execPath, ['-e', script], { env, encoding: 'utf8' }).stdout);
    const local = new Date(Date.parse(summer) - unset * 60_000).toISOString().slice(0, -1).replace('T', ' ');
    for (const zone of [':/etc/localtime', '/etc/localtime', 'localtime']) assert.ok(of(zone).startsWith(local), zone);
  });

  test('one that would be taken for UTC is refused wherever it matters', () => {
    for (const [zone, said] of [
      ['Europa/Berlin', /^CliError: TZ=Europa\/Berlin: .* did you mean TZ=Europe\/Berlin\? Name one/],
      ['europe/berlin', /did you mean TZ=Europe\/Berlin\?/],
      ['/no/such', /TZ=\/no\/such: that time zone is not known\. Name one/],
      ['CET-1CEST,M3.5.0,M10.5.0/3', /not known/],
      ['UTC-5:30', /not known/],
      ['JST', /not known/],
    ] as const) {
      inZone(zone, () => {
        // Again: nothing is remembered of it that would let it pass.
        for (let time = 0; time < 2; time++) assert.throws(() => timesIn({}), said);
        for (const text of ['03:12', '2026-05-28', '2026-05-28 03:12', 'today', 'yesterday'])
          assert.throws(() => parse(text), said, text);
        for (const text of ['now', '2h', '@1779969600', '17', '2026-05-28T03:12Z', summer]) parse(text);
        assert.throws(() => parse('no time'), /that is no time/);
        assert.equal(timesIn({ utc: true })(nsOf(Date.parse(summer))), '2026-05-28 12:00:00.000Z');
      });
    }
  });
});
