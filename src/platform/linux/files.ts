/**
 * Files and directories of the daemon's own, made and removed so that a crash half-way leaves nothing taken for whole:
 * a file is there with all its content or not at all, a directory that is being removed has lost its name first.
 */
import { rm } from 'node:fs/promises';
import { basename, dirname, isAbsolute, join, normalize } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { type CallsAt, pooledCalls, pooledEverywhere } from './file-calls.ts';
import { isAtOrBelow } from './mounts.ts';
import { mountsBelow } from './mounts-below.ts';
import { settleAll } from './settle-all.ts';
import { readSmallTree, removeSmallTree } from './small-tree.ts';
import { errorCodeOf } from '../error-code.ts';

/** Passable for whoever knows what it is looking for, to be listed by root alone. */
const PASSABLE_DIRECTORY_MODE = 0o711;

/** The name that what is to be at `path` has until it is whole. */
export const unfinishedName = (path: string): string => join(dirname(path), `.unfinished-${basename(path)}`);

export interface Files {
  /** With all directories that are missing above it. */
  readonly makeDirectory: (path: string, mode?: number) => Promise<void>;
  /**
   * A directory of one pod or container alone: nobody but root gets into it, and where the pod has users of its own, their
   * root, by its group. Without this, whoever is on the node could run what is in a container, with its set-user-ID bits.
   */
  readonly makeDirectoryOfPod: (path: string, podRootGid?: number) => Promise<void>;
  /** Whether another file system is mounted at the directory than the one that its own directory is on. */
  readonly isMountPoint: (path: string) => Promise<boolean>;
  /** Whether there is anything at the path, a link that leads nowhere too. */
  readonly isThere: (path: string) => Promise<boolean>;
  /** What a directory holds; nothing when it is not there. */
  readonly namesIn: (directory: string) => Promise<readonly string[]>;
  /** Writes a file whole: under another name first, which then takes the place of what was at `path`. */
  readonly writeFileWhole: (path: string, content: string | Uint8Array, mode: number) => Promise<void>;
  /** Removes a tree, in few turns where it is small; what is not there is removed. */
  readonly removeWhole: (path: string) => Promise<void>;
  readonly callsAt: CallsAt;
}

/** Each path is dealt with by the calls for it. */
export const createFiles = (callsAt: CallsAt): Files => {
  const makeDirectory: Files['makeDirectory'] = async (path, mode = PASSABLE_DIRECTORY_MODE) => {
    await callsAt(path).mkdir(path, { recursive: true, mode });
  };

  const isThere: Files['isThere'] = async (path) => {
    try {
      await callsAt(path).lstat(path);
      return true;
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return false;
      throw error;
    }
  };

  return {
    makeDirectory,
    makeDirectoryOfPod: async (path, podRootGid) => {
      const { mkdir, chown, chmod } = callsAt(path);
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
    },
    isMountPoint: async (path) => {
      const { stat } = callsAt(path);
      const [inside, outside] = await Promise.all([stat(path), stat(dirname(path))]);
      return inside.dev !== outside.dev;
    },
    isThere,
    namesIn: async (directory) => {
      try {
        return await callsAt(directory).names(directory);
      } catch (error) {
        if (errorCodeOf(error) === 'ENOENT') return [];
        throw error;
      }
    },
    writeFileWhole: async (path, content, mode) => {
      const { fill, rename } = callsAt(path);
      const unfinished = unfinishedName(path);
      await fill(unfinished, content, mode);
      await rename(unfinished, path);
    },
    removeWhole: async (path) => {
      const calls = callsAt(path);
      try {
        const small = await readSmallTree(path, { calls });
        if (small !== null) return await removeSmallTree(small, calls);
      } catch (error) {
        if (errorCodeOf(error) === 'ENOENT' && !(await isThere(path))) return;
        // It is no directory, or changed meanwhile.
      }
      // By the pool wherever it is: there may be no end to it.
      await rm(path, { recursive: true, force: true });
    },
    callsAt,
  };
};

/** For whoever isn't told that a place is in memory. */
export const pooledFiles = createFiles(pooledEverywhere);
export const { makeDirectory, isMountPoint, namesIn, writeFileWhole } = pooledFiles;

/** Removes a directory tree; its name is free before its content is gone. What is not there is removed. */
const removeTree = async (path: string, { removeWhole }: Files): Promise<void> => {
  // By the pool wherever it is: for a directory that may be a mount point somewhere else the kernel waits for all that mount.
  const { rename } = pooledCalls;
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
  /** As `checkBelow`. */
  readonly check: (path: string) => void;
  /**
   * Unmounts what is mounted at or below each path, and removes the paths. Doing it again is
   * nothing. Rejects, and removes nothing, when something is still mounted there: removing would reach into it.
   * `onceUnmounted` is waited for in between.
   */
  readonly clean: (paths: readonly string[], onceUnmounted?: () => Promise<void>) => Promise<void>;
}

/** Throws Bug unless the path is a plain absolute one strictly below one of the roots. */
export const checkBelow = (roots: readonly string[], path: string): void => {
  const plain = isAbsolute(path) && normalize(path) === path && !path.endsWith('/');
  if (plain && roots.some((root) => path !== root && isAtOrBelow(path, root))) return;
  throw new FailureError('Bug', `${path} was to be made or removed, but lies outside of ${roots.join(' and ')}.`);
};

/** A remover that can be pointed at nothing but what lies below `roots`; `unmount` is the spawner's. */
export const createPathCleaner = (
  roots: readonly string[],
  unmount: (target: string) => Promise<void>,
  files: Files,
): PathCleaner => {
  const check = (path: string): void => checkBelow(roots, path);

  const unmountBelow = async (paths: readonly string[]): Promise<void> => {
    let left = await mountsBelow(paths, files.callsAt);
    for (let looks = COVERED_MOUNTS_MAX; left.length > 0 && looks > 0; looks -= 1) {
      for (const mountPoint of left) await unmount(mountPoint);
      left = await mountsBelow(paths, files.callsAt);
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
      await settleAll(paths.map((path) => removeTree(path, files)));
    },
  };
};
