/**
 * How the functions of this folder say no. Inside they throw a FailureError, since the refusal may lie deep in a
 * config; at their border it becomes data, which is what deciders record. Must not know any field itself.
 */
import { type Failure, FailureError, type FailureReason } from '../model/errors.ts';
import { refused, type Result, succeeded } from '../model/result.ts';

/** @throws {FailureError} always */
export function refuse(reason: FailureReason, message: string): never {
  throw new FailureError(reason, message);
}

/** `field` is the CRI field (as in api.proto); `problem` goes on from it: "is empty: give the pod a name". */
export const refuseField = (field: string, problem: string): never => refuse('InvalidField', `${field} ${problem}`);

/** What `make` gives, or why it refused. */
export function resultOf<T>(make: () => T): Result<T> {
  try {
    return succeeded(make());
  } catch (error) {
    if (error instanceof FailureError) return refused(error.failure);
    throw error;
  }
}

/** Why `check` refused. */
export function failureIn(check: () => unknown): Failure | null {
  const result = resultOf(check);
  return result.ok ? null : result.failure;
}

const MAX_SHOWN = 120;

/** Text from outside as it may stand in a message: quoted, escaped, and cut. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
