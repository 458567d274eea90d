/** A bound on how much is done at once: callers beyond it wait their turn, first come first served. */

/** Runs `work` when there is room. Rejects with the signal's reason for a caller that gives up while it waits; null: never. */
export type Semaphore = <T>(signal: AbortSignal | null, work: () => Promise<T>) => Promise<T>;

export const createSemaphore = (places: number): Semaphore => {
  let free = places;
  const waiting = new Set<() => void>();

  const enter = (signal: AbortSignal | null): Promise<void> => {
    signal?.throwIfAborted();
    if (free > 0) {
      free -= 1;
      return Promise.resolve();
    }
    return new Promise((resolve, reject) => {
      const admit = (): void => {
        signal?.removeEventListener('abort', giveUp);
        resolve();
      };
      const giveUp = (): void => {
        waiting.delete(admit);
        reject(signal?.reason as Error);
      };
      waiting.add(admit);
      signal?.addEventListener('abort', giveUp, { once: true });
    });
  };

  const leave = (): void => {
    const [next] = waiting;
    if (next === undefined) {
      free += 1;
      return;
    }
    waiting.delete(next);
    next();
  };

  return async (signal, work) => {
    await enter(signal);
    try {
      return await work();
    } finally {
      leave();
    }
  };
};
