/**
 * Has layers unpacked by child processes, so many at a time, each layer once whoever asks, and while they are downloaded where
 * there is room for that. What a crash leaves half-way is not where whole layers are (places.ts). Syncing them is SyncImage's. Layers do not wait for those below them but for one thing: directories that they do not
 * describe take after those below.
 */
import { mkdir } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ImageLayer } from '../../../domain/model/image-content.ts';
import { spreadDirectoriesIn } from '../../../platform/linux/spread.ts';
import { unlessAborted } from '../../../platform/rpc/timeout.ts';
import {
  arrivalsPath,
  blobPath,
  type ImageLayout,
  LAYER_DIR,
  layerDir,
  partialPath,
  snapshotDir,
  snapshotName,
} from '../layout.ts';
import type { Semaphore } from '../../../platform/linux/semaphore.ts';
import { createSharedWork } from '../shared-work.ts';
import { readSnapshotInfo, type SnapshotInfo } from '../snapshot-info.ts';
import { moveToTrash } from '../trash.ts';
import type { Trees } from '../trees/trees.ts';
import { createPlaces } from './places.ts';
import type { UnpackerProcesses } from './ahead.ts';
import type { Unpacked, UnpackerRun } from './run-child.ts';

export interface Unpacker {
  /** An image is about to come that has something to unpack, by all that is known. */
  readonly expect: () => void;
  /** Resolves once the layer's directory is in place. Throws FailureError, or the signal's reason. */
  readonly unpack: (wanted: WantedLayer, signal: AbortSignal, onProgress: (bytesDone: number) => void) => Promise<void>;
  /** Names in the unpack directory that are being worked on. */
  readonly active: ReadonlySet<string>;
  /** Keeps layers from being taken away until the returned function is called. */
  readonly hold: (chainIds: readonly string[]) => () => void;
  /** Moves those layers to the trash that are there: what they were. null when any is held: then all stay. */
  readonly takeAway: (chainIds: readonly string[]) => Promise<readonly SnapshotInfo[] | null>;
}

export interface WantedLayer {
  readonly layer: ImageLayer;
  /** Chain ids of the layers under it, base first: they have to be unpacked too, or this one waits for them. */
  readonly below: readonly string[];
  /** Its blob is on its way and is read as it comes; resolves when it is there and is what its digest says. */
  readonly whole: Promise<void> | null;
}

const DIRECTORY_MODE = 0o700;

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

/** How many are under way. */
const createCount = () => {
  let now = 0;
  return {
    now: () => now,
    during: async <T>(work: () => Promise<T>): Promise<T> => {
      now += 1;
      try {
        return await work();
      } finally {
        now -= 1;
      }
    },
  };
};

/** Layers on their way out: whoever wants one waits until it is gone, and unpacks it anew. */
const createTakeAway = (
  layout: ImageLayout,
  isHeld: (chainId: string) => boolean,
): Pick<Unpacker, 'takeAway'> & { readonly whenGone: (chainId: string) => Promise<unknown> | undefined } => {
  const leaving = new Map<string, Promise<unknown>>();
  const takeAway: Unpacker['takeAway'] = async (chainIds) => {
    const infos = await Promise.all(chainIds.map((chainId) => readSnapshotInfo(snapshotDir(layout, chainId))));
    // From here to the last mark nobody else has a turn: a pull finds all of them held by it, or all on their way out.
    if (chainIds.some(isHeld)) return null;
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
  };
  return { takeAway, whenGone: (chainId) => leaving.get(chainId) };
};

export const createUnpacker = (options: {
  readonly layout: ImageLayout;
  readonly processes: UnpackerProcesses;
  /** Runs what unpacks, so many at a time. */
  readonly inTurn: Semaphore;
  /** What is still being downloaded is unpacked while fewer than so many are under way in all. */
  readonly arrivingMax: number;
  readonly trees: Trees;
  readonly onSnapshot: (info: SnapshotInfo) => void;
}): Unpacker => {
  const { layout, processes, inTurn, arrivingMax, trees, onSnapshot } = options;
  const shared = createSharedWork<void>();
  const held = createHolds();
  const { isUnpacked, whenUnpacked, putInPlace } = createPlaces(layout, onSnapshot);
  const active = new Set<string>();
  const working = createCount();
  const prepare = unpackDirectory(layout);
  const { takeAway, whenGone } = createTakeAway(layout, held.has);

  /** Has `fill` unpack the layer into a directory of its own, and puts it in place; it is gone when that fails. */
  const unpackInto = async (
    { layer, below }: WantedLayer,
    signal: AbortSignal,
    fill: (run: Pick<UnpackerRun, 'archivePath' | 'name' | 'form' | 'diffId' | 'directory'>) => Promise<Unpacked>,
  ): Promise<void> => {
    const name = `${snapshotName(layer.chainId)}-${randomUUID()}`;
    const directory = join(layout.unpack, name);
    active.add(name);
    const root = join(directory, LAYER_DIR);
    try {
      await prepare();
      await mkdir(root, { recursive: true, mode: DIRECTORY_MODE });
      const { done, implied, opaque } = await fill({ ...sourceOf(layout, layer), directory: root });
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

  /**
   * Unpacks the layer while its blob is downloaded. true once it is in place. false when that can't be, for whatever reason: of
   * bytes that nobody has vouched for yet nothing is to be learnt, and the layer is unpacked when they are whole.
   */
  const unpackArriving = async (
    wanted: WantedLayer,
    whole: Promise<void>,
    signal: AbortSignal,
    onProgress: (bytesDone: number) => void,
  ): Promise<boolean> => {
    // One more would only take the processors from those that have whole blobs to unpack.
    if (working.now() >= arrivingMax) return false;
    const { digest, sizeBytes } = wanted.layer;
    const partial = { partialPath: partialPath(layout, digest), arrivalsPath: arrivalsPath(layout, digest), sizeBytes };
    let bytesRead = 0;
    let tell: (bytesDone: number) => void = (bytesDone) => (bytesRead = bytesDone);
    const arrived = whole.then(() => {
      // Until then the download is what there is to tell of.
      onProgress(bytesRead);
      tell = onProgress;
    });
    try {
      await unpackInto(wanted, signal, async (run) => {
        const told = { onProgress: (bytesDone: number) => tell(bytesDone) };
        const child = { ...run, ...told, arriving: partial, signal };
        const unpacked = await working.during(() => processes.run(child));
        await unlessAborted(arrived, signal);
        return unpacked;
      });
      return true;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  };

  const unpackNow = async (
    wanted: WantedLayer,
    signal: AbortSignal,
    onProgress: (bytesDone: number) => void,
  ): Promise<void> => {
    const { layer, whole } = wanted;
    await whenGone(layer.chainId);
    if (await isUnpacked(layer.chainId)) return;
    if (whole !== null) {
      if (await unpackArriving(wanted, whole, signal, onProgress)) return;
      await unlessAborted(whole, signal);
    }
    await unpackInto(wanted, signal, (run) => {
      const child = { ...run, signal, onProgress };
      return inTurn(signal, () => working.during(() => processes.run(child)));
    });
  };

  return {
    expect: processes.expect,
    active,
    hold: held.hold,
    unpack: (wanted, signal, onProgress) =>
      shared(wanted.layer.chainId, signal, (sharedSignal) => unpackNow(wanted, sharedSignal, onProgress)),
    takeAway,
  };
};
