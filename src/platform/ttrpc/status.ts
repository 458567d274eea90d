/**
 * How ttrpc calls fail: with the status that the other side answered, or because the connection has closed.
 * The two must be told apart: a closed connection says nothing about whether the call was carried out.
 */
import { GrpcCode } from '../../domain/model/errors.ts';

/** A failed call's google.rpc.Status; also what a server's handler throws to answer with a code of its choice. */
export class TtrpcStatusError extends Error {
  readonly code: number;
  constructor(code: number, message: string) {
    super(message);
    this.name = 'TtrpcStatusError';
    this.code = code;
  }
}

/** What came as an answer is none: whoever sent it does not speak the protocol. */
export class TtrpcGarbageError extends TtrpcStatusError {
  constructor(message: string) {
    super(GrpcCode.INTERNAL, message);
    this.name = 'TtrpcGarbageError';
  }
}

/** The connection closed before the answer came. */
export class TtrpcClosedError extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'TtrpcClosedError';
  }
}

/** True for an answer (or a deadline passed here) with the given code. */
export const hasStatus = (error: unknown, code: GrpcCode): boolean =>
  error instanceof TtrpcStatusError && error.code === code;

export const isNotFound = (error: unknown): boolean => hasStatus(error, GrpcCode.NOT_FOUND);
export const isTimeout = (error: unknown): boolean => hasStatus(error, GrpcCode.DEADLINE_EXCEEDED);
export const isClosed = (error: unknown): boolean => error instanceof TtrpcClosedError;
