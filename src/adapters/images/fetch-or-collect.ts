/**
 * Fetches and collections, kept apart: a pull or load waits for a collection under way, since it must not find what is
 * about to go, and nothing is collected while something is fetched, since that is known to nobody yet. Knows what was
 * fetched lately, for those who remove content and may not have heard of it.
 */
import type { ImageContent } from '../../domain/model/image-content.ts';
import { within } from '../../platform/rpc/timeout.ts';
import type { StoredContent } from './usage.ts';

/** An image that was fetched is in the journal, and so known to be needed, long before this has passed. */
const LATELY_MS = 10 * 60_000;
/** What is fetched without a pause can't keep other work waiting for ever. */
const PATIENCE_MS = 60_000;

export interface FetchTurns {
  readonly fetch: <T>(work: () => Promise<T>) => Promise<T>;
  /** What that name, a reference or an upload, has brought: it is needed, whether or not anybody knows by now. */
  readonly fetched: (name: string, images: readonly ImageContent[]) => void;
  /** Tells the work what these names have brought lately, and bring until it has ended. */
  readonly withBrought: <T>(names: readonly string[], work: (brought: () => StoredContent) => Promise<T>) => Promise<T>;
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
  const lately = new Set<{ readonly name: string; readonly image: ImageContent; readonly atMs: number }>();
  /** Names that somebody asks for, however long that takes. */
  const watched = new Set<readonly string[]>();
  let fetching = 0;
  let collecting: Promise<unknown> = Promise.resolve();
  let idle: PromiseWithResolvers<void> | null = null;

  const contentOf = (isWanted: (name: string) => boolean): StoredContent => {
    const beforeMs = performance.now() - LATELY_MS;
    const isWatched = (name: string): boolean => watched.values().some((names) => names.includes(name));
    for (const fetched of lately) if (fetched.atMs < beforeMs && !isWatched(fetched.name)) lately.delete(fetched);
    const images = [...lately].filter(({ name }) => isWanted(name)).map(({ image }) => image);
    return {
      blobs: images.flatMap(({ blobs }) => blobs),
      chainIds: images.flatMap(({ layers }) => layers.map(({ chainId }) => chainId)),
    };
  };

  const neededWith = (needed: StoredContent): StoredContent => {
    const brought = contentOf(() => true);
    return {
      blobs: [...needed.blobs, ...brought.blobs],
      chainIds: [...needed.chainIds, ...brought.chainIds],
    };
  };

  return {
    fetch: async (work) => {
      fetching += 1;
      try {
        await collecting;
        await whenRoomy();
        return await work();
      } finally {
        fetching -= 1;
        if (fetching === 0) {
          idle?.resolve();
          idle = null;
        }
      }
    },
    fetched: (name, images) => {
      for (const image of images) lately.add({ name, image, atMs: performance.now() });
    },
    withBrought: async (names, work) => {
      watched.add(names);
      try {
        return await work(() => contentOf((name) => names.includes(name)));
      } finally {
        watched.delete(names);
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
