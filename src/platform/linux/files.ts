/**
 * Files and directories of the daemon's own, made and removed so that a crash half-way leaves nothing taken for whole:
 * a file is there with all its content or not at all, a directory that is being removed has lost its name first.
 */
import { constants } from 'node:fs';
import { chmod, chown, open, mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { isAtOrBelow } from './mounts.ts';
import { mountsBelow } from './mounts-below.ts';
import { settleAll } from './settle-all.ts';
import { readSmallTree, removeSmallTree } from './small-tree.ts';
import { errorCodeOf } from './syscalls.ts';

/** Passable for whoever knows what it is looking for, to be listed by root alone. */
const PASSABLE_DIRECTORY_MODE = 0o711;

export const makeDirectory = async (path: string, mode = PASSABLE_DIRECTORY_MODE): Promise<void> => {
  await mkdir(path, { recursive: true, mode });
};

/**
 * A directory of one pod or container alone: nobody but root gets into it, and where the pod has users of its own, their
 * root, by its group. Without this, whoever is on the node could run what is in a container, with its set-user-ID bits.
 */
export const makeDirectoryOfPod = async (path: string, podRootGid?: number): Promise<void> => {
  const mode = podRootGid === undefined ? 0o700 : 0o710;
  try {
    // Nearly always its own directory is there and it is not: asking first would take two turns more.
    await mkdir(path, { mode });
  } catch {
    await makeDirectory(dirname(path));
    await mkdir(path, { recursive: true, mode });
  }
  if (podRootGid !== undefined) await chown(path, 0, podRootGid);
  // It may have been there with another one.
  await chmod(path, mode);
};

/** Whether another file system is mounted at the directory than the one that its own directory is on. */
export const isMountPoint = async (path: string): Promise<boolean> => {
  const [inside, outside] = await Promise.all([stat(path), stat(dirname(path))]);
  return inside.dev !== outside.dev;
};

/** What a directory holds; nothing when it is not there. */
export const namesIn = async (directory: string): Promise<readonly string[]> => {
  try {
    return await readdir(directory);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return [];
    throw error;
  }
};

/** The name that what is to be at `path` has until it is whole. */
export const unfinishedName = (path: string): string => join(dirname(path), `.unfinished-${basename(path)}`);

/** What a file is written through: made if missing, emptied if not, and no link that stands in its place is followed. */
const WRITE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;

/** Writes a file whole: under another name first, which then takes the place of what was at `path`. */
export const writeFileWhole = async (path: string, content: string | Uint8Array, mode: number): Promise<void> => {
  const unfinished = unfinishedName(path);
  const file = await open(unfinished, WRITE_FLAGS, mode);
  try {
    await file.writeFile(content);
    // Whatever the umask is.
    await file.chmod(mode);
  } finally {
    await file.close();
  }
  await rename(unfinished, path);
};

/** Removes a tree, in few turns where it is small; what is not there is removed. */
export const removeWhole = async (path: string): Promise<void> => {
  try {
    const small = await readSmallTree(path);
    if (small !== null) return await removeSmallTree(small);
  } catch {
    // It is not there, is no directory, or changed meanwhile.
  }
  await rm(path, { recursive: true, force: true });
};

/** Removes a directory tree; its name is free before its content is gone. What is not there is removed. */
const removeTree = async (path: string): Promise<void> => {
  const removed = join(dirname(path), `.removed-${basename(path)}`);
  try {
    await rename(path, removed);
  } catch (error) {
    // What an earlier attempt that did not come to its end has left stands in the way, or is all that there is.
    await removeWhole(removed);
    if (errorCodeOf(error) === 'ENOENT') return;
    await rename(path, removed);
  }
  await removeWhole(removed);
};

/** Looked at so often, mounts that were covered by others have shown. */
const COVERED_MOUNTS_MAX = 4;

export interface PathCleaner {
  /** Throws Bug unless the path is a plain absolute one strictly below one of the roots. */
  readonly check: (path: string) => void;
  /**
   * Unmounts what is mounted at or below each path, and removes the paths. Doing it again is
   * nothing. Rejects, and removes nothing, when something is still mounted there: removing would reach into it.
   * `onceUnmounted` is waited for in between.
   */
  readonly clean: (paths: readonly string[], onceUnmounted?: () => Promise<void>) => Promise<void>;
}

/** A remover that can be pointed at nothing but what lies below `roots`; `unmount` is the spawner's. */
export const createPathCleaner = (
  roots: readonly string[],
  unmount: (target: string) => Promise<void>,
): PathCleaner => {
  const check = (path: string): void => {
    const plain = isAbsolute(path) && normalize(path) === path && !path.endsWith('/');
    if (plain && roots.some((root) => path !== root && isAtOrBelow(path, root))) return;
    throw new FailureError('Bug', `${path} was to be made or removed, but lies outside of ${roots.join(' and ')}.`);
  };

  const unmountBelow = async (paths: readonly string[]): Promise<void> => {
    let left = await mountsBelow(paths);
    for (let looks = COVERED_MOUNTS_MAX; left.length > 0 && looks > 0; looks -= 1) {
      for (const mountPoint of left) await unmount(mountPoint);
      left = await mountsBelow(paths);
    }
    if (left.length === 0) return;
    throw new FailureError('HostFailed', `${left.join(', ')} cannot be unmounted, so nothing there was removed.`);
  };

  return {
    check,
    clean: async (paths, onceUnmounted) => {
      for (const path of paths) check(path);
      await unmountBelow(paths);
      await onceUnmounted?.();
      await settleAll(paths.map(removeTree));
    },
  };
};
