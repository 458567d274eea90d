/**
 * Looking up a file in an image's unpacked layers as a container would see it, without mounting them: the uppermost
 * layer wins, whiteouts hide, opaque directories hide what is below, and symbolic links are resolved inside the image
 * alone. The image is not trusted: no link in it can lead to a file of the host, because no path with an unexamined
 * part is ever given to the kernel (layers never change once they are unpacked).
 */
import type { Stats } from 'node:fs';
import { lstat, readlink } from 'node:fs/promises';
import { join } from 'node:path';
import { FailureError } from '../../domain/errors.ts';
import { errorCodeOf, readXattr } from '../linux/syscalls.ts';
import { readBounded } from './bounded-file.ts';

/** Content of a regular file of the image, null when there is none. Rejects with ImageInvalid for one that is too large. */
export type ReadImageFile = (chainIds: readonly string[], path: string, maxBytes: number) => Promise<Buffer | null>;

const OPAQUE = 'trusted.overlay.opaque';
/** As many as the kernel follows. */
const MAX_LINKS = 40;

/** A name in the merged tree: the directories that make up one, uppermost first, or a path of something else. */
type Found =
  | { readonly kind: 'directory'; readonly dirs: readonly string[] }
  | { readonly kind: 'other'; readonly path: string; readonly stats: Stats }
  | { readonly kind: 'absent' };

const absent: Found = { kind: 'absent' };

const lstatOrNull = (path: string): Promise<Stats | null> =>
  lstat(path).catch((error: unknown) => {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return null;
    throw error;
  });

const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;

const isOpaque = async (dir: string): Promise<boolean> => {
  const value = await readXattr(dir, OPAQUE);
  return value !== null && Buffer.from(value).toString('latin1').startsWith('y');
};

async function find(dirs: readonly string[], name: string): Promise<Found> {
  const found: string[] = [];
  for (const dir of dirs) {
    const path = join(dir, name);
    const stats = await lstatOrNull(path);
    if (stats === null) continue;
    if (isWhiteout(stats)) break;
    if (!stats.isDirectory()) {
      if (found.length === 0) return { kind: 'other', path, stats };
      break;
    }
    found.push(path);
    if (await isOpaque(path)) break;
  }
  return found.length === 0 ? absent : { kind: 'directory', dirs: found };
}

const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');

/** What `path` leads to from the image's root; `layers` are uppermost first. */
async function resolve(layers: readonly string[], path: string): Promise<Found> {
  const todo = partsOf(path);
  /** Directories on the way, so that ".." has somewhere to go; it can not go above the root. */
  const way: (readonly string[])[] = [layers];
  let links = 0;
  for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
    if (part === '..') {
      if (way.length > 1) way.pop();
      continue;
    }
    const found = await find(way.at(-1) ?? layers, part);
    if (found.kind === 'absent') return absent;
    if (found.kind === 'directory') {
      way.push(found.dirs);
      continue;
    }
    if (!found.stats.isSymbolicLink()) return todo.length === 0 ? found : absent;
    links += 1;
    if (links > MAX_LINKS) return absent;
    const target = await readlink(found.path);
    if (target.startsWith('/')) way.length = 1;
    todo.unshift(...partsOf(target));
  }
  return { kind: 'directory', dirs: way.at(-1) ?? layers };
}

/** `layerDirs` gives the directories of unpacked layers, base first (Snapshots.layerDirs of the image store). */
export const imageFileReader =
  (layerDirs: (chainIds: readonly string[]) => readonly string[]): ReadImageFile =>
  async (chainIds, path, maxBytes) => {
    const found = await resolve(layerDirs(chainIds).toReversed(), path);
    if (found.kind !== 'other' || !found.stats.isFile()) return null;
    const read = await readBounded(found.path, maxBytes, false);
    switch (read.kind) {
      case 'content':
        return read.content;
      case 'notRegular':
        return null;
      case 'tooLarge':
        throw new FailureError(
          'ImageInvalid',
          `${path} of the image has ${read.sizeBytes} bytes, more than the ${maxBytes} that are read: make it smaller`,
        );
    }
  };
