/**
 * Unpacked image layers seen as the one tree a container would see, without mounting them: the uppermost layer wins,
 * whiteouts hide, opaque directories hide what is below, and symbolic links are resolved inside the image alone. The
 * image is not trusted: no link in it can lead to a file of the host, because no path with an unexamined part is ever
 * given to the kernel (layers never change once they are unpacked). Names need not be UTF-8: paths are bytes, names are
 * text of one character for each byte (latin1). Reads only.
 */
import type { Stats } from 'node:fs';
import { lstat, readdir, readlink } from 'node:fs/promises';
import { errorCodeOf } from '../error-code.ts';
import { isWhiteout, OPAQUE_XATTR } from './overlay-marks.ts';
import { readXattr } from './syscalls.ts';

/** A name in the merged tree: the directories that make up one, uppermost first, or a path of something else. */
export type LayerEntry = LayerDirectory | LayerFile;

export interface LayerDirectory {
  readonly kind: 'directory';
  readonly dirs: readonly Buffer[];
}

/** Anything but a directory, a symbolic link too. */
export interface LayerFile {
  readonly kind: 'file';
  readonly path: Buffer;
  readonly stats: Stats;
}

/** As many as the kernel follows. */
const LINKS_MAX = 40;

const SLASH = Buffer.from('/');

/** What a directory has under a name. */
export const pathIn = (dir: Buffer, name: string): Buffer => Buffer.concat([dir, SLASH, Buffer.from(name, 'latin1')]);

const lstatOrNull = (path: Buffer): Promise<Stats | null> =>
  lstat(path).catch((error: unknown) => {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENOTDIR' || code === 'ENAMETOOLONG') return null;
    throw error;
  });

const isOpaque = async (dir: Buffer): Promise<boolean> => {
  const value = await readXattr(dir, OPAQUE_XATTR);
  return value !== null && Buffer.from(value).toString('latin1').startsWith('y');
};

/** The entry `name` (one part of a path, not . or ..) of a merged directory; null when it has none. */
const entryOf = async ({ dirs }: LayerDirectory, name: string): Promise<LayerEntry | null> => {
  const found: Buffer[] = [];
  for (const dir of dirs) {
    const path = pathIn(dir, name);
    const stats = await lstatOrNull(path);
    if (stats === null) continue;
    if (isWhiteout(stats)) break;
    if (!stats.isDirectory()) {
      if (found.length === 0) return { kind: 'file', path, stats };
      break;
    }
    found.push(path);
    if (await isOpaque(path)) break;
  }
  return found.length === 0 ? null : { kind: 'directory', dirs: found };
};

/** All names in a merged directory that are not hidden, with what they name. */
export const entriesOf = async (directory: LayerDirectory): Promise<readonly (readonly [string, LayerEntry])[]> => {
  const names = new Set((await Promise.all(directory.dirs.map((dir) => readdir(dir, 'latin1')))).flat());
  const entries: [string, LayerEntry][] = [];
  for (const name of names) {
    const entry = await entryOf(directory, name);
    if (entry !== null) entries.push([name, entry]);
  }
  return entries;
};

const partsOf = (path: string): string[] => path.split('/').filter((part) => part !== '' && part !== '.');

/**
 * What `path` leads to from the image's root, all links followed; null when it leads nowhere. `layerDirs` are the
 * layers' directories, base first. ".." at the root stays there, as in a container.
 */
export const resolveInLayers = async (layerDirs: readonly string[], path: string): Promise<LayerEntry | null> => {
  const root: LayerDirectory = { kind: 'directory', dirs: layerDirs.toReversed().map((dir) => Buffer.from(dir)) };
  const todo = partsOf(Buffer.from(path).toString('latin1'));
  /** Directories on the way, so that ".." has somewhere to go. */
  let way: LayerDirectory[] = [];
  let links = 0;
  for (let part = todo.shift(); part !== undefined; part = todo.shift()) {
    if (part === '..') {
      way.pop();
      continue;
    }
    const entry = await entryOf(way.at(-1) ?? root, part);
    if (entry === null) return null;
    if (entry.kind === 'directory') {
      way.push(entry);
      continue;
    }
    if (!entry.stats.isSymbolicLink()) return todo.length === 0 ? entry : null;
    links += 1;
    if (links > LINKS_MAX) return null;
    const target = await readlink(entry.path, 'latin1');
    if (target.startsWith('/')) way = [];
    todo.unshift(...partsOf(target));
  }
  return way.at(-1) ?? root;
};
