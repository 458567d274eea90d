/**
 * Gives directories that a layer has but does not describe the owner, mode and time of the same directory below, as
 * the image's builder saw it; where there is none they stay root's, 0755. The paths come from the unpacking child, so
 * nothing is done that does not prove to be a directory reached through directories. Runs in the thread for trees.
 */
import { chmodSync, lchownSync, lstatSync, type Stats, utimesSync } from 'node:fs';
import { hasXattrNow } from '../../linux/jail.ts';
import { errorCodeOf } from '../../linux/syscalls.ts';

export interface LooksRequest {
  /** Of the unpacked layer. */
  readonly root: string;
  /** latin1 paths in it; "" is the layer's root. */
  readonly implied: readonly string[];
  /** Directories of the layers below, topmost first. */
  readonly lowerDirs: readonly string[];
}

interface Looks {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly atime: Date | null;
  readonly mtime: Date | null;
}

/** A directory as the layers below show it: its directories in those that have it, topmost first. */
interface Below {
  readonly directories: readonly Buffer[];
  readonly looks: Looks;
}

const plain: Looks = { mode: 0o755, uid: 0, gid: 0, atime: null, mtime: null };
const nothing: Below = { directories: [], looks: plain };
const MODE_MASK = 0o7777;
const SLASH = Buffer.from('/');
const OPAQUE_XATTR = 'trusted.overlay.opaque';

const inDirectory = (directory: Buffer, name: string): Buffer =>
  Buffer.concat([directory, SLASH, Buffer.from(name, 'latin1')]);

const statOf = (path: Buffer): Stats | null => {
  try {
    return lstatSync(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
};

const isOpaque = (path: Buffer): boolean => hasXattrNow(Buffer.concat([path, Buffer.of(0)]), OPAQUE_XATTR);

/** What is reached through a link, or hidden by a file, is not the same directory. */
const childBelow = (parent: Below, name: string): Below => {
  const directories: Buffer[] = [];
  let looks: Looks = plain;
  for (const [index, directory] of parent.directories.entries()) {
    const path = inDirectory(directory, name);
    const stats = statOf(path);
    if (stats === null) continue;
    if (!stats.isDirectory()) break;
    if (directories.length === 0) looks = stats;
    directories.push(path);
    if (index + 1 < parent.directories.length && isOpaque(path)) break;
  }
  return directories.length === 0 ? nothing : { directories, looks };
};

const parentOf = (path: string): string => path.slice(0, Math.max(0, path.lastIndexOf('/')));
const nameOf = (path: string): string => path.slice(path.lastIndexOf('/') + 1);

const isPlainPath = (path: string): boolean =>
  path === '' || path.split('/').every((part) => part !== '' && part !== '.' && part !== '..' && !part.includes('\0'));

/** Throws when a path is no directory of the layer, reached through directories. */
export const copyLooks = ({ root, implied, lowerDirs }: LooksRequest): void => {
  const rootPath = Buffer.from(root);
  const lowerRoots = lowerDirs.map((dir) => Buffer.from(dir));
  const [top] = lowerRoots;
  const rootBelow: Below = { directories: lowerRoots, looks: top === undefined ? plain : lstatSync(top) };
  const known = new Map<string, { readonly path: Buffer; readonly below: Below }>([
    ['', { path: rootPath, below: rootBelow }],
  ]);

  const find = (path: string): { readonly path: Buffer; readonly below: Below } => {
    const found = known.get(path);
    if (found !== undefined) return found;
    const parent = find(parentOf(path));
    const own = inDirectory(parent.path, nameOf(path));
    if (!lstatSync(own).isDirectory()) throw new Error('the unpacking process named a directory that is none');
    const made = { path: own, below: childBelow(parent.below, nameOf(path)) };
    known.set(path, made);
    return made;
  };

  for (const path of implied) {
    if (!isPlainPath(path)) throw new Error('the unpacking process named a directory outside of the layer');
    const { path: own, below } = find(path);
    const { looks } = below;
    lchownSync(own, looks.uid, looks.gid);
    chmodSync(own, looks.mode & MODE_MASK);
    if (looks.atime !== null && looks.mtime !== null) utimesSync(own, looks.atime, looks.mtime);
  }
};
