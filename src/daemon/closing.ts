/**
 * Closing what was opened: each part registers its closing on one stack as soon as it is open, so that an orderly end
 * and a start that fails half-way close the same parts, the newest first. This file has what that takes besides the
 * stack itself; it knows no part.
 */
import { loggable } from './log.ts';

/** Where parts register their closing. */
export type Opened = Pick<AsyncDisposableStack, 'defer'>;

interface Log {
  readonly error: (fields: object, message: string) => void;
}

/**
 * As Promise.all, but nothing is under way any more when it rejects: what was opened meanwhile has registered its
 * closing by then.
 */
export const allSettled = async <T extends readonly unknown[]>(
  works: {
    readonly [K in keyof T]: Promise<T[K]>;
  },
): Promise<T> => {
  await Promise.allSettled(works);
  return await Promise.all(works);
};

/** What went wrong first, which is what somebody has to mend; what could not be closed after it is for the log. */
export const firstError = (thrown: unknown, log: Log): unknown => {
  if (!(thrown instanceof SuppressedError)) return thrown;
  log.error({ error: loggable(thrown.error) }, 'a part could not be closed');
  return firstError(thrown.suppressed, log);
};
