/**
 * What the image store takes of its file system. Counted once in the background after a start and kept up to date by
 * what is added and removed; asking costs nothing. Layers carry notes of their size, so nothing large is ever walked, and
 * what has a name stays what it is, so nothing is looked at twice: a pull costs what it brings, however much is there.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { digestOfHex, type ImageLayout } from './layout.ts';
import { readSnapshotInfo, type SnapshotInfo } from './snapshot-info.ts';

export interface ImageFsUsage {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  /** When it was so: wall clock, milliseconds since 1970. */
  readonly asOfMs: number;
}

export interface ImageUsage {
  /**
   * The last count. Nothing comes or goes without another, so that it is as of now, unless one is under way or has failed: kubelet
   * frees no room, and evicts nobody, by what is as old as what it was told before.
   */
  readonly current: () => ImageFsUsage;
  /** Counts anew; calls while a count is under way share one that begins after it. */
  readonly recount: () => Promise<void>;
}

export interface StoredContent {
  readonly blobs: readonly string[];
  readonly chainIds: readonly string[];
}

interface Inventory extends StoredContent {
  /** Directories among the snapshots that are none. */
  readonly damaged: readonly string[];
}

const BATCH = 16;

/** `visit` of each name, a few at a time: the pool they run in is shared with everything else. */
const visitAll = async <T>(names: readonly string[], visit: (name: string) => Promise<T>): Promise<readonly T[]> => {
  const results: T[] = [];
  for (let from = 0; from < names.length; from += BATCH) {
    results.push(...(await Promise.all(names.slice(from, from + BATCH).map(visit))));
  }
  return results;
};

const noteOf = (layout: ImageLayout, name: string): Promise<SnapshotInfo | null> =>
  readSnapshotInfo(join(layout.snapshots, name));

/** Everything whole that is in the store. */
export const takeInventory = async (layout: ImageLayout): Promise<Inventory> => {
  const blobNames = await namesIn(layout.blobs);
  const snapshotNames = await namesIn(layout.snapshots);
  const notes = await visitAll(snapshotNames, (name) => noteOf(layout, name));
  return {
    blobs: blobNames.map(digestOfHex),
    chainIds: notes.flatMap((note) => note?.chainId ?? []),
    damaged: snapshotNames.filter((_, index) => notes[index] === null),
  };
};

type Room = Pick<ImageFsUsage, 'usedBytes' | 'inodesUsed'>;

/** What is in a directory takes together. `roomOf`: null for what is not whole, or not any more: it is asked for again. */
const createCount = (directory: string, roomOf: (name: string) => Promise<Room | null>) => {
  const known = new Map<string, Room>();
  return async (): Promise<Room> => {
    const names = new Set(await namesIn(directory));
    for (const name of known.keys()) if (!names.has(name)) known.delete(name);
    await visitAll(
      [...names].filter((name) => !known.has(name)),
      async (name) => {
        const room = await roomOf(name);
        if (room !== null) known.set(name, room);
      },
    );
    const total = { usedBytes: 0, inodesUsed: 0 };
    for (const { usedBytes, inodesUsed } of known.values()) {
      total.usedBytes += usedBytes;
      total.inodesUsed += inodesUsed;
    }
    return total;
  };
};

export const createImageUsage = (layout: ImageLayout, nowMs: () => number = Date.now): ImageUsage => {
  const countBlobs = createCount(layout.blobs, async (name) => {
    try {
      return { usedBytes: (await stat(join(layout.blobs, name))).size, inodesUsed: 1 };
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return null;
      throw error;
    }
  });
  const countLayers = createCount(layout.snapshots, async (name) => {
    const note = await noteOf(layout, name);
    return note === null ? null : { usedBytes: note.usedBytes, inodesUsed: note.inodesUsed };
  });
  let counted: ImageFsUsage = { usedBytes: 0, inodesUsed: 0, asOfMs: nowMs() };
  let isRight = false;
  let counting: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  const count = async (): Promise<void> => {
    const asOfMs = nowMs();
    isRight = false;
    const blobs = await countBlobs();
    const layers = await countLayers();
    counted = {
      usedBytes: blobs.usedBytes + layers.usedBytes,
      inodesUsed: blobs.inodesUsed + layers.inodesUsed,
      asOfMs,
    };
    isRight = true;
  };

  const begin = (): Promise<void> => {
    counting = count().finally(() => {
      counting = null;
    });
    return counting;
  };

  return {
    current: () => (isRight ? { ...counted, asOfMs: nowMs() } : counted),
    recount: () => {
      if (counting === null) return begin();
      next ??= counting
        .catch(() => undefined)
        .then(() => {
          next = null;
          return begin();
        });
      return next;
    },
  };
};
