/**
 * How a function of the domain gives what it may have to refuse. One that makes something gives a Result. One that only
 * checks gives a Failure or null, so that checks are tried in a row with `??`. Where a refusal lies deep in a config it is
 * thrown, and becomes one of these two at the border (oci/refuse.ts).
 */
import type { Failure } from './errors.ts';

export interface Refused<F = Failure> {
  readonly ok: false;
  readonly failure: F;
}

export type Result<T, F = Failure> = { readonly ok: true; readonly value: T } | Refused<F>;

export const succeeded = <T>(value: T): Result<T, never> => ({ ok: true, value });

export const refused = <F>(failure: F): Refused<F> => ({ ok: false, failure });
