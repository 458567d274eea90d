/**
 * Keeps plugins from meeting each other where CNI forbids it (section 3, "Lifecycle & Ordering"): one operation
 * at a time per pod, and garbage collection alone. Knows neither pods nor plugins.
 */

type Work<T> = () => Promise<T>;

export interface Order {
  /** Runs `work` after earlier work of the same `key`, beside that of other keys. */
  readonly perKey: <T>(key: string, work: Work<T>) => Promise<T>;
  /** Runs `work` once all earlier work is done, before any later work. */
  readonly alone: <T>(work: Work<T>) => Promise<T>;
}

export const createOrder = (): Order => {
  /** The last work of each key, and when it is done; failures are the caller's business alone. */
  const tails = new Map<string, Promise<void>>();
  let lastAlone: Promise<void> = Promise.resolve();

  const settled = (work: Promise<unknown>): Promise<void> =>
    work.then(
      () => undefined,
      () => undefined,
    );

  const perKey = <T>(key: string, work: Work<T>): Promise<T> => {
    const result = Promise.all([tails.get(key), lastAlone]).then(work);
    const tail = settled(result).then(() => {
      if (tails.get(key) === tail) tails.delete(key);
    });
    tails.set(key, tail);
    return result;
  };

  const alone = <T>(work: Work<T>): Promise<T> => {
    const result = Promise.all([...tails.values(), lastAlone]).then(work);
    lastAlone = settled(result);
    return result;
  };

  return { perKey, alone };
};
