/**
 * Work that several ask for and that is done once: whoever asks while it is under way gets the same result. It is
 * aborted when the last of them has gone. Keeps nothing once it has ended: a later caller starts it anew. Callers come to
 * the same by ways of their own (another registry, another image that names the same layer), so that one's failure is
 * nobody else's: the others try it their way, one after the other.
 */
import { unlessAborted } from '../../platform/rpc/timeout.ts';

/**
 * Runs `start` for the first caller of a key, and for the next where that failed. Rejects with the signal's reason for a
 * caller that gives up; for the last one only once the work has ended, so that nothing of it goes on behind anybody's back.
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

  /** The result, or null where the work was another's and has failed. */
  const attempt = async (
    key: string,
    signal: AbortSignal,
    start: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ readonly result: T } | null> => {
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
      return { result: await unlessAborted(joined.result, signal) };
    } catch (error) {
      if (work === undefined) throw error;
      signal.throwIfAborted();
      return null;
    } finally {
      joined.callers -= 1;
      if (joined.callers === 0) {
        joined.abort.abort(signal.reason);
        await joined.result.catch(() => undefined);
      }
    }
  };

  return async (key, signal, start) => {
    for (;;) {
      const done = await attempt(key, signal, start);
      if (done !== null) return done.result;
    }
  };
};
