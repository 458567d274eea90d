/**
 * Delays between tries: doubling from the first to the last, cut short when there is nothing left to try for.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { ShimTimings } from './timings.ts';

export interface Backoff {
  /** Waits for the next delay; rejects with AbortError at once when the signal is aborted. */
  readonly pause: (signal: AbortSignal) => Promise<void>;
}

export const createBackoff = ({
  retryFirstMs,
  retryLastMs,
}: Pick<ShimTimings, 'retryFirstMs' | 'retryLastMs'>): Backoff => {
  let delayMs = retryFirstMs;
  return {
    pause: async (signal) => {
      const now = delayMs;
      delayMs = Math.min(delayMs * 2, retryLastMs);
      await sleep(now, undefined, { signal, ref: false });
    },
  };
};

/** Resolves with the work's result, or with `late` after `timeoutMs`. */
export const orAfter = async <T, L>(work: Promise<T>, timeoutMs: number, late: L): Promise<T | L> => {
  const { promise: overtime, resolve } = Promise.withResolvers<L>();
  const timer = setTimeout(resolve, timeoutMs, late);
  try {
    return await Promise.race([work, overtime]);
  } finally {
    clearTimeout(timer);
  }
};
