/**
 * Fetches and collections, kept apart: a pull or load waits for a collection under way, since it must not find what is
 * about to go, and nothing is collected while something is fetched, since that is known to nobody yet.
 */
import type { ImageContent } from '../../domain/model/image-content.ts';
import { within } from '../../platform/rpc/timeout.ts';
import type { StoredContent } from './usage.ts';

/** An image that was fetched is in the journal, and so known to be needed, long before this has passed. */
const LATELY_MS = 10 * 60_000;
/** What is fetched without a pause can't keep other work waiting for ever. */
const PATIENCE_MS = 60_000;

export interface FetchTurns {
  /** `imagesOf` says what was fetched: it is needed, whether or not anybody knows by now. */
  readonly fetch: <T>(work: () => Promise<T>, imagesOf: (fetched: T) => readonly ImageContent[]) => Promise<T>;
  /**
   * For what can wait: resolves once nothing is being fetched, or when that has gone on for long. Rejects with the signal's
   * reason.
   */
  readonly whenIdle: (signal: AbortSignal) => Promise<void>;
  /** null while something is being fetched. `work` is told of what is needed, and of what was fetched lately. */
  readonly collect: <T>(needed: StoredContent, work: (needed: StoredContent) => Promise<T>) => Promise<T | null>;
}

/** `whenRoomy`: no fetch begins before it resolves. */
export const createFetchTurns = (whenRoomy: () => Promise<void> = () => Promise.resolve()): FetchTurns => {
  const lately = new Set<{ readonly image: ImageContent; readonly atMs: number }>();
  let fetching = 0;
  let collecting: Promise<unknown> = Promise.resolve();
  let idle: PromiseWithResolvers<void> | null = null;

  const neededWith = (needed: StoredContent): StoredContent => {
    const beforeMs = performance.now() - LATELY_MS;
    for (const fetched of lately) if (fetched.atMs < beforeMs) lately.delete(fetched);
    const contents = [...lately].map(({ image }) => image);
    return {
      blobs: [...needed.blobs, ...contents.flatMap(({ blobs }) => blobs)],
      chainIds: [...needed.chainIds, ...contents.flatMap(({ layers }) => layers.map(({ chainId }) => chainId))],
    };
  };

  return {
    fetch: async (work, imagesOf) => {
      fetching += 1;
      try {
        await collecting;
        await whenRoomy();
        const fetched = await work();
        for (const image of imagesOf(fetched)) lately.add({ image, atMs: performance.now() });
        return fetched;
      } finally {
        fetching -= 1;
        if (fetching === 0) {
          idle?.resolve();
          idle = null;
        }
      }
    },
    whenIdle: async (signal) => {
      if (fetching === 0) return;
      idle ??= Promise.withResolvers();
      const impatience = new Error('something is fetched without a pause');
      try {
        await within(idle.promise, PATIENCE_MS, () => impatience, signal);
      } catch (error) {
        if (error !== impatience) throw error;
      }
    },
    collect: async (needed, work) => {
      if (fetching > 0) return null;
      const collection = work(neededWith(needed));
      collecting = collection.catch(() => undefined);
      return await collection;
    },
  };
};
