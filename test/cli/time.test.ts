/** Times that people type, and how times, spans and other people's texts look in tables. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseTime } from '../../src/cli/history/time.ts';
import {
  bytes,
  counted,
  duration,
  jsonLine,
  localTime,
  printable,
  shortId,
  shortUtcTime,
  utcTime,
} from '../../src/cli/format.ts';

const nowMs = Date.UTC(2026, 10, 21, 12, 30, 15, 250);
const nsOf = (ms: number): bigint => BigInt(ms) * 1_000_000n;
const local = (...parts: [number, number, number, number?, number?, number?, number?]): bigint =>
  nsOf(new Date(...parts).getTime());

describe('times', () => {
  const understood: readonly (readonly [text: string, ns: bigint])[] = [
    ['2026-11-21T03:12:00Z', nsOf(Date.UTC(2026, 10, 21, 3, 12))],
    ['2026-11-21T03:12:00.123456789Z', nsOf(Date.UTC(2026, 10, 21, 3, 12, 0, 123))],
    ['2026-11-21T03:12:00+02:00', nsOf(Date.UTC(2026, 10, 21, 1, 12))],
    ['2026-11-21 03:12', local(2026, 10, 21, 3, 12)],
    ['2026-11-21T03:12:05', local(2026, 10, 21, 3, 12, 5)],
    ['2026-11-21', local(2026, 10, 21)],
    ['@1795230000', 1_795_230_000_000_000_000n],
    ['@1795230000.5', 1_795_230_000_500_000_000n],
    ['90s', nsOf(nowMs - 90_000)],
    ['2h30m', nsOf(nowMs - 9_000_000)],
    ['7d', nsOf(nowMs - 7 * 86_400_000)],
  ];
  for (const [text, ns] of understood) {
    test(text, () => assert.equal(parseTime(text, '--since', nowMs), ns));
  }

  test('a time of day is today', () => {
    const today = new Date(nowMs);
    const at = (hours: number, minutes: number, seconds = 0): bigint =>
      local(today.getFullYear(), today.getMonth(), today.getDate(), hours, minutes, seconds);
    assert.equal(parseTime('03:12', '--since', nowMs), at(3, 12));
    assert.equal(parseTime('3:12:09', '--since', nowMs), at(3, 12, 9));
  });

  for (const text of [
    '',
    'yesterday',
    '24:61',
    '2026-13-01',
    '2026-11-21T25:00',
    '12',
    '1.5h',
    '@x',
    '-5m',
    '21.11.2026',
  ]) {
    test(`"${text}" is none`, () => {
      assert.throws(() => parseTime(text, '--until', nowMs), /^CliError: --until .*that is no time/);
    });
  }
});

test('a moment is told to the millisecond for people and to the nanosecond for programs', () => {
  const atNs = nsOf(new Date(2026, 0, 2, 3, 4, 5, 6).getTime()) + 789n;
  assert.match(localTime(atNs), /^2026-01-02 03:04:05\.006[+-]\d\d:\d\d$/);
  assert.equal(Date.parse(localTime(atNs).replace(' ', 'T')), Number(atNs / 1_000_000n));
  assert.equal(shortUtcTime(1_767_323_045_006_000_789n), '2026-01-02 03:04:05.006Z');
  assert.equal(
    utcTime(1_795_230_000_000_000_789n),
    `${new Date(1_795_230_000_000).toISOString().slice(0, 19)}.000000789Z`,
  );
});

test('JSON steers no terminal, and means what it did', () => {
  const value = { text: 'a\u009b31mb\u0085\u2028\u202ec\u001b\n' };
  const line = jsonLine(value);
  assert.match(line, /^[\x20-\x7e]*\n$/);
  assert.ok(line.includes('\\u009b31m'));
  assert.deepEqual(JSON.parse(line), value);
});

test('spans', () => {
  const cases: readonly (readonly [ns: bigint, text: string])[] = [
    [0n, '0 µs'],
    [850_400n, '850 µs'],
    [1_234_000n, '1.23 ms'],
    [45_670_000n, '45.7 ms'],
    [512_000_000n, '512 ms'],
    [4_560_000_000n, '4.56 s'],
    [125_000_000_000n, '2 min 5 s'],
    [11_520_000_000_000n, '3 h 12 min'],
    [352_800_000_000_000n, '4 d 2 h'],
  ];
  for (const [ns, text] of cases) assert.equal(duration(ns), text);
});

test('sizes and counts', () => {
  assert.equal(bytes(1023), '1023 B');
  assert.equal(bytes(1536), '1.5 KiB');
  assert.equal(bytes(3 * 2 ** 30), '3.0 GiB');
  assert.equal(counted(1, 'record'), '1 record');
  assert.equal(counted(1_234_567, 'record'), '1,234,567 records');
  assert.equal(shortId(`sha256:${'ab'.repeat(32)}`), 'ababababababa');
});

test('no control character of anybody reaches a terminal', () => {
  assert.equal(printable('a\u001b[31mb\nc\td\u009be\u202ef\u0000'), 'a\\u{1b}[31mb\\nc\\td\\u{9b}e\\u{202e}f\\u{0}');
  assert.equal(printable('zażółć 🛠'), 'zażółć 🛠');
});
