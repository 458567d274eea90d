/**
 * Has layers unpacked by child processes, so many at a time, each layer once whoever asks, and while they are downloaded where
 * there is room for that. What a crash leaves half-way is not where whole layers are (places.ts). Syncing them is SyncImage's.
 * Layers do not wait for those below them but for one thing: directories that they do not describe take after those below.
 */
import { mkdir } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { ImageLayer } from '../../../domain/model/image-content.ts';
import { arrivalsPath, blobPath, type ImageLayout, LAYER_DIR, layerDir, partialPath, snapshotName } from '../layout.ts';
import { createSharedWork } from '../shared-work.ts';
import type { SnapshotInfo } from '../snapshot-info.ts';
import type { Trees } from '../trees/trees.ts';
import { createPlaces, type Places } from './places.ts';
import type { UnpackerProcesses } from './processes.ts';
import type { Unpacked, UnpackerRun } from './run-child.ts';
import { createTakeAway, type TakeAway } from './take-away.ts';
import { type ChainPlace, isAbove, type Turns } from './turns.ts';

export interface Unpacker {
  /** An image is about to come that has something to unpack, by all that is known. */
  readonly expect: () => void;
  /** Resolves once the layer's directory is in place. Throws FailureError, or the signal's reason. */
  readonly unpack: (wanted: WantedLayer, signal: AbortSignal, onProgress: (bytesDone: number) => void) => Promise<void>;
  /** Names in the unpack directory that are being worked on. */
  readonly active: ReadonlySet<string>;
  /** Those of an image, base first, which will be unpacked: they are not taken away until the returned function is called. */
  readonly hold: (layers: readonly ImageLayer[]) => () => void;
  readonly takeAway: TakeAway;
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
const createHolds = () => {
  const held = new Map<string, number>();
  return {
    has: (chainId: string): boolean => held.has(chainId),
    hold: (chainIds: readonly string[]): (() => void) => {
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

const arrivingOf = (layout: ImageLayout, { digest, sizeBytes }: ImageLayer) => ({
  partialPath: partialPath(layout, digest),
  arrivalsPath: arrivalsPath(layout, digest),
  sizeBytes,
});

/**
 * Larger ones have a process of their own: its start is little of what they take, and who waits for the layers below waits
 * for no more.
 */
const SMALL_BYTES = 32 * 1024 * 1024;
/** Those up to here take less than the 60 ms and more that pass until a process has started. */
const QUICK_BYTES = 2 * 1024 * 1024;

const placeOf = ({ layer: { chainId, sizeBytes }, below }: Omit<WantedLayer, 'whole'>): ChainPlace => ({
  chainId,
  below,
  isQuick: sizeBytes <= QUICK_BYTES,
});

interface PlacedLayer extends WantedLayer {
  readonly place: ChainPlace;
}

const sourceOf = (layout: ImageLayout, { layer: { digest, diffId }, place }: PlacedLayer) =>
  ({ archivePath: blobPath(layout, digest), name: `Layer ${digest}`, form: 'layer', diffId, place }) as const;

/** Until all has arrived the download is what there is to tell of. */
const toldOnce = (whole: Promise<void>, onProgress: (bytesDone: number) => void) => {
  let bytesRead = 0;
  let tell: (bytesDone: number) => void = (bytesDone) => (bytesRead = bytesDone);
  const arrived = whole.then(() => {
    onProgress(bytesRead);
    tell = onProgress;
  });
  return { arrived, onRead: (bytesDone: number): void => tell(bytesDone) };
};

/** Layers that are under way. */
const createUnderWay = () => {
  const places = new Set<ChainPlace>();
  return {
    count: () => places.size,
    isBelow: (place: ChainPlace): boolean => places.values().some((lower) => isAbove(place, lower)),
    during: async <T>(place: ChainPlace, work: () => Promise<T>): Promise<T> => {
      places.add(place);
      try {
        return await work();
      } finally {
        places.delete(place);
      }
    },
  };
};

/** Layers on their way to where whole ones are. */
const createFilling = (layout: ImageLayout, trees: Trees, { whenUnpacked, putInPlace }: Places) => {
  const active = new Set<string>();

  /** Has `fill` unpack the layer into a directory of its own, and puts it in place; it is gone when that fails. */
  const unpackInto = async (
    wanted: PlacedLayer,
    signal: AbortSignal,
    fill: (run: Omit<UnpackerRun, 'signal' | 'onProgress'> & { readonly place: ChainPlace }) => Promise<Unpacked>,
  ): Promise<void> => {
    const { layer, below } = wanted;
    const name = `${snapshotName(layer.chainId)}-${randomUUID()}`;
    const directory = join(layout.unpack, name);
    active.add(name);
    const root = join(directory, LAYER_DIR);
    try {
      await mkdir(directory, { recursive: true, mode: DIRECTORY_MODE });
      const { done, implied, opaque, gone } = await fill({ ...sourceOf(layout, wanted), directory: root });
      // What is done to it here by paths must not be met by whoever has read strangers' bytes.
      await gone;
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

  return { active, unpackInto };
};

export const createUnpacker = (options: {
  readonly layout: ImageLayout;
  readonly processes: UnpackerProcesses;
  /** What unpacks whole blobs waits for one. */
  readonly turns: Turns;
  /** What is still being downloaded is unpacked while fewer than so many are under way in all. */
  readonly arrivingMax: number;
  readonly trees: Trees;
  readonly onSnapshot: (info: SnapshotInfo) => void;
}): Unpacker => {
  const { layout, processes, turns, arrivingMax, trees, onSnapshot } = options;
  const shared = createSharedWork<void>();
  const held = createHolds();
  const places = createPlaces(layout, onSnapshot);
  const { active, unpackInto } = createFilling(layout, trees, places);
  const underWay = createUnderWay();
  const { takeAway, whenGone } = createTakeAway(layout, held.has);

  /**
   * Unpacks the layer while its blob is downloaded. true once it is in place. false when that can't be, for whatever reason: of
   * bytes that nobody has vouched for yet nothing is to be learnt, and the layer is unpacked when they are whole.
   */
  const unpackArriving = async (
    wanted: PlacedLayer,
    whole: Promise<void>,
    signal: AbortSignal,
    onProgress: (bytesDone: number) => void,
  ): Promise<boolean> => {
    const arriving = arrivingOf(layout, wanted.layer);
    const { arrived, onRead } = toldOnce(whole, onProgress);
    try {
      await unpackInto(wanted, signal, async (run) => {
        const child = { ...run, onProgress: onRead, arriving, signal };
        const leave = turns.occupy(run.place, arrived);
        try {
          return await processes.run(child, arrived);
        } finally {
          leave();
        }
      });
      return true;
    } catch {
      signal.throwIfAborted();
      return false;
    }
  };

  const hold: Unpacker['hold'] = (layers) => {
    const chainIds = layers.map(({ chainId }) => chainId);
    const release = held.hold(chainIds);
    const forget = turns.await(layers.map((layer, index) => placeOf({ layer, below: chainIds.slice(0, index) })));
    return () => {
      forget();
      release();
    };
  };

  const unpackNow = async (
    wanted: PlacedLayer,
    signal: AbortSignal,
    onProgress: (bytesDone: number) => void,
  ): Promise<void> => {
    const { layer, whole, place } = wanted;
    await whenGone(place.chainId);
    if (await places.isUnpacked(place.chainId)) return;
    const isSmall = layer.sizeBytes <= SMALL_BYTES;
    // One more than there are processors would only take these from those that have whole blobs to unpack.
    const isRoom =
      underWay.count() < arrivingMax &&
      !(isSmall && (underWay.isBelow(place) || processes.isBelow(place) || turns.waitsForBelow(place)));
    if (whole !== null && isRoom)
      if (await underWay.during(place, () => unpackArriving(wanted, whole, signal, onProgress))) return;
    const forget = isSmall ? processes.await(place) : null;
    try {
      await unpackInto(wanted, signal, (run) => {
        const unpack = () => processes.run({ ...run, signal, onProgress });
        return turns.inTurn({ signal, place, ready: whole }, () => underWay.during(place, unpack));
      });
    } finally {
      forget?.();
    }
  };

  return {
    ...{ expect: processes.expect, active, hold },
    unpack: (wanted, signal, onProgress) => {
      // Images may name different blobs for one layer.
      const asked = { key: wanted.layer.chainId, way: wanted.layer.digest };
      const placed = { ...wanted, place: placeOf(wanted) };
      return shared(asked, signal, (sharedSignal) =>
        unpackNow(placed, sharedSignal, onProgress).finally(() => turns.forget(placed.place)),
      );
    },
    takeAway,
  };
};
