/** Kubernetes quantities: every form there is, exactly, rounded up as Kubernetes does. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { parseQuantity } from '../../../src/domain/values/quantity.ts';

const units = {
  n: [1n, 10n ** 9n],
  u: [1n, 10n ** 6n],
  m: [1n, 1000n],
  '': [1n, 1n],
  k: [1000n, 1n],
  M: [10n ** 6n, 1n],
  G: [10n ** 9n, 1n],
  T: [10n ** 12n, 1n],
  P: [10n ** 15n, 1n],
  E: [10n ** 18n, 1n],
  Ki: [1n << 10n, 1n],
  Mi: [1n << 20n, 1n],
  Gi: [1n << 30n, 1n],
  Ti: [1n << 40n, 1n],
  Pi: [1n << 50n, 1n],
  Ei: [1n << 60n, 1n],
} as const;
const suffix = fc.constantFrom(...(Object.keys(units) as (keyof typeof units)[]));
const whole = fc.bigInt({ min: 0n, max: 10n ** 18n });
const isRoundedUp = (value: bigint, numerator: bigint, denominator: bigint): boolean =>
  value * denominator >= numerator && (value - 1n) * denominator < numerator;

test('a whole number has the value of its suffix, rounded up', () => {
  fc.assert(
    fc.property(whole, suffix, (number, unit) => {
      const [times, parts] = units[unit];
      for (const text of [`${number}${unit}`, `+${number}${unit}`, `${number}.${unit}`, `00${number}.000${unit}`]) {
        const value = parseQuantity(text);
        assert.ok(value !== null && isRoundedUp(value, number * times, parts), `${text} is ${value}`);
      }
      const value = parseQuantity(`${number}${unit}`);
      assert.equal(parseQuantity(`-${number}${unit}`), value === null ? null : -value);
    }),
  );
});

test('a number with a point is exact to its last digit', () => {
  const fraction = fc.stringMatching(/^\d{1,18}$/);
  fc.assert(
    fc.property(whole, fraction, suffix, (number, digits, unit) => {
      const [times, parts] = units[unit];
      const value = parseQuantity(`${number}.${digits}${unit}`);
      const scale = 10n ** BigInt(digits.length);
      assert.ok(value !== null && isRoundedUp(value, BigInt(`${number}${digits}`) * times, scale * parts));
      const alone = parseQuantity(`.${digits}${unit}`);
      assert.ok(alone !== null && isRoundedUp(alone, BigInt(digits) * times, scale * parts));
    }),
  );
});

test('an exponent says the same as the suffix that stands for it', () => {
  fc.assert(
    fc.property(whole, fc.constantFrom('k', 'M', 'G', 'T', 'P', 'E', 'm', 'u', 'n'), (number, unit) => {
      const power = { k: 3, M: 6, G: 9, T: 12, P: 15, E: 18, m: -3, u: -6, n: -9 }[unit];
      const expected = parseQuantity(`${number}${unit}`);
      assert.equal(parseQuantity(`${number}e${power}`), expected);
      assert.equal(parseQuantity(`${number}E${power}`), expected);
      if (power > 0) assert.equal(parseQuantity(`${number}e+${power}`), expected);
    }),
  );
});

test('known quantities', () => {
  const known: readonly (readonly [string, bigint])[] = [
    ['10M', 10_000_000n],
    ['1.5Gi', 1_610_612_736n],
    ['2e6', 2_000_000n],
    ['1E', 10n ** 18n],
    ['1E3', 1000n],
    ['500m', 1n],
    ['1500m', 2n],
    ['0.5', 1n],
    ['0', 0n],
    ['-1.1', -2n],
  ];
  for (const [text, value] of known) assert.equal(parseQuantity(text), value, text);
});

test('what is no quantity is none', () => {
  for (const text of [
    '',
    ' ',
    '.',
    '+',
    'M',
    '1 M',
    '1K',
    '1mi',
    '1KiB',
    '0x10',
    '1e',
    '1e1.5',
    '1ee3',
    '١',
    '1e999',
    '1'.repeat(65),
  ])
    assert.equal(parseQuantity(text), null, JSON.stringify(text));
  const odd = fc
    .string()
    .filter((text) => !/^[+-]?(\d+\.?\d*|\.\d+)(([KMGTPE]i|[numkMGTPE]?)|[eE][+-]?\d+)$/.test(text));
  fc.assert(fc.property(odd, (text) => parseQuantity(text) === null));
});
