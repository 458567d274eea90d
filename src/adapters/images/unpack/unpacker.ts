/**
 * Has layers unpacked by child processes, so many at a time, each layer once whoever asks. A layer is a directory
 * that appears under its name by a rename, as the last step, when it is whole; what a crash leaves half-way is elsewhere.
 * Syncing it is SyncImage's. Layers do not wait for those below them but for one thing: directories that they do not
 * describe take after those below.
 */
import { mkdir, rename, writeFile } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ImageLayer } from '../../../domain/model/image-content.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { spreadDirectoriesIn } from '../../../platform/linux/spread.ts';
import { unlessAborted } from '../../../platform/rpc/timeout.ts';
import type { Spawner } from '../../../platform/spawner/types.ts';
import { blobPath, type ImageLayout, INFO_FILE, LAYER_DIR, layerDir, snapshotDir, snapshotName } from '../layout.ts';
import type { Semaphore } from '../../../platform/linux/semaphore.ts';
import { createSharedWork } from '../shared-work.ts';
import { readSnapshotInfo, type SnapshotInfo } from '../snapshot-info.ts';
import { moveToTrash } from '../trash.ts';
import type { Trees } from '../trees/trees.ts';
import type { ImageLimits } from '../types.ts';
import { runUnpacker } from './run-child.ts';

export interface Unpacker {
  /**
   * Resolves once the layer's directory is in place. `below` are the chain ids of the layers under it, base first: they
   * have to be unpacked too, or this one waits for them. Throws FailureError, or the signal's reason.
   */
  readonly unpack: (
    layer: ImageLayer,
    below: readonly string[],
    signal: AbortSignal,
    onProgress: (bytesDone: number) => void,
  ) => Promise<void>;
  /** Names in the unpack directory that are being worked on. */
  readonly active: ReadonlySet<string>;
  /** Keeps layers from being taken away until the returned function is called. */
  readonly hold: (chainIds: readonly string[]) => () => void;
  /** Moves those layers to the trash that are there: what they were. null when any is held: then all stay. */
  readonly takeAway: (chainIds: readonly string[]) => Promise<readonly SnapshotInfo[] | null>;
}

const DIRECTORY_MODE = 0o700;

const isUnpacked = async (layout: ImageLayout, chainId: string): Promise<boolean> => {
  const info = await readSnapshotInfo(snapshotDir(layout, chainId));
  if (info === null) return false;
  if (info.chainId === chainId) return true;
  throw new FailureError(
    'HostFailed',
    `Layers ${chainId} and ${info.chainId} would have the same name: remove the other image first.`,
  );
};

/** What is held, however often. */
const createHolds = (): Pick<Unpacker, 'hold'> & { readonly has: (chainId: string) => boolean } => {
  const held = new Map<string, number>();
  return {
    has: (chainId) => held.has(chainId),
    hold: (chainIds) => {
      for (const chainId of chainIds) held.set(chainId, (held.get(chainId) ?? 0) + 1);
      return () => {
        for (const chainId of chainIds) {
          const count = (held.get(chainId) ?? 0) - 1;
          if (count > 0) held.set(chainId, count);
          else held.delete(chainId);
        }
      };
    },
  };
};

const sourceOf = (layout: ImageLayout, { digest, diffId }: ImageLayer) =>
  ({ archivePath: blobPath(layout, digest), name: `Layer ${digest}`, form: 'layer', diffId }) as const;

/** Makes the directory, once: layers apart from each other, for files beside others that were just removed are dear on ext4. */
const unpackDirectory = ({ unpack }: ImageLayout): (() => Promise<void>) => {
  const make = async (): Promise<void> => {
    await mkdir(unpack, { recursive: true, mode: DIRECTORY_MODE });
    await spreadDirectoriesIn(unpack);
  };
  let made: Promise<void> | null = null;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = null;
      throw error;
    });
    return made;
  };
};

export const createUnpacker = (options: {
  readonly layout: ImageLayout;
  readonly spawner: Spawner;
  /** Runs what unpacks, so many at a time. */
  readonly inTurn: Semaphore;
  readonly limits: ImageLimits;
  readonly trees: Trees;
  readonly onSnapshot: (info: SnapshotInfo) => void;
}): Unpacker => {
  const { layout, spawner, inTurn, limits, trees, onSnapshot } = options;
  const shared = createSharedWork<void>();
  const held = createHolds();
  const waiting = new Map<string, PromiseWithResolvers<void>>();
  const active = new Set<string>();
  const prepare = unpackDirectory(layout);
  /** Layers on their way out: whoever wants one waits until it is gone, and unpacks it anew. */
  const leaving = new Map<string, Promise<unknown>>();

  /** Resolves when somebody has unpacked the layer. Only a caller whose pull asks for that layer too may wait. */
  const whenUnpacked = async (chainId: string, signal: AbortSignal): Promise<void> => {
    const wait = waiting.get(chainId) ?? Promise.withResolvers<void>();
    waiting.set(chainId, wait);
    if (await isUnpacked(layout, chainId)) {
      waiting.delete(chainId);
      wait.resolve();
      return;
    }
    await unlessAborted(wait.promise, signal);
  };

  const putInPlace = async (directory: string, info: SnapshotInfo): Promise<void> => {
    await writeFile(join(directory, INFO_FILE), JSON.stringify(info), { mode: 0o600 });
    await mkdir(layout.snapshots, { recursive: true, mode: DIRECTORY_MODE });
    const place = snapshotDir(layout, info.chainId);
    // Something without a good note may be in the way.
    await moveToTrash(layout, place);
    await rename(directory, place);
    onSnapshot(info);
    waiting.get(info.chainId)?.resolve();
    waiting.delete(info.chainId);
  };

  const unpackNow = async (
    layer: ImageLayer,
    below: readonly string[],
    signal: AbortSignal,
    onProgress: (bytesDone: number) => void,
  ): Promise<void> => {
    await leaving.get(layer.chainId);
    if (await isUnpacked(layout, layer.chainId)) return;
    const name = `${snapshotName(layer.chainId)}-${randomUUID()}`;
    const directory = join(layout.unpack, name);
    active.add(name);
    const root = join(directory, LAYER_DIR);
    try {
      const { done, implied, opaque } = await inTurn(signal, async () => {
        await prepare();
        await mkdir(root, { recursive: true, mode: DIRECTORY_MODE });
        return await runUnpacker({ ...sourceOf(layout, layer), spawner, limits, directory: root, signal, onProgress });
      });
      await trees.markOpaque({ root, opaque });
      if (implied.length > 0) {
        await Promise.all(below.map((chainId) => whenUnpacked(chainId, signal)));
        const lowerDirs = below.toReversed().map((chainId) => layerDir(layout, chainId));
        await trees.copyLooks({ root, implied, lowerDirs });
      }
      const { chainId, diffId } = layer;
      await putInPlace(directory, { chainId, diffId, usedBytes: done.usedBytes, inodesUsed: done.inodesUsed });
    } catch (error) {
      await trees.remove(directory);
      throw error;
    } finally {
      active.delete(name);
    }
  };

  return {
    active,
    hold: held.hold,
    unpack: (layer, below, signal, onProgress) =>
      shared(layer.chainId, signal, (sharedSignal) => unpackNow(layer, below, sharedSignal, onProgress)),
    takeAway: async (chainIds) => {
      const infos = await Promise.all(chainIds.map((chainId) => readSnapshotInfo(snapshotDir(layout, chainId))));
      // From here to the last mark nobody else has a turn: a pull finds all of them held by it, or all on their way out.
      if (chainIds.some(held.has)) return null;
      const there = infos.flatMap((info, index) =>
        info !== null && info.chainId === chainIds[index] && !leaving.has(info.chainId) ? [info] : [],
      );
      const taken = there.map(async (info) => {
        const { chainId } = info;
        const moving = moveToTrash(layout, snapshotDir(layout, chainId));
        leaving.set(
          chainId,
          moving.catch(() => undefined),
        );
        try {
          return (await moving) ? [info] : [];
        } finally {
          leaving.delete(chainId);
        }
      });
      return (await Promise.all(taken)).flat();
    },
  };
};
