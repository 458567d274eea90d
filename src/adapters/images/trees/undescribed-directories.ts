/**
 * Gives directories that a layer has but does not describe the owner, mode, access list, attributes and time of the same
 * directory below, as the image's builder saw it; where there is none they stay root's, 0755. The paths come from the unpacking child, so
 * nothing is done that does not prove to be a directory reached through directories.
 */
import type { Stats } from 'node:fs';
import { OPAQUE_XATTR } from '../../../platform/linux/overlay-marks.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { inDirectory, nameOf, parentOf, provenDirectories } from './directories-by-path.ts';
import type { LayerCalls } from './layer-calls.ts';

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

const statOf = async (path: Buffer, { lstat }: LayerCalls): Promise<Stats | null> => {
  try {
    return await lstat(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
};

/** What is reached through a link, or hidden by a file, is not the same directory. */
const childBelow = async (parent: Below, name: string, calls: LayerCalls): Promise<Below> => {
  const directories: Buffer[] = [];
  let looks: Looks = plain;
  for (const [index, directory] of parent.directories.entries()) {
    const path = inDirectory(directory, name);
    const stats = await statOf(path, calls);
    if (stats === null) continue;
    if (!stats.isDirectory()) break;
    if (directories.length === 0) looks = stats;
    directories.push(path);
    if (index + 1 < parent.directories.length && (await calls.hasXattr(path, OPAQUE_XATTR))) break;
  }
  return directories.length === 0 ? nothing : { directories, looks };
};

/** Without access lists the mode alone would hold, whose bits for the group are what lists may give at most. */
const isCopied = (name: string): boolean => name.startsWith('user.') || name.startsWith('system.posix_acl_');

const copyXattrs = async (from: Buffer, to: Buffer, calls: LayerCalls): Promise<void> => {
  for (const [name, value] of await calls.readXattrs(from, isCopied)) await calls.writeXattr(to, name, value);
};

/** Rejects when a path is no directory of the layer, reached through directories. */
export const copyLooks = async ({ root, implied, lowerDirs }: LooksRequest, calls: LayerCalls): Promise<void> => {
  const find = provenDirectories(root, calls);
  const lowerRoots = lowerDirs.map((dir) => Buffer.from(dir));
  const [top] = lowerRoots;
  const known = new Map<string, Below>([
    ['', { directories: lowerRoots, looks: top === undefined ? plain : await calls.lstat(top) }],
  ]);

  const belowOf = async (path: string): Promise<Below> => {
    const found = known.get(path);
    if (found !== undefined) return found;
    const made = await childBelow(await belowOf(parentOf(path)), nameOf(path), calls);
    known.set(path, made);
    return made;
  };

  for (const path of implied) {
    const own = await find(path);
    const {
      looks,
      directories: [below],
    } = await belowOf(path);
    await calls.chown(own, looks.uid, looks.gid);
    await calls.chmod(own, looks.mode & MODE_MASK);
    if (below !== undefined) await copyXattrs(below, own, calls);
    if (looks.atime !== null && looks.mtime !== null) await calls.utimes(own, looks.atime, looks.mtime);
  }
};
