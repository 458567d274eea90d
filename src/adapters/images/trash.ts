/**
 * Removes from the disk what was taken out of the store, behind everybody's back: a bit at a time, and not while images
 * are fetched, unless room is short. Whoever takes something out moves it to the trash and waits for nothing.
 */
import { randomUUID } from 'node:crypto';
import { mkdir, rename, statfs } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import type { ImageLayout } from './layout.ts';
import type { Trees } from './trees/trees.ts';

const DIRECTORY_MODE = 0o700;

/** Takes a file or directory out of the store; the next clearing finds it. false when there was nothing. */
export const moveToTrash = async (layout: ImageLayout, path: string): Promise<boolean> => {
  await mkdir(layout.trash, { recursive: true, mode: DIRECTORY_MODE });
  try {
    await rename(path, join(layout.trash, randomUUID()));
    return true;
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
};

export interface Trash {
  /** Resolves once all is gone that was there at the call, or the store closes. Rejects when something can't be removed. */
  readonly clear: () => Promise<void>;
  /** Resolves once there is room to fetch an image, or no more is to be had from the trash. */
  readonly whenRoomy: () => Promise<void>;
  /** Ends what is under way; the rest stays for the next life. */
  readonly close: () => Promise<void>;
}

/** With less of the file system free than this, room comes first. */
const ROOMY_SHARE = 0.15;

export const createTrash = (options: {
  readonly directory: string;
  readonly trees: Pick<Trees, 'removeSome'>;
  /** Resolves at once unless something is being fetched, and not much later then; rejects with the signal's reason. */
  readonly whenIdle: (signal: AbortSignal) => Promise<void>;
}): Trash => {
  const { directory, trees, whenIdle } = options;
  let clearing: Promise<void> | null = null;
  const closed = new AbortController();

  const isRoomy = async (): Promise<boolean> => {
    // Without the directory there is nothing to be had from it.
    const space = await statfs(directory).catch(() => null);
    return space === null || space.bavail >= space.blocks * ROOMY_SHARE;
  };

  const letOthersGoFirst = async (): Promise<void> => {
    if (!(await isRoomy())) return;
    try {
      await whenIdle(closed.signal);
    } catch (error) {
      if (!closed.signal.aborted) throw error;
    }
  };

  /** false: it is not all gone, for the store is closed. */
  const removeAll = async (path: string): Promise<boolean> => {
    do {
      await letOthersGoFirst();
      if (closed.signal.aborted) return false;
    } while (await trees.removeSome(path));
    return true;
  };

  const clearAll = async (): Promise<void> => {
    for (let names = await namesIn(directory); names.length > 0; names = await namesIn(directory))
      for (const name of names) if (!(await removeAll(join(directory, name)))) return;
  };

  return {
    clear: () => {
      // Behind the clearing under way, which may have passed over what came last.
      const next = (clearing ?? Promise.resolve()).catch(() => undefined).then(clearAll);
      clearing = next.finally(() => {
        if (clearing === next) clearing = null;
      });
      return clearing;
    },
    whenRoomy: async () => {
      if (clearing !== null && !(await isRoomy())) await clearing.catch(() => undefined);
    },
    close: async () => {
      closed.abort(new Error('the image store is closed'));
      await clearing?.catch(() => undefined);
    },
  };
};
