/**
 * Gives directories that a layer has but does not describe the owner, mode, access list, attributes and time of the same
 * directory below, as the image's builder saw it; where there is none they stay root's, 0755. The paths come from the unpacking child, so
 * nothing is done that does not prove to be a directory reached through directories. Runs in the thread for trees.
 */
import { chmodSync, lchownSync, lstatSync, type Stats, utimesSync } from 'node:fs';
import { readXattrsNow, writeXattrNow } from '../../../platform/linux/jail.ts';
import { errorCodeOf } from '../../../platform/linux/syscalls.ts';
import { callPath, isOpaque } from './opaque.ts';
import { inDirectory, nameOf, parentOf, provenDirectories } from './directories-by-path.ts';

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

const statOf = (path: Buffer): Stats | null => {
  try {
    return lstatSync(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
};

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

/** Without access lists the mode alone would hold, whose bits for the group are what lists may give at most. */
const isCopied = (name: string): boolean => name.startsWith('user.') || name.startsWith('system.posix_acl_');

const copyXattrs = (from: Buffer, to: Buffer): void => {
  for (const [name, value] of readXattrsNow(callPath(from), isCopied)) writeXattrNow(callPath(to), name, value);
};

/** Throws when a path is no directory of the layer, reached through directories. */
export const copyLooks = ({ root, implied, lowerDirs }: LooksRequest): void => {
  const find = provenDirectories(root);
  const lowerRoots = lowerDirs.map((dir) => Buffer.from(dir));
  const [top] = lowerRoots;
  const known = new Map<string, Below>([
    ['', { directories: lowerRoots, looks: top === undefined ? plain : lstatSync(top) }],
  ]);

  const belowOf = (path: string): Below => {
    const found = known.get(path);
    if (found !== undefined) return found;
    const made = childBelow(belowOf(parentOf(path)), nameOf(path));
    known.set(path, made);
    return made;
  };

  for (const path of implied) {
    const own = find(path);
    const {
      looks,
      directories: [below],
    } = belowOf(path);
    lchownSync(own, looks.uid, looks.gid);
    chmodSync(own, looks.mode & MODE_MASK);
    if (below !== undefined) copyXattrs(below, own);
    if (looks.atime !== null && looks.mtime !== null) utimesSync(own, looks.atime, looks.mtime);
  }
};
