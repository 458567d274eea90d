/**
 * Directory trees of a few entries, walked and removed on the daemon's own loop: all entries of a level at once, since each
 * wait for the pool of threads takes longer than what is waited for. Follows no symbolic link. Larger trees are another's
 * business: nothing is done about them here.
 */
import { readdir, rmdir, unlink } from 'node:fs/promises';

/** More entries are no small tree. */
const ENTRIES_MAX = 256;
const SLASH = Buffer.from('/');

/** Directories (parents before children) and everything else of a tree. */
export interface SmallTree {
  readonly directories: readonly Buffer[];
  readonly others: readonly Buffer[];
}

/**
 * null when it is not small. Rejects with the code of readdir(3) where there is no directory. An entry that `isLeftOut` is neither
 * given nor entered.
 */
export const readSmallTree = async (
  root: string,
  isLeftOut: (path: Buffer) => boolean = () => false,
): Promise<SmallTree | null> => {
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

const entriesOf = async (directory: Buffer) => ({
  directory,
  entries: await readdir(directory, { withFileTypes: true, encoding: 'buffer' }),
});

/** Rejects when something of it went, or came, meanwhile. */
export const removeSmallTree = async ({ directories, others }: SmallTree): Promise<void> => {
  await Promise.all(others.map((path) => unlink(path)));
  for (const directory of directories.toReversed()) await rmdir(directory);
};
