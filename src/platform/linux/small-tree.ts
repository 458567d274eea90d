/**
 * Directory trees of a few entries, walked and removed on the daemon's own loop: all entries of a level at once, since each
 * wait for the pool of threads takes longer than what is waited for. Follows no symbolic link. Larger trees are another's
 * business: nothing is done about them here.
 */
import { type DirectoryEntry, type FileCalls, pooledCalls } from './file-calls.ts';

/** More entries are no small tree. */
const ENTRIES_MAX = 256;
const SLASH = Buffer.from('/');

/** Directories (parents before children) and everything else of a tree. */
export interface SmallTree {
  readonly directories: readonly Buffer[];
  readonly others: readonly Buffer[];
}

interface Walk {
  /** An entry for which it is true is neither given nor entered. */
  readonly isLeftOut?: (path: Buffer) => boolean;
  readonly calls?: FileCalls;
}

interface Level {
  readonly directory: Buffer;
  readonly entries: readonly DirectoryEntry[];
}

/** null when it is not small. Rejects with the code of readdir(3) where there is no directory. */
export const readSmallTree = async (
  root: string,
  { isLeftOut = () => false, calls = pooledCalls }: Walk = {},
): Promise<SmallTree | null> => {
  const entriesOf = async (directory: Buffer): Promise<Level> => ({
    directory,
    entries: await calls.entries(directory),
  });
  const directories: Buffer[] = [];
  const others: Buffer[] = [];
  let level: readonly Buffer[] = [Buffer.from(root)];
  while (level.length > 0) {
    directories.push(...level);
    const below: Buffer[] = [];
    for (const { directory, entries } of await Promise.all(level.map(entriesOf)))
      for (const entry of entries) {
        const path = Buffer.concat([directory, SLASH, entry.name]);
        if (!isLeftOut(path)) (entry.isDirectory() ? below : others).push(path);
      }
    if (directories.length + below.length + others.length > ENTRIES_MAX) return null;
    level = below;
  }
  return { directories, others };
};

/** Rejects when something of it went, or came, meanwhile. */
export const removeSmallTree = async (
  { directories, others }: SmallTree,
  { unlink, rmdir }: Pick<FileCalls, 'unlink' | 'rmdir'> = pooledCalls,
): Promise<void> => {
  await Promise.all(others.map((path) => unlink(path)));
  for (const directory of directories.toReversed()) await rmdir(directory);
};
