/**
 * A limit to how long the host may take to answer. A file system that hangs (a dead NFS server) keeps the system call
 * for ever; the caller at least is told which path it is, instead of waiting with it.
 */
import { FailureError } from '../../domain/model/errors.ts';

/** Rejects with TimedOut, naming `what`, after `timeoutMs`; with Interrupted when the daemon ends. */
export async function withDeadline<T>(
  what: string,
  timeoutMs: number,
  signal: AbortSignal,
  work: Promise<T>,
): Promise<T> {
  const { promise, reject } = Promise.withResolvers<never>();
  const interrupted = (): void =>
    reject(new FailureError('Interrupted', `the daemon ended while it waited for ${what}`));
  const timer = setTimeout(() => {
    reject(new FailureError('TimedOut', `${what} gave no answer for ${timeoutMs} ms: is its file system reachable?`));
  }, timeoutMs);
  signal.addEventListener('abort', interrupted, { once: true });
  if (signal.aborted) interrupted();
  // Whichever comes second must not be an unhandled rejection.
  work.catch(() => undefined);
  try {
    return await Promise.race([work, promise]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', interrupted);
  }
}
