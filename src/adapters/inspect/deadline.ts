/**
 * A limit to how long the host may take to answer. A file system that hangs (a dead NFS server) keeps the system call
 * for ever; the caller at least is told which path it is, instead of waiting with it.
 */
import { FailureError } from '../../domain/model/errors.ts';
import { within } from '../../platform/rpc/timeout.ts';

/** Rejects with TimedOut, naming `what`, after `timeoutMs`; with Interrupted when the daemon ends. */
export async function withDeadline<T>(
  what: string,
  timeoutMs: number,
  signal: AbortSignal,
  work: Promise<T>,
): Promise<T> {
  const late = (): FailureError =>
    new FailureError('TimedOut', `${what} gave no answer for ${timeoutMs} ms: is its file system reachable?`);
  try {
    return await within(work, timeoutMs, late, signal);
  } catch (error) {
    if (!signal.aborted || error !== signal.reason) throw error;
    throw new FailureError('Interrupted', `the daemon ended while it waited for ${what}`);
  }
}
