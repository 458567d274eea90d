/**
 * Looks into an image's unpacked layers as overlayfs would show them, without mounting anything: the topmost layer
 * wins, 0:0 character devices and opaque directories hide what is below, symbolic links lead to places in the image
 * and never out of it. Reads only. Layers do not change once unpacked, so what was looked at stays true.
 */
import { constants, type Stats } from 'node:fs';
import { lstat, open, readlink } from 'node:fs/promises';
import { FailureError } from '../../domain/errors.ts';
import { errorCodeOf, readXattr } from '../linux/syscalls.ts';

/** A directory as the layers together show it: its directories in those that have it, topmost first. */
type MergedDirectory = readonly Buffer[];

type Found =
  | { readonly kind: 'directory'; readonly directories: MergedDirectory; readonly stats: Stats }
  | { readonly kind: 'other'; readonly path: Buffer; readonly stats: Stats };

const LINKS_MAX = 40;
const COMPONENTS_MAX = 1024;
const SLASH = Buffer.from('/');
const OPAQUE_XATTR = 'trusted.overlay.opaque';
const { O_RDONLY, O_NOFOLLOW, O_NONBLOCK } = constants;

const inDirectory = (directory: Buffer, name: string): Buffer =>
  Buffer.concat([directory, SLASH, Buffer.from(name, 'latin1')]);

const statOf = async (path: Buffer): Promise<Stats | null> => {
  try {
    return await lstat(path);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return null;
    throw error;
  }
};

const isOpaque = async (path: Buffer): Promise<boolean> =>
  (await readXattr(path.toString('utf8'), OPAQUE_XATTR))?.[0] === 'y'.charCodeAt(0);

/** What `name` is in a merged directory; null when nothing is seen there. `name` is latin1, one component. */
const findIn = async (directory: MergedDirectory, name: string): Promise<Found | null> => {
  const directories: Buffer[] = [];
  let first: Stats | null = null;
  for (const layer of directory) {
    const path = inDirectory(layer, name);
    const stats = await statOf(path);
    if (stats === null) continue;
    const isWhiteout = stats.isCharacterDevice() && stats.rdev === 0;
    if (!stats.isDirectory()) {
      if (first === null && !isWhiteout) return { kind: 'other', path, stats };
      break;
    }
    first ??= stats;
    directories.push(path);
    if (await isOpaque(path)) break;
  }
  return first === null ? null : { kind: 'directory', directories, stats: first };
};

/** Layer directories as the root directory they make together. `layerDirs` is topmost first. */
const mergedRoot = (layerDirs: readonly string[]): MergedDirectory => layerDirs.map((dir) => Buffer.from(dir));

const componentsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');

/** What `path` (latin1) is, with every symbolic link followed inside the image; null when there is no such thing. */
const resolve = async (root: MergedDirectory, path: string): Promise<Found | null> => {
  const ahead = componentsOf(path).reverse();
  const trail: MergedDirectory[] = [root];
  let links = 0;
  for (let name = ahead.pop(); name !== undefined; name = ahead.pop()) {
    if (name === '..') {
      if (trail.length > 1) trail.pop();
      continue;
    }
    const found = await findIn(trail.at(-1) ?? root, name);
    if (found === null) return null;
    if (found.kind === 'directory') {
      trail.push(found.directories);
      if (ahead.length === 0) return found;
    } else if (found.stats.isSymbolicLink()) {
      const target = await readlink(found.path, 'latin1');
      links += 1;
      if (target.startsWith('/')) trail.length = 1;
      ahead.push(...componentsOf(target).reverse());
      if (links > LINKS_MAX || ahead.length > COMPONENTS_MAX) {
        throw new FailureError('ImageInvalid', `Too many symbolic links lead to ${JSON.stringify(path)} in the image.`);
      }
    } else {
      return ahead.length === 0 ? found : null;
    }
  }
  return null;
};

const readBounded = async (found: Found & { kind: 'other' }, path: string, maxBytes: number): Promise<Buffer> => {
  // Not waiting for a writer, should it be a FIFO after all.
  const handle = await open(found.path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  try {
    const { size } = await handle.stat();
    if (size > maxBytes) {
      throw new FailureError('ImageInvalid', `${path} in the image is larger than ${maxBytes} bytes.`);
    }
    const buffer = Buffer.alloc(size);
    const { bytesRead } = await handle.read(buffer, 0, size, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await handle.close();
  }
};

/**
 * The content of a regular file of the image; null when it has none of that path. `layerDirs` are the directories of
 * its layers, base first. Throws FailureError ImageInvalid when it is larger than `maxBytes` or no regular file.
 */
export const readFileInLayers = async (
  layerDirs: readonly string[],
  path: string,
  maxBytes: number,
): Promise<Buffer | null> => {
  const bytes = Buffer.from(path).toString('latin1');
  const found = await resolve(mergedRoot(layerDirs.toReversed()), bytes);
  if (found === null) return null;
  if (found.kind !== 'other' || !found.stats.isFile()) {
    throw new FailureError('ImageInvalid', `${path} in the image is not a regular file.`);
  }
  return await readBounded(found, path, maxBytes);
};
