/**
 * Numbers of the state as CRI's fields can hold them: every value gives one that can be encoded, and one that the field
 * can hold stays what it is. A number that nobody foresaw must not cost a client the whole list it stands in.
 */
import type { Int64 } from '../../../domain/model/cri.ts';

/** As C has it: a status above 2³¹ becomes negative. */
export const int32 = (value: number): number => value | 0;

export const uint32 = (value: number): number => value >>> 0;

/** Of so few digits that nothing has to be calculated. */
const SHORT = /^-?\d{1,18}$/;
const WHOLE = /^-?\d+$/;

const within =
  (least: bigint, most: bigint) =>
  (text: Int64): string => {
    if (!WHOLE.test(text)) return '0';
    const value = BigInt(text);
    if (value < least) return String(least);
    return value > most ? String(most) : text;
  };

const nearestInt64 = within(-(2n ** 63n), 2n ** 63n - 1n);

/** The nearest that there is; 0 for what is no number. */
export const int64 = (text: Int64): string => (SHORT.test(text) ? text : nearestInt64(text));

export const uint64: (text: Int64) => string = within(0n, 2n ** 64n - 1n);
