/**
 * Work that several ask for and that is done once: whoever asks while it is under way gets the same result. It is
 * aborted when the last of them has gone. Keeps nothing once it has ended: a later caller starts it anew. Callers may come to
 * the same by different ways (another registry, another image that names the same layer): where one's way fails, those who
 * go the same fail with it, and the others try theirs, one after the other.
 */
import { unlessAborted } from '../../platform/rpc/timeout.ts';

export interface Asked {
  /** What is done: once at a time. */
  readonly key: string;
  /** How this caller does it; kept in memory only, while somebody does. */
  readonly way: string;
}

/**
 * Runs `start` for the first caller of a key, and for the next of another way where that failed. Rejects with the signal's reason for a
 * caller that gives up; for the last one only once the work has ended, so that nothing of it goes on behind anybody's back.
 */
export type SharedWork<T> = (
  asked: Asked,
  signal: AbortSignal,
  start: (signal: AbortSignal) => Promise<T>,
) => Promise<T>;

interface Running<T> extends Pick<Asked, 'way'> {
  readonly result: Promise<T>;
  readonly abort: AbortController;
  callers: number;
}

export const createSharedWork = <T>(): SharedWork<T> => {
  const running = new Map<string, Running<T>>();

  const begin = ({ key, way }: Asked, start: (signal: AbortSignal) => Promise<T>): Running<T> => {
    const abort = new AbortController();
    const work: Running<T> = { way, result: start(abort.signal), abort, callers: 0 };
    const forget = (): void => {
      if (running.get(key) === work) running.delete(key);
    };
    work.result.then(forget, forget);
    running.set(key, work);
    return work;
  };

  /** The result, or null where the work went another's way, and failed. */
  const attempt = async (
    asked: Asked,
    signal: AbortSignal,
    start: (signal: AbortSignal) => Promise<T>,
  ): Promise<{ readonly result: T } | null> => {
    signal.throwIfAborted();
    let work = running.get(asked.key);
    // What its last caller has left is on its way out; let it end before the same files are touched again.
    while (work?.abort.signal.aborted) {
      await work.result.catch(() => undefined);
      signal.throwIfAborted();
      work = running.get(asked.key);
    }
    const joined = work ?? begin(asked, start);
    joined.callers += 1;
    try {
      return { result: await unlessAborted(joined.result, signal) };
    } catch (error) {
      signal.throwIfAborted();
      if (joined.way === asked.way) throw error;
      return null;
    } finally {
      joined.callers -= 1;
      if (joined.callers === 0) {
        joined.abort.abort(signal.reason);
        await joined.result.catch(() => undefined);
      }
    }
  };

  return async (asked, signal, start) => {
    for (;;) {
      const done = await attempt(asked, signal, start);
      if (done !== null) return done.result;
    }
  };
};
