/**
 * Work that several ask for and that is done once: whoever asks while it is under way gets the same result. It is
 * aborted when the last of them has gone. Keeps nothing once it has ended: a later caller starts it anew.
 */
import { unlessAborted } from '../../platform/rpc/timeout.ts';

/**
 * Runs `start` for the first caller of a key. Rejects with the signal's reason for a caller that gives up; for the last
 * one only once the work has ended, so that nothing of it goes on behind anybody's back.
 */
export type SharedWork<T> = (
  key: string,
  signal: AbortSignal,
  start: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

interface Running<T> {
  readonly result: Promise<T>;
  readonly abort: AbortController;
  callers: number;
}

export const createSharedWork = <T>(): SharedWork<T> => {
  const running = new Map<string, Running<T>>();

  const begin = (key: string, start: (signal: AbortSignal) => Promise<T>): Running<T> => {
    const abort = new AbortController();
    const work: Running<T> = { result: start(abort.signal), abort, callers: 0 };
    const forget = (): void => {
      if (running.get(key) === work) running.delete(key);
    };
    work.result.then(forget, forget);
    running.set(key, work);
    return work;
  };

  return async (key, signal, start) => {
    signal.throwIfAborted();
    let work = running.get(key);
    // What its last caller has left is on its way out; let it end before the same files are touched again.
    while (work?.abort.signal.aborted) {
      await work.result.catch(() => undefined);
      signal.throwIfAborted();
      work = running.get(key);
    }
    const joined = work ?? begin(key, start);
    joined.callers += 1;
    try {
      return await unlessAborted(joined.result, signal);
    } finally {
      joined.callers -= 1;
      if (joined.callers === 0) {
        joined.abort.abort(signal.reason);
        await joined.result.catch(() => undefined);
      }
    }
  };
};
