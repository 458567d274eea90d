/**
 * Fills a volume that an image declares with what the image has at that place, as a container would see it there. The
 * image is not trusted: links are resolved inside it, and what is copied is what the layers hold, nothing of the host.
 */
import { constants, type Stats } from 'node:fs';
import { chmod, copyFile, lchown, link, lutimes, mkdir, readlink, rename, rm, stat, symlink } from 'node:fs/promises';
import { dirname } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { isThere } from '../../platform/linux/exists.ts';
import { makeDirectory, unfinishedName } from '../../platform/linux/files.ts';
import {
  entriesOf,
  type LayerDirectory,
  type LayerFile,
  pathIn,
  resolveInLayers,
} from '../../platform/linux/layer-tree.ts';
import { OVERLAY_XATTR_PREFIX } from '../../platform/linux/overlay-marks.ts';
import { listXattrs, makeNode, readXattr, writeXattr } from '../../platform/linux/syscalls.ts';

/** For a volume at a place that the image does not have. */
const EMPTY_VOLUME_MODE = 0o755;
const PERMISSIONS = 0o7777;

const copyXattrs = async (from: Buffer, to: Buffer): Promise<void> => {
  for (const name of await listXattrs(from)) {
    if (name.startsWith(OVERLAY_XATTR_PREFIX)) continue;
    const value = await readXattr(from, name);
    if (value) await writeXattr(to, name, value);
  }
};

/** Owner first, because a change of it takes set-user-ID and capabilities away; times last. */
const copyAttributes = async (from: Buffer, to: Buffer, stats: Stats): Promise<void> => {
  await lchown(to, stats.uid, stats.gid);
  if (!stats.isSymbolicLink()) await chmod(to, stats.mode & PERMISSIONS);
  await copyXattrs(from, to);
  await lutimes(to, stats.atime, stats.mtime);
};

interface Copying {
  /** Of files with several names, by device and inode: the copies are one file again. */
  readonly copies: Map<string, Buffer>;
  /** To be told of each entry before it is written. Rejects when it is not to be. */
  readonly before: (sizeBytes: number) => Promise<void>;
}

/** A directory entry and an inode take room as well. */
const ENTRY_BYTES = 4096;

const copyFileEntry = async ({ path, stats }: LayerFile, to: Buffer, { copies, before }: Copying): Promise<void> => {
  const identity = `${stats.dev}:${stats.ino}`;
  const copy = stats.nlink > 1 ? copies.get(identity) : undefined;
  if (copy !== undefined) return link(copy, to);
  await before(ENTRY_BYTES + (stats.isFile() ? stats.size : 0));
  if (stats.isSymbolicLink()) await symlink(await readlink(path, 'buffer'), to);
  else if (stats.isFile()) await copyFile(path, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE);
  else if (stats.isSocket()) return;
  else await makeNode(to, stats.mode, stats.rdev);
  await copyAttributes(path, to, stats);
  copies.set(identity, to);
};

const copyDirectory = async (directory: LayerDirectory, to: Buffer, copying: Copying): Promise<void> => {
  for (const [name, entry] of await entriesOf(directory)) {
    const target = pathIn(to, name);
    if (entry.kind === 'file') await copyFileEntry(entry, target, copying);
    else {
      await copying.before(ENTRY_BYTES);
      await mkdir(target);
      await copyDirectory(entry, target, copying);
    }
  }
  const [uppermost] = directory.dirs;
  if (uppermost !== undefined) await copyAttributes(uppermost, to, await stat(uppermost));
};

/**
 * Makes the directory `hostPath` with the content, owners, modes, times and extended attributes that the image has at
 * `imagePath` (`layerDirs`: its layers, base first). One that is there already is left as it is: it only gets its name
 * when it is whole. `before` is told of the size of each entry before it is written, and may end the copying. Rejects
 * with ImageInvalid where the image has something that is no directory.
 */
export const fillImageVolume = async (
  layerDirs: readonly string[],
  imagePath: string,
  hostPath: string,
  before: (sizeBytes: number) => Promise<void>,
): Promise<void> => {
  if (await isThere(hostPath)) return;
  const source = await resolveInLayers(layerDirs, imagePath);
  if (source?.kind === 'file') {
    throw new FailureError('ImageInvalid', `The image declares a volume at ${imagePath}, which in it is no directory.`);
  }
  const unfinished = unfinishedName(hostPath);
  await rm(unfinished, { recursive: true, force: true });
  await makeDirectory(dirname(hostPath));
  await before(ENTRY_BYTES);
  await mkdir(unfinished);
  if (source) await copyDirectory(source, Buffer.from(unfinished), { copies: new Map(), before });
  else await chmod(unfinished, EMPTY_VOLUME_MODE);
  await rename(unfinished, hostPath);
};
