/**
 * Removes and completes directory trees. Where there is little to do, as with the layers of most containers, it is done at
 * once; more goes to a thread, whose start would take longer than a small image does. No symbolic link is followed, so a
 * tree made by strangers is taken for what it is.
 */
import { lstat, unlink } from 'node:fs/promises';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { readSmallTree, removeSmallTree } from '../../../platform/linux/small-tree.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { createPendingReplies } from '../../../platform/rpc/pending.ts';
import { createBackgroundThread } from '../background-thread.ts';
import { pooledLayerCalls } from './layer-calls.ts';
import { markOpaque, type OpaqueRequest } from './opaque.ts';
import { copyLooks, type LooksRequest } from './undescribed-directories.ts';

type TreeRequest =
  | { readonly kind: 'remove' | 'removeSome' | 'sync'; readonly path: string }
  | { readonly kind: 'copyLooks'; readonly looks: LooksRequest }
  | { readonly kind: 'markOpaque'; readonly directories: OpaqueRequest };
export type ToTreeThread = TreeRequest & { readonly id: number };
export type FromTreeThread = {
  readonly id: number;
  /** It was removed in part, and there is more of it. */
  readonly isLeft: boolean;
  readonly error: string | null;
};

export interface Trees {
  /** What is not there is success. */
  readonly remove: (path: string) => Promise<void>;
  /** Removes a bit of it, in the thread: true when more is left. */
  readonly removeSome: (path: string) => Promise<boolean>;
  /** Completes the directories of an unpacked layer that it does not describe itself, see undescribed-directories.ts. */
  readonly copyLooks: (looks: LooksRequest) => Promise<void>;
  /** Marks directories of an unpacked archive as hiding what is below them, see opaque.ts. */
  readonly markOpaque: (directories: OpaqueRequest) => Promise<void>;
  /**
   * Resolves once everything that was written on the file system of `path` before the call is on its disk. Calls while
   * the disk is busy with one share the next: each one waits for what everybody else wrote, too.
   */
  readonly sync: (path: string) => Promise<void>;
  readonly close: () => Promise<void>;
}

const IDLE_MS = 10_000;

/** So many directories, above the files and in the layers below, are looked at from the daemon's own loop. */
const DIRECTORIES_MAX = 512;

const partsOf = (paths: readonly string[]): number => paths.reduce((sum, path) => sum + path.split('/').length, 0);

const failed = (why: string): FailureError =>
  new FailureError('HostFailed', `A directory tree could not be dealt with: ${why}.`);

const atOnce = async (work: Promise<void>): Promise<void> => {
  try {
    await work;
  } catch (error) {
    throw failed(messageOf(error));
  }
};

const isGone = (error: unknown): boolean => errorCodeOf(error) === 'ENOENT';

export const createTrees = (): Trees => {
  const pending = createPendingReplies<boolean>();
  let lastId = 0;

  const thread = createBackgroundThread<ToTreeThread, FromTreeThread>({
    program: new URL('./thread.ts', import.meta.url),
    data: null,
    idleMs: IDLE_MS,
    onMessage: ({ id, isLeft, error }) => {
      if (error === null) pending.resolve(id, isLeft);
      else pending.reject(id, failed(error));
      if (pending.size() === 0) thread.rest();
    },
    onFailure: pending.failAll,
  });

  const ask = (request: TreeRequest): Promise<boolean> => {
    lastId += 1;
    const reply = pending.wait(lastId);
    thread.post({ id: lastId, ...request });
    return reply;
  };

  let syncing: Promise<unknown> = Promise.resolve();
  let nextSync: Promise<void> | null = null;

  const sync = async (path: string): Promise<void> => {
    const done = ask({ kind: 'sync', path });
    syncing = done.catch(() => undefined);
    await done;
  };

  return {
    sync: (path) => {
      nextSync ??= syncing.then(() => {
        nextSync = null;
        return sync(path);
      });
      return nextSync;
    },
    remove: async (path) => {
      try {
        const small = await readSmallTree(path);
        if (small !== null) await removeSmallTree(small);
        else await ask({ kind: 'remove', path });
      } catch (error) {
        if (errorCodeOf(error) === 'ENOTDIR') return await unlink(path);
        // What changed under our hands, the thread removes all the same.
        if (!isGone(error)) await ask({ kind: 'remove', path });
        else if (await lstat(path).catch(() => null)) await ask({ kind: 'remove', path });
      }
    },
    removeSome: (path) => ask({ kind: 'removeSome', path }),
    copyLooks: async (looks) => {
      const { implied, lowerDirs } = looks;
      if (partsOf(implied) * (1 + lowerDirs.length) <= DIRECTORIES_MAX)
        await atOnce(copyLooks(looks, pooledLayerCalls));
      else await ask({ kind: 'copyLooks', looks });
    },
    markOpaque: async (directories) => {
      if (partsOf(directories.opaque) <= DIRECTORIES_MAX) await atOnce(markOpaque(directories, pooledLayerCalls));
      else await ask({ kind: 'markOpaque', directories });
    },
    close: thread.close,
  };
};
