/**
 * Counts what a directory tree holds on disk, in small steps with pauses between them. Stays in the tree though what
 * runs in the container may swap directories for links under its feet: entries are looked at through the descriptor
 * of their directory, and a directory is entered only if it is still the one that was seen.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, opendir } from 'node:fs/promises';

const DIRECTORY_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Entries looked at at once; a step takes about a millisecond. */
const STEP_ENTRIES = 32;
const BLOCK_BYTES = 512;
/** A tree with more than this is counted only so far: one container must not fill the daemon's memory. */
const ENTRIES_MAX = 2_000_000;
/** So many directories are remembered that are still to be entered; what is in others is not counted. */
const WAITING_MAX = 100_000;

export interface TreeUsage {
  /** Blocks allocated, each inode counted once. */
  readonly usedBytes: number;
  readonly inodesUsed: number;
  /** false: there was more than could be counted. */
  readonly complete: boolean;
}

/** Knows its parent and not its path: thousands may wait below one that is long. */
interface Directory {
  readonly parent: Directory | null;
  /** In its parent; the root's is its path. */
  readonly name: string;
  readonly ino: number;
  readonly dev: number;
}

const pathOf = (directory: Directory): string => {
  const names: string[] = [];
  for (let at: Directory | null = directory; at !== null; at = at.parent) names.push(at.name);
  return names.reverse().join('/');
};

const openDirectory = async (directory: Directory): Promise<FileHandle | null> => {
  let handle: FileHandle;
  try {
    handle = await open(pathOf(directory), DIRECTORY_FLAGS);
  } catch {
    // Removed, swapped for something else, or nested too deep for a path.
    return null;
  }
  const opened = await handle.stat();
  if (opened.ino === directory.ino && opened.dev === directory.dev) return handle;
  await handle.close();
  return null;
};

/** Names in the directory, some at a time. */
const namesOf = async function* (handle: FileHandle): AsyncGenerator<readonly string[]> {
  let names: string[] = [];
  for await (const { name } of await opendir(`/proc/self/fd/${handle.fd}`, { bufferSize: STEP_ENTRIES })) {
    names.push(name);
    if (names.length < STEP_ENTRIES) continue;
    yield names;
    names = [];
  }
  yield names;
};

/**
 * Counts the tree below `root`, itself included; null when it is no directory. `pause` is awaited after each step and
 * told how long that took; what it rejects with ends the walk. Entries that vanish meanwhile are not counted, other
 * file systems mounted in the tree neither.
 */
export const measureTree = async (
  root: string,
  pause: (stepMs: number) => Promise<void>,
): Promise<TreeUsage | null> => {
  const rootStats = await lstat(root).catch(() => null);
  if (rootStats?.isDirectory() !== true) return null;
  /** Inodes with several names. */
  const counted = new Set<number>();
  const left: Directory[] = [{ parent: null, name: root, ino: rootStats.ino, dev: rootStats.dev }];
  let complete = true;
  let blocks = rootStats.blocks;
  let inodesUsed = 1;

  const count = (stats: Stats): void => {
    if (stats.dev !== rootStats.dev || counted.has(stats.ino)) return;
    if (stats.nlink > 1 && !stats.isDirectory()) counted.add(stats.ino);
    blocks += stats.blocks;
    inodesUsed += 1;
  };

  const enter = async (directory: Directory, handle: FileHandle): Promise<void> => {
    let startedMs = performance.now();
    for await (const names of namesOf(handle)) {
      const look = (name: string) => lstat(`/proc/self/fd/${handle.fd}/${name}`).catch(() => null);
      const all = await Promise.all(names.map(look));
      for (const [index, stats] of all.entries()) {
        if (stats === null) continue;
        count(stats);
        if (!stats.isDirectory() || stats.dev !== rootStats.dev) continue;
        const { ino, dev } = stats;
        if (left.length < WAITING_MAX) left.push({ parent: directory, name: names[index] ?? '', ino, dev });
        else complete = false;
      }
      if (inodesUsed > ENTRIES_MAX) {
        complete = false;
        return;
      }
      await pause(performance.now() - startedMs);
      startedMs = performance.now();
    }
  };

  for (let next = left.pop(); next !== undefined && inodesUsed <= ENTRIES_MAX; next = left.pop()) {
    const handle = await openDirectory(next);
    if (handle === null) continue;
    try {
      await enter(next, handle);
    } finally {
      await handle.close();
    }
  }
  return { usedBytes: blocks * BLOCK_BYTES, inodesUsed, complete };
};
