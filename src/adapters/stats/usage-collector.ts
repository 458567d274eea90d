/**
 * How much the writable layers of containers hold, with the volumes of their images, counted in the background one layer after the
 * other while somebody asks: who does is given the last count. Only the first who asks after a rest waits, for a while, since
 * what was counted before it says nothing any more. Takes a small part of one CPU at most, however much there is to count.
 */
import { setTimeout as delay } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../engine/ports.ts';
import { orAfter } from '../../platform/rpc/timeout.ts';
import type { FilesystemUsage } from '../../wire/cri/api.ts';
import { createRounds } from './rounds.ts';
import type { LayersTotal, UsageCollector } from './types.ts';
import { measureTree, type TreeUsage } from './walk.ts';

/** A step is followed by a pause this many times as long: a tenth of one CPU is for counting. */
const PAUSE_FACTOR = 9;
/** Some two hundred layers of a few files each. */
const FIRST_COUNT_WAIT_MS = 2_000;

export interface UsageCollectorOptions {
  readonly clock: Pick<Clock, 'nowNs'>;
  /** Where the file system of the layers is mounted, or the directory they are all in: CRI's fs_id. */
  readonly mountpoint: string;
  /** Told when a layer can't be counted to its end. */
  readonly report: (message: string) => void;
}

interface Layer {
  readonly dirs: readonly string[];
  /** Whether the last count was. */
  complete: boolean;
  usage: FilesystemUsage | undefined;
  forgotten: boolean;
}

const nameOf = ({ dirs: [first = ''] }: Layer): string => first;

const plus = (total: LayersTotal, { usage }: Layer): LayersTotal => {
  if (usage === undefined) return total;
  const { timestamp, usedBytes, inodesUsed } = usage;
  return {
    timestamp: BigInt(timestamp) > BigInt(total.timestamp) ? timestamp : total.timestamp,
    usedBytes: total.usedBytes + BigInt(usedBytes?.value ?? 0),
    inodesUsed: total.inodesUsed + BigInt(inodesUsed?.value ?? 0),
  };
};

/** One per daemon. */
export const createUsageCollector = ({ clock, mountpoint, report }: UsageCollectorOptions): UsageCollector => {
  const layers = new Map<string, Layer>();
  const queue: Layer[] = [];
  const closed = new AbortController();
  let counting: Promise<void> | null = null;
  /** The count after a rest; over when it takes too long, too. */
  let firstCount: Promise<void> = Promise.resolve();
  const startedAt = String(clock.nowNs());

  const isClosed = (): boolean => closed.signal.aborted;

  const pause = (stepMs: number): Promise<void> =>
    delay(stepMs * PAUSE_FACTOR, undefined, { signal: closed.signal, ref: false });

  const countLayer = async (layer: Layer): Promise<void> => {
    const trees: TreeUsage[] = [];
    for (const dir of layer.dirs) {
      const tree = await measureTree(dir, pause);
      if (tree !== null) trees.push(tree);
    }
    if (trees.length === 0) return;
    const sum = (part: (tree: TreeUsage) => number): number => trees.reduce((total, tree) => total + part(tree), 0);
    const complete = trees.every((tree) => tree.complete);
    if (layer.complete && !complete) {
      report(
        `The layer ${nameOf(layer)} has too many files, or some that can't be read: it holds more than is counted`,
      );
    }
    layer.complete = complete;
    layer.usage = {
      timestamp: String(clock.nowNs()),
      fsId: { mountpoint },
      usedBytes: { value: String(sum((tree) => tree.usedBytes)) },
      inodesUsed: { value: String(sum((tree) => tree.inodesUsed)) },
    };
  };

  const countQueue = async (): Promise<void> => {
    for (let layer = queue.shift(); layer !== undefined && !isClosed(); layer = queue.shift()) {
      try {
        if (!layer.forgotten) await countLayer(layer);
      } catch (error) {
        if (!isClosed()) report(`Counting the layer ${nameOf(layer)} failed: ${String(error)}`);
      }
    }
  };

  const count = (): void => {
    counting ??= countQueue().finally(() => {
      counting = null;
    });
  };

  const rounds = createRounds({
    round: () => {
      if (counting !== null) return;
      queue.push(...layers.values());
      count();
    },
  });

  const forget = (containerId: string): void => {
    const layer = layers.get(containerId);
    if (layer !== undefined) layer.forgotten = true;
    layers.delete(containerId);
  };

  return {
    watch: (containerId, dirs) => {
      if (isDeepStrictEqual(layers.get(containerId)?.dirs, dirs)) return;
      forget(containerId);
      const layer: Layer = { dirs, complete: true, usage: undefined, forgotten: false };
      layers.set(containerId, layer);
      if (!rounds.isAsked()) return;
      queue.push(layer);
      count();
    },
    forget,
    counted: () => {
      const isRested = !rounds.isAsked();
      rounds.asked();
      if (isRested && counting !== null) firstCount = orAfter(counting, FIRST_COUNT_WAIT_MS, undefined);
      return firstCount;
    },
    total: () => {
      const timestamp = layers.size === 0 ? String(clock.nowNs()) : startedAt;
      return [...layers.values()].reduce(plus, { timestamp, usedBytes: 0n, inodesUsed: 0n });
    },
    usageOf: (containerId) => layers.get(containerId)?.usage,
    close: () => {
      rounds.close();
      closed.abort();
      layers.clear();
    },
  };
};
