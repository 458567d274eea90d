/**
 * What becomes of the store when the node has started anew: what is not marked as on the disk (on-disk.ts) may have lost
 * anything with the memory it was in, and is whole for nobody any more. A blob goes where downloads that were broken off
 * are, where the next one who wants it hashes it and fetches what is wrong; a layer goes to the trash and is unpacked anew.
 * Runs before anything else looks into the store.
 */
import type { Stats } from 'node:fs';
import { chmod, mkdir, open, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { namesIn, writeFileWhole } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { digestOfHex, type ImageLayout, INFO_FILE, partialPath } from './layout.ts';
import { isMarked, ON_DISK_MODE } from './on-disk.ts';
import { moveToTrash } from './trash.ts';

const DIRECTORY_MODE = 0o700;
const FILE_MODE = 0o600;

const statOf = async (path: string): Promise<Stats | null> => {
  try {
    return await stat(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ENOTDIR') return null;
    throw error;
  }
};

/** null: no boot has taken it up yet. */
const lastBoot = async (layout: ImageLayout): Promise<string | null> => {
  try {
    return await readFile(layout.boot, 'utf8');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    if (errorCodeOf(error) !== 'EISDIR') throw error;
    // Not ours, so nobody knows which boot the last one was: what is not marked is doubted.
    await rm(layout.boot, { recursive: true });
    return '';
  }
};

const syncPath = async (path: string): Promise<void> => {
  const file = await open(path, 'r');
  await file.sync().finally(() => file.close());
};

const doubtBlobs = async (layout: ImageLayout): Promise<number> => {
  let doubted = 0;
  for (const name of await namesIn(layout.blobs)) {
    const path = join(layout.blobs, name);
    const found = await statOf(path);
    if (found === null || isMarked(found)) continue;
    const partial = partialPath(layout, digestOfHex(name));
    await rename(path, partial);
    // However long the node was off: it is not an old one.
    await utimes(partial, new Date(), new Date());
    doubted += 1;
  }
  return doubted;
};

const doubtLayers = async (layout: ImageLayout): Promise<number> => {
  let doubted = 0;
  for (const name of await namesIn(layout.snapshots)) {
    const note = await statOf(join(layout.snapshots, name, INFO_FILE));
    if (note !== null && isMarked(note)) continue;
    await moveToTrash(layout, join(layout.snapshots, name));
    doubted += 1;
  }
  return doubted;
};

/** A store without the file is new, or of a time when everything was synced before it got its name. */
const believeAll = async (layout: ImageLayout): Promise<void> => {
  const blobs = (await namesIn(layout.blobs)).map((name) => join(layout.blobs, name));
  const notes = (await namesIn(layout.snapshots)).map((name) => join(layout.snapshots, name, INFO_FILE));
  for (const path of [...blobs, ...notes]) if ((await statOf(path)) !== null) await chmod(path, ON_DISK_MODE);
};

const NOTHING = { blobs: 0, layers: 0 } as const;

/** Takes up the store in this boot. Resolves with how much of it was doubted. */
export const beginBoot = async (
  layout: ImageLayout,
  bootId: string,
): Promise<{ readonly blobs: number; readonly layers: number }> => {
  // Nothing is in it. Who wants an image is told so, and everything else goes on (C20).
  if ((await statOf(dirname(layout.boot)))?.isDirectory() === false) return NOTHING;
  const last = await lastBoot(layout);
  if (last === bootId) return NOTHING;
  await mkdir(layout.ingest, { recursive: true, mode: DIRECTORY_MODE });
  if (last === null) await believeAll(layout);
  const doubted = last === null ? NOTHING : { layers: await doubtLayers(layout), blobs: await doubtBlobs(layout) };
  // Once all is doubted: a start that is cut off begins again.
  await writeFileWhole(layout.boot, bootId, FILE_MODE);
  if (last === null) {
    // Without it the next boot would believe all that this one writes.
    await syncPath(layout.boot);
    for (const path of [dirname(layout.boot), dirname(dirname(layout.boot))]) await syncPath(path);
  }
  return doubted;
};
