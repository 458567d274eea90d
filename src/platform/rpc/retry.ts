/**
 * Trying again: how long to wait after so many failures, and doing so until it succeeds. Knows nothing of what is tried,
 * and does not judge failures: the caller does, by letting one through.
 */
import { setTimeout as sleep } from 'node:timers/promises';

/** Waits between tries: doubling from the first to the last. */
export interface Backoff {
  readonly firstMs: number;
  readonly lastMs: number;
}

/** Doubling a time more often than this leads nowhere that a timer could follow. */
const DOUBLINGS_MAX = 31;

/** The wait after the last of so many failures in a row, one at least. */
export const backoffMs = ({ firstMs, lastMs }: Backoff, failures: number): number =>
  Math.min(lastMs, firstMs * 2 ** Math.min(failures - 1, DOUBLINGS_MAX));

/** How long an answer's Retry-After asks to be left alone, by its seconds or its date (RFC 9110, 10.2.3); 0 when it does not say. */
export const retryAfterMsIn = (header: string): number => {
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? 0 : Math.max(0, at - Date.now());
};

export interface Tries {
  readonly backoff: Backoff;
  /** That many have gone before, of another's: the first try waits as if they had been of this. */
  readonly failuresBefore?: number;
  /** Ends the trying; a try under way is left to end by itself. */
  readonly signal: AbortSignal;
  /** Told of each failure before the wait. What it throws is passed on, and nothing is tried again. */
  readonly onFailure: (error: unknown) => void;
}

/**
 * The result of the first try that succeeds. Rejects with the signal's reason, without a further try, once it is
 * aborted. The waits do not keep a process alive.
 */
export const untilDone = async <T>(
  attempt: () => Promise<T>,
  { backoff, failuresBefore = 0, signal, onFailure }: Tries,
): Promise<T> => {
  for (let failures = failuresBefore; ; failures += 1) {
    // Cut short by the signal, which is asked next.
    if (failures > 0)
      await sleep(backoffMs(backoff, failures), undefined, { signal, ref: false }).catch(() => undefined);
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      onFailure(error);
    }
  }
};
