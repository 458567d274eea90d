/**
 * What the image store takes of its file system. Counted once in the background after a start and kept up to date by
 * what is added and removed; asking costs nothing. Layers carry notes of their size, so nothing large is ever walked.
 */
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { namesIn } from '../../platform/linux/files.ts';
import { errorCodeOf } from '../../platform/linux/syscalls.ts';
import { digestOfHex, type ImageLayout } from './layout.ts';
import { readSnapshotInfo, type SnapshotInfo } from './snapshot-info.ts';

export interface ImageFsUsage {
  readonly usedBytes: number;
  readonly inodesUsed: number;
  /** Wall clock, milliseconds since 1970. */
  readonly countedAtMs: number;
}

export interface ImageUsage {
  readonly current: () => ImageFsUsage;
  /** Counts anew; calls while a count is under way share one that begins after it. */
  readonly recount: () => Promise<void>;
}

export interface StoredContent {
  readonly blobs: readonly string[];
  readonly chainIds: readonly string[];
}

interface Inventory extends StoredContent {
  readonly usedBytes: number;
  readonly inodesUsed: number;
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

/** Everything whole that is in the store. */
export const takeInventory = async (layout: ImageLayout): Promise<Inventory> => {
  const sizeOf = async (name: string): Promise<number> => {
    try {
      return (await stat(join(layout.blobs, name))).size;
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return 0;
      throw error;
    }
  };
  const blobNames = await namesIn(layout.blobs);
  const blobSizes = await visitAll(blobNames, sizeOf);
  const snapshotNames = await namesIn(layout.snapshots);
  const notes = await visitAll(snapshotNames, (name) => readSnapshotInfo(join(layout.snapshots, name)));
  const snapshots = notes.filter((note): note is SnapshotInfo => note !== null);
  const sum = (numbers: readonly number[]): number => numbers.reduce((total, number) => total + number, 0);
  return {
    blobs: blobNames.map(digestOfHex),
    chainIds: snapshots.map(({ chainId }) => chainId),
    damaged: snapshotNames.filter((_, index) => notes[index] === null),
    usedBytes: sum(blobSizes) + sum(snapshots.map(({ usedBytes }) => usedBytes)),
    inodesUsed: blobNames.length + sum(snapshots.map(({ inodesUsed }) => inodesUsed)),
  };
};

export const createImageUsage = (layout: ImageLayout): ImageUsage => {
  let current: ImageFsUsage = { usedBytes: 0, inodesUsed: 0, countedAtMs: Date.now() };
  let counting: Promise<void> | null = null;
  let next: Promise<void> | null = null;

  const count = async (): Promise<void> => {
    const countedAtMs = Date.now();
    const { usedBytes, inodesUsed } = await takeInventory(layout);
    current = { usedBytes, inodesUsed, countedAtMs };
  };

  const begin = (): Promise<void> => {
    counting = count().finally(() => {
      counting = null;
    });
    return counting;
  };

  return {
    current: () => current,
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
