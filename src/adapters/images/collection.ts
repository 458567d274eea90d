/**
 * Takes out of the store what nobody knows: content that a crash or a failed pull left without an image, layers whose
 * note is damaged, files that are none of the store's. Told what is needed, it decides nothing else. Must run only
 * while nothing is pulled or loaded, since what is being fetched is known to nobody yet.
 */
import { readFile, stat } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { namesIn } from '../../platform/linux/files.ts';
import { blobPath, type ImageLayout, isResumable, LAYER_DIR, snapshotName } from './layout.ts';
import { readSnapshotInfo } from './snapshot-info.ts';
import { moveToTrash } from './trash.ts';
import type { StoredContent } from './usage.ts';

/** What was taken out, by its name in the store. */
export interface Collected {
  readonly blobs: readonly string[];
  readonly layers: readonly string[];
}

const MOUNTS_FILE = '/proc/self/mountinfo';
/** Shims mount more layers than fit into a page from within their directory, by names without it. */
const LOWER_DIR = new RegExp(`(?:/snapshots/|[=:])([0-9a-f]+)/${LAYER_DIR}\\b`, 'g');

/** Names of layers that overlayfs has mounted: pods may run that no journal knows any more. */
const mountedLayers = (mountinfo: string): ReadonlySet<string> =>
  new Set(Array.from(mountinfo.matchAll(LOWER_DIR), ([, name]) => name ?? ''));

/**
 * Moves what is not needed, and was not touched for `ageMs`, to the trash, where the next clearing finds it. Resolves
 * with what that was.
 */
export const collectUnknown = async (layout: ImageLayout, needed: StoredContent, ageMs: number): Promise<Collected> => {
  const [blobNames = [], layerNames = [], ingestNames = []] = await Promise.all(
    [layout.blobs, layout.snapshots, layout.ingest].map(namesIn),
  );
  const neededBlobs = new Set(needed.blobs.map((digest) => blobPath(layout, digest)));
  const neededLayers = new Set(needed.chainIds.map(snapshotName));
  const isDamaged = async (name: string): Promise<boolean> =>
    (await readSnapshotInfo(join(layout.snapshots, name))) === null;
  const isOld = async (path: string): Promise<boolean> => {
    const stats = await stat(path).catch(() => null);
    return stats !== null && Date.now() - stats.mtimeMs >= ageMs;
  };

  const blobs = blobNames.map((name) => join(layout.blobs, name)).filter((path) => !neededBlobs.has(path));
  const doubtful: string[] = [];
  for (const name of layerNames) if (!neededLayers.has(name) || (await isDamaged(name))) doubtful.push(name);
  const mounted = doubtful.length === 0 ? new Set() : mountedLayers(await readFile(MOUNTS_FILE, 'utf8'));
  const layers = doubtful.filter((name) => !mounted.has(name)).map((name) => join(layout.snapshots, name));

  const takeOut = async (paths: readonly string[]): Promise<string[]> => {
    const taken: string[] = [];
    for (const path of paths) {
      if ((await isOld(path)) && (await moveToTrash(layout, path))) taken.push(basename(path));
    }
    return taken;
  };
  const halfWritten = ingestNames.filter((name) => !isResumable(name));
  await takeOut(halfWritten.map((name) => join(layout.ingest, name)));
  // Layers before blobs: should it end half-way, what is left is found again.
  return { layers: await takeOut(layers), blobs: await takeOut(blobs) };
};
