/**
 * Counts what a directory tree holds on disk, in small steps with pauses between them. Stays in the tree though what
 * runs in the container may swap directories for links under its feet: entries are looked at through the descriptor
 * of their directory, and a directory is entered only if it is still the one that was seen. Nothing is hidden from it by
 * long paths or names of any bytes; what can't be read is said.
 */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, lstat, open, opendir } from 'node:fs/promises';
import { errorCodeOf } from '../../platform/error-code.ts';

const DIRECTORY_FLAGS = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
/** Entries looked at at once; a step takes about a millisecond. */
const STEP_ENTRIES = 32;
const BLOCK_BYTES = 512;
/** A tree with more than this is counted only so far: one container must not fill the daemon's memory. */
const ENTRIES_MAX = 2_000_000;
/** So many directories are remembered that are still to be entered; what is in others is not counted. */
const WAITING_MAX = 100_000;
/** Of one path that the kernel is given, which takes no more than 4096: longer ones are walked in parts. */
const PATH_BYTES_MAX = 3500;

export interface TreeUsage {
  /** Blocks allocated, each inode counted once. */
  readonly usedBytes: number;
  readonly inodesUsed: number;
  /** false: there was more than could be counted, or something that could not be read. */
  readonly complete: boolean;
}

/** Knows its parent and not its path: thousands may wait below one that is long. */
interface Directory {
  readonly parent: Directory | null;
  /** In its parent, its bytes as latin1; the root's is its path. */
  readonly name: string;
  readonly ino: number;
  readonly dev: number;
}

const bytesOf = (path: string): Buffer => Buffer.from(path, 'latin1');

/** Its path in parts, each but the first relative to the one before. */
const pathOf = (directory: Directory): readonly string[] => {
  const names: string[] = [];
  for (let at: Directory | null = directory; at !== null; at = at.parent) names.push(at.name);
  const parts: string[] = [];
  let part = names.pop() ?? '';
  for (let name = names.pop(); name !== undefined; name = names.pop()) {
    if (part.length + name.length < PATH_BYTES_MAX) part = `${part}/${name}`;
    else {
      parts.push(part);
      part = name;
    }
  }
  return [...parts, part];
};

const openPath = async ([first = '', ...rest]: readonly string[]): Promise<FileHandle> => {
  let handle = await open(bytesOf(first), DIRECTORY_FLAGS);
  for (const part of rest) {
    const above = handle;
    try {
      handle = await open(bytesOf(`/proc/self/fd/${above.fd}/${part}`), DIRECTORY_FLAGS);
    } finally {
      await above.close();
    }
  }
  return handle;
};

const isGone = (error: unknown): boolean => errorCodeOf(error) === 'ENOENT';

/** gone: it was removed, or one above it. unreadable: it is something else now, or the system does not let it be read. */
const openDirectory = async (directory: Directory): Promise<FileHandle | 'gone' | 'unreadable'> => {
  let handle: FileHandle;
  try {
    handle = await openPath(pathOf(directory));
  } catch (error) {
    return isGone(error) ? 'gone' : 'unreadable';
  }
  const opened = await handle.stat();
  if (opened.ino === directory.ino && opened.dev === directory.dev) return handle;
  await handle.close();
  return 'unreadable';
};

/** Names in the directory, some at a time. */
const namesOf = async function* (handle: FileHandle): AsyncGenerator<readonly string[], void> {
  const options = { bufferSize: STEP_ENTRIES, encoding: 'latin1' } as const;
  let names: string[] = [];
  for await (const { name } of await opendir(`/proc/self/fd/${handle.fd}`, options)) {
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
  const name = Buffer.from(root).toString('latin1');
  const left: Directory[] = [{ parent: null, name, ino: rootStats.ino, dev: rootStats.dev }];
  let complete = true;
  let blocks = rootStats.blocks;
  let inodesUsed = 1;

  const count = (stats: Stats): void => {
    if (stats.dev !== rootStats.dev || counted.has(stats.ino)) return;
    if (stats.nlink > 1 && !stats.isDirectory()) counted.add(stats.ino);
    blocks += stats.blocks;
    inodesUsed += 1;
  };

  const look = async (path: string): Promise<Stats | null> => {
    try {
      return await lstat(bytesOf(path));
    } catch (error) {
      complete &&= isGone(error);
      return null;
    }
  };

  /** The next names; null at the end, and where the directory can't be read on. */
  const next = async (names: AsyncGenerator<readonly string[], void>): Promise<readonly string[] | null> => {
    try {
      const step = await names.next();
      return step.done === true ? null : step.value;
    } catch (error) {
      complete &&= isGone(error);
      return null;
    }
  };

  const enter = async (directory: Directory, handle: FileHandle): Promise<void> => {
    let startedMs = performance.now();
    const all = namesOf(handle);
    for (let names = await next(all); names !== null; names = await next(all)) {
      const found = await Promise.all(names.map((entry) => look(`/proc/self/fd/${handle.fd}/${entry}`)));
      for (const [index, stats] of found.entries()) {
        if (stats === null) continue;
        count(stats);
        if (!stats.isDirectory() || stats.dev !== rootStats.dev) continue;
        const { ino, dev } = stats;
        if (left.length < WAITING_MAX) left.push({ parent: directory, name: names[index] ?? '', ino, dev });
        else complete = false;
      }
      if (inodesUsed > ENTRIES_MAX) {
        complete = false;
        await all.return(undefined);
        return;
      }
      try {
        await pause(performance.now() - startedMs);
      } catch (error) {
        await all.return(undefined);
        throw error;
      }
      startedMs = performance.now();
    }
  };

  for (let directory = left.pop(); directory !== undefined && inodesUsed <= ENTRIES_MAX; directory = left.pop()) {
    const handle = await openDirectory(directory);
    if (handle === 'gone') continue;
    if (handle === 'unreadable') {
      complete = false;
      continue;
    }
    try {
      await enter(directory, handle);
    } finally {
      await handle.close();
    }
  }
  return { usedBytes: blocks * BLOCK_BYTES, inodesUsed, complete };
};
