/** How something is to fail, for assert.rejects and assert.throws: a call over the socket, or code that throws itself. */
import assert from 'node:assert/strict';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import { FailureError, type FailureReason } from '../../src/domain/model/errors.ts';

/** A call: its gRPC code, and what its message has to say. */
export const withCode =
  (code: number, message = /^/) =>
  (error: unknown): boolean => {
    assert.equal(codeOf(error), code, String(error));
    assert.match(String(error), message);
    return true;
  };

/** A failure of the catalogue: its reason, and what its message has to say. */
export const withReason =
  (reason: FailureReason, message = /^/) =>
  (error: unknown): boolean => {
    assert.ok(error instanceof FailureError, String(error));
    assert.equal(error.failure.reason, reason, error.message);
    assert.match(error.message, message);
    return true;
  };
