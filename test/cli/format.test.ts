/** How times, spans and other people's texts look in tables. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
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

const nsOf = (ms: number): bigint => BigInt(ms) * 1_000_000n;

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
    [-3_600_000_000_000n, '0 µs'],
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
