/**
 * Bounded waits: by time, or by a signal. Only the waiting ends: what is waited for goes on, and whether it is to be
 * stopped is the caller's to say. Nothing of a wait is left behind when it has ended, neither a timer nor a listener.
 */

/** As long as a timer holds, 24 days: one that is set for longer fires at once. */
export const TIMER_MS_MAX = 2 ** 31 - 1;

/** As a timer takes it. What is left of a time may be less than nothing. */
export const timerMs = (timeoutMs: number): number => Math.max(0, Math.min(timeoutMs, TIMER_MS_MAX));

/** The work's result, or `late` after `timeoutMs`. */
export const orAfter = async <T, L>(work: Promise<T>, timeoutMs: number, late: L): Promise<T | L> => {
  const { promise: overtime, resolve } = Promise.withResolvers<L>();
  const timer = setTimeout(resolve, timerMs(timeoutMs), late);
  try {
    return await Promise.race([work, overtime]);
  } finally {
    clearTimeout(timer);
  }
};

/**
 * The work's result. Rejects after `timeoutMs` with the error that `late` makes, which names what was waited for, and
 * with the signal's reason once that is aborted.
 */
export const within = async <T>(
  work: Promise<T>,
  timeoutMs: number,
  late: () => Error,
  signal?: AbortSignal,
): Promise<T> => {
  const { promise: cut, reject } = Promise.withResolvers<never>();
  const giveUp = (): void => reject(signal?.reason as Error);
  const timer = setTimeout(() => reject(late()), timerMs(timeoutMs));
  signal?.addEventListener('abort', giveUp, { once: true });
  if (signal?.aborted === true) giveUp();
  try {
    return await Promise.race([work, cut]);
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', giveUp);
  }
};

/** The work's result; rejects with the signal's reason once it is aborted. */
export const unlessAborted = async <T>(work: Promise<T>, signal: AbortSignal): Promise<T> => {
  const { promise: cut, reject } = Promise.withResolvers<never>();
  const giveUp = (): void => reject(signal.reason as Error);
  signal.addEventListener('abort', giveUp, { once: true });
  if (signal.aborted) giveUp();
  try {
    return await Promise.race([work, cut]);
  } finally {
    signal.removeEventListener('abort', giveUp);
  }
};
