/**
 * Gives directories that a layer has but does not describe the owner, mode and time of the same directory below, as
 * the image's builder saw it; where there is none they stay root's, 0755. The paths come from the unpacking child, so
 * nothing is done that does not prove to be a directory reached through directories.
 */
import { constants } from 'node:fs';
import { lstat, open } from 'node:fs/promises';
import { FailureError } from '../../../domain/errors.ts';
import { findIn, type MergedDirectory, mergedRoot } from '../image-files.ts';

const { O_RDONLY, O_DIRECTORY, O_NOFOLLOW } = constants;
const DEFAULT_MODE = 0o755;
const MODE_MASK = 0o7777;
const SLASH = Buffer.from('/');

interface Looks {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly atime: Date | null;
  readonly mtime: Date | null;
}

const plain: Looks = { mode: DEFAULT_MODE, uid: 0, gid: 0, atime: null, mtime: null };

/** As the layers below show the directory, by directories only: what is reached through a link is something else. */
const looksBelow = async (root: MergedDirectory, components: readonly string[]): Promise<Looks> => {
  const [top] = root;
  if (top === undefined) return plain;
  let directory = root;
  let stats = await lstat(top);
  for (const component of components) {
    const found = await findIn(directory, component);
    if (found?.kind !== 'directory') return plain;
    directory = found.directories;
    stats = found.stats;
  }
  return stats;
};

const checkedPath = async (root: string, components: readonly string[]): Promise<Buffer> => {
  let path = Buffer.from(root);
  for (const component of components) {
    if (component === '' || component === '.' || component === '..') {
      throw new FailureError('HostFailed', 'The unpacking process named a directory outside of the layer.');
    }
    path = Buffer.concat([path, SLASH, Buffer.from(component, 'latin1')]);
    if (!(await lstat(path)).isDirectory()) {
      throw new FailureError('HostFailed', 'The unpacking process named a directory that is none.');
    }
  }
  return path;
};

/** `root` is the unpacked layer, `implied` latin1 paths in it ("" is itself), `lowerDirs` the layers below, topmost first. */
export const copyImplied = async (
  root: string,
  implied: readonly string[],
  lowerDirs: readonly string[],
): Promise<void> => {
  const below = mergedRoot(lowerDirs);
  for (const path of implied) {
    const components = path === '' ? [] : path.split('/');
    const looks = await looksBelow(below, components);
    const handle = await open(await checkedPath(root, components), O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
    try {
      await handle.chown(looks.uid, looks.gid);
      await handle.chmod(looks.mode & MODE_MASK);
      if (looks.atime !== null && looks.mtime !== null) await handle.utimes(looks.atime, looks.mtime);
    } finally {
      await handle.close();
    }
  }
};
