/**
 * How the functions of this folder say no. Inside they throw a FailureError, since the refusal may lie deep in a
 * config; at their border it becomes data, which is what deciders record. Must not know any field itself.
 */
import { type Failure, FailureError, type FailureReason } from '../model/errors.ts';
import type { OciSpec } from '../model/oci.ts';

export type SpecResult =
  | { readonly ok: true; readonly spec: OciSpec }
  | { readonly ok: false; readonly failure: Failure };

/** @throws {FailureError} always */
export function refuse(reason: FailureReason, message: string): never {
  throw new FailureError(reason, message);
}

/** `field` is the CRI field (as in api.proto); `problem` goes on from it: "is empty: give the pod a name". */
export const refuseField = (field: string, problem: string): never => refuse('InvalidField', `${field} ${problem}`);

function failureOf(error: unknown): Failure {
  if (error instanceof FailureError) return error.failure;
  throw error;
}

export function specResult(build: () => OciSpec): SpecResult {
  try {
    return { ok: true, spec: build() };
  } catch (error) {
    return { ok: false, failure: failureOf(error) };
  }
}

export function failureIn(check: () => void): Failure | null {
  try {
    check();
    return null;
  } catch (error) {
    return failureOf(error);
  }
}

const MAX_SHOWN = 120;

/** Text from outside as it may stand in a message: quoted, escaped, and cut. */
export const shown = (text: string): string =>
  JSON.stringify(text.length > MAX_SHOWN ? `${text.slice(0, MAX_SHOWN)}…` : text);
