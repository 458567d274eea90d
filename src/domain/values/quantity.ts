/**
 * Kubernetes quantities ("1.5M", "10Gi", "2e6", "500m") as whole numbers, rounded up as Kubernetes does. Exact: nothing in
 * here is a floating point number.
 */

/** A sign, digits with or without a point, and a suffix or an exponent. */
const QUANTITY = /^([+-]?)(\d+\.?\d*|\.\d+)(?:([KMGTPE]i|[numkMGTPE]?)|[eE]([+-]?\d+))$/;

/** What a number of this suffix is multiplied with: a power of ten or of two. */
const DECIMAL_EXPONENTS: Readonly<Record<string, number>> = {
  n: -9,
  u: -6,
  m: -3,
  '': 0,
  k: 3,
  M: 6,
  G: 9,
  T: 12,
  P: 15,
  E: 18,
};
const BINARY_SUFFIXES = ['Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

/** Far more than anything has of anything; a longer text is no number that somebody meant. */
const MAX_LENGTH = 64;
const MAX_EXPONENT = 64;

/** The least whole number that is not less; null for what is no quantity. */
export function parseQuantity(text: string): bigint | null {
  const match = text.length > MAX_LENGTH ? null : QUANTITY.exec(text);
  if (match === null) return null;
  const [, sign = '', digits = '', suffix = '', exponent] = match;
  const [whole = '', fraction = ''] = digits.split('.');
  const power = exponent === undefined ? (DECIMAL_EXPONENTS[suffix] ?? 0) : Number(exponent);
  if (Math.abs(power) > MAX_EXPONENT) return null;
  const binary = 1024n ** BigInt(BINARY_SUFFIXES.indexOf(suffix) + 1);
  const magnitude = BigInt(whole + fraction) * binary;
  const tens = power - fraction.length;
  const value = tens >= 0 ? magnitude * 10n ** BigInt(tens) : dividedUp(magnitude, 10n ** BigInt(-tens));
  return sign === '-' ? -value : value;
}

/** Away from zero, as Kubernetes rounds. */
const dividedUp = (dividend: bigint, divisor: bigint): bigint => (dividend + divisor - 1n) / divisor;
