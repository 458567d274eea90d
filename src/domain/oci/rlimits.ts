/**
 * Limits of a process (setrlimit(2)). That there is none is said by the largest number of 64 bits, which is no exact number
 * here: in a spec the largest exact one stands for it, and becomes it where a spec is handed to others.
 */
import type { Int64 } from '../model/cri.ts';

/** RLIM_INFINITY. */
const NONE: Int64 = '18446744073709551615';

/** It in a spec. */
export const NO_RLIMIT = Number.MAX_SAFE_INTEGER;

/** What stands in JSON, as JSON.parse gives it, is not exact either. */
export const isNoRlimit = (value: unknown): boolean => value === Number(NONE);

/** A limit of a spec, in the words of others. */
export const rlimitText = (value: Int64): Int64 => (value === String(NO_RLIMIT) ? NONE : value);

/** Not in the library that the compiler knows. */
const { rawJSON } = JSON as unknown as { readonly rawJSON: (text: string) => unknown };

const written = (value: unknown): unknown => (typeof value === 'number' && value >= NO_RLIMIT ? rawJSON(NONE) : value);

/** Limits of a spec for JSON.stringify, also those that were read from a spec. */
export const writtenRlimits = (rlimits: readonly object[]): readonly unknown[] =>
  rlimits.map((rlimit) => Object.fromEntries(Object.entries(rlimit).map(([key, value]) => [key, written(value)])));
