/**
 * The images adapter: pulls and loads images into content by digest and layers unpacked for overlayfs, and gives
 * containers their writable layers. Puts its parts together and decides nothing: which image is wanted, which content
 * nobody needs any more, is asked for by effects. Everything it writes is below the root directory.
 */
import { createWriteStream } from 'node:fs';
import { mkdir, readdir, rm, stat, statfs } from 'node:fs/promises';
import { randomUUID } from 'node:crypto';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { FailureError, messageOf } from '../../domain/errors.ts';
import type { ImageContent } from '../../domain/image/content.ts';
import type { PerformEffects } from '../../engine/ports.ts';
import { errorCodeOf } from '../linux/syscalls.ts';
import type { Spawner } from '../spawner/types.ts';
import { type Collected, collectUnknown } from './collection.ts';
import { imageLayout, WRITING_SUFFIX } from './layout.ts';
import { createPullJobs } from './pull/jobs.ts';
import { createSemaphore } from './semaphore.ts';
import type { Snapshots } from './snapshots-port.ts';
import { createSnapshots } from './snapshots.ts';
import { createTrees } from './trees/trees.ts';
import {
  defaultImageLimits,
  type ImageLimits,
  type Log,
  type Platform,
  type PullProgress,
  type RegistryCredentials,
} from './types.ts';
import { type CheckpointArchives, createCheckpointArchives } from './unpack/checkpoint.ts';
import { createUnpacker } from './unpack/unpacker.ts';
import { createImageUsage, type ImageFsUsage, type StoredContent, takeInventory } from './usage.ts';

export interface ImagesAdapterOptions {
  /** Directory of the daemon's lasting data. */
  readonly root: string;
  /** Directories of hosts.toml directories, in order. */
  readonly registryConfigDirs: readonly string[];
  /** Layers of one pull that are downloaded at a time. */
  readonly maxConcurrentDownloads: number;
  /** Layers that are downloaded at a time from one registry, of whatever pulls. */
  readonly maxConcurrentDownloadsPerRegistry: number;
  /** A request of which no byte arrives for this long is given up. */
  readonly progressTimeoutMs: number;
  readonly platform: Platform;
  readonly spawner: Spawner;
  /** What a token of an effect stands for; null when it is not known (any more). */
  readonly credentials: (token: string) => RegistryCredentials | null;
  readonly log: Log;
  readonly limits?: Partial<ImageLimits>;
}

export interface ImagesAdapter {
  readonly effects: Pick<PerformEffects, 'PullImage' | 'LoadImages' | 'DeleteImageContent'>;
  readonly snapshots: Snapshots;
  readonly checkpointArchives: CheckpointArchives;
  /** Pulls that begin from now on look there for hosts.toml files. */
  readonly setRegistryConfigDirs: (dirs: readonly string[]) => void;
  /** Keeps a stream for the LoadImages effect that will name it. It is destroyed if `forgetUpload` comes first. */
  readonly acceptUpload: (upload: string, stream: Readable) => void;
  readonly forgetUpload: (upload: string) => void;
  /** The observer is told of every layer's progress until the returned function is called. */
  readonly observeProgress: (observer: (progress: PullProgress) => void) => () => void;
  /** As it was counted last, without waiting. */
  readonly imageFsUsage: () => ImageFsUsage;
  /** What is whole in the store, so that what no image needs can be found after a crash. */
  readonly listContent: () => Promise<StoredContent>;
  /**
   * Takes out what is not `needed` and was not touched for `ageMs`, unless something is being fetched: null, then try
   * again later. Pulls and loads that come meanwhile wait for its end, so before the first of them it takes all.
   */
  readonly collectUnknown: (needed: StoredContent, ageMs: number) => Promise<Collected | null>;
  /**
   * Reads every blob, so many bytes a second, and removes those that are not what their digests say: their digests.
   * The next pull of an image that needs one fetches it anew.
   */
  readonly checkContent: (bytesPerSecond: number, signal: AbortSignal) => Promise<readonly string[]>;
  /** Removes from the disk what earlier runs left half-done and what was taken out, and counts the store. */
  readonly collectLeftovers: () => Promise<void>;
  readonly close: () => Promise<void>;
}

/** Downloads that were broken off are worth so much time to whoever goes on with them. */
const LEFTOVER_AGE_MS = 24 * 3_600_000;
/** An image that was fetched is in the journal, and so known to be needed, long before this has passed. */
const LATELY_MS = 10 * 60_000;
const DIRECTORY_MODE = 0o700;
const SPACE_CHECK_BYTES = 16 * 1024 * 1024;

const checkRoot = (root: string): void => {
  if (!/[:,\\]/.test(root)) return;
  throw new FailureError(
    'InvalidField',
    `The root directory ${root} has a character (":", "," or "\\") that mount options can't hold.`,
  );
};

export const createImagesAdapter = (options: ImagesAdapterOptions): ImagesAdapter => {
  const { root, platform, spawner, credentials, log } = options;
  const { registryConfigDirs, maxConcurrentDownloads, maxConcurrentDownloadsPerRegistry, progressTimeoutMs } = options;
  checkRoot(root);
  const limits: ImageLimits = { ...defaultImageLimits, ...options.limits };
  const layout = imageLayout(root);
  const trees = createTrees();
  /** A thread of its own: syncing takes as long as the disk does, and containers' layers are removed meanwhile. */
  const unpackedTrees = createTrees();
  const snapshots = createSnapshots(layout, trees);
  const usage = createImageUsage(layout);
  const observers = new Set<(progress: PullProgress) => void>();
  const uploads = new Map<string, Readable>();
  const lately = new Set<{ readonly image: ImageContent; readonly atMs: number }>();
  let fetching = 0;
  let collecting: Promise<unknown> = Promise.resolve();

  const recountInBackground = (): void => {
    usage.recount().catch((error: unknown) => log.warn({ error }, 'the size of the image store could not be counted'));
  };

  const inTurn = createSemaphore(availableParallelism());
  const unpacker = createUnpacker({
    layout,
    spawner,
    inTurn,
    limits,
    trees: unpackedTrees,
    onSnapshot: recountInBackground,
  });

  const checkpointArchives = createCheckpointArchives({ layout, spawner, limits, inTurn });
  const jobs = createPullJobs(
    {
      root,
      registryConfigDirs,
      maxConcurrentDownloads,
      maxConcurrentDownloadsPerRegistry,
      progressTimeoutMs,
      platform,
      limits,
    },
    unpacker,
    (progress) => {
      for (const observer of observers) observer(progress);
    },
  );

  const credentialsOf = (token: string | null): RegistryCredentials | null => {
    if (token === null) return null;
    const found = credentials(token);
    if (found !== null) return found;
    throw new FailureError('Interrupted', 'The credentials of the pull are not known any more: pull the image again.');
  };

  async function* withinSpace(stream: Readable): AsyncGenerator<Buffer> {
    let uncheckedBytes = SPACE_CHECK_BYTES;
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      uncheckedBytes += chunk.length;
      if (uncheckedBytes >= SPACE_CHECK_BYTES) {
        uncheckedBytes = 0;
        const { bavail, bsize } = await statfs(layout.ingest);
        if (bavail * bsize < limits.reservedBytes + SPACE_CHECK_BYTES) {
          throw new FailureError(
            'DiskFull',
            'The disk is too full for the image archive: make room and load it again.',
          );
        }
      }
      yield chunk;
    }
  }

  /** The upload as a file, for the thread that reads it. */
  const receive = async (upload: string, signal: AbortSignal): Promise<string> => {
    const stream = uploads.get(upload);
    uploads.delete(upload);
    if (stream === undefined)
      throw new FailureError('Interrupted', 'The image archive is not being sent any more: load it again.');
    await mkdir(layout.ingest, { recursive: true, mode: DIRECTORY_MODE });
    const path = join(layout.ingest, `${randomUUID()}${WRITING_SUFFIX}`);
    try {
      await pipeline(stream, withinSpace, createWriteStream(path, { flags: 'wx', mode: 0o600 }), { signal });
      return path;
    } catch (error) {
      await rm(path, { force: true });
      signal.throwIfAborted();
      if (error instanceof FailureError) throw error;
      const message = messageOf(error);
      throw new FailureError('Interrupted', `The image archive did not arrive whole: ${message}.`);
    }
  };

  const removeSnapshot = async (chainId: string): Promise<number> => {
    const taken = await unpacker.takeAway(chainId);
    if (taken === null) return 0;
    await trees.remove(taken.path);
    return taken.info.usedBytes;
  };

  /** Has a pull or load wait for a collection: it must not find what is about to go. */
  const fetch = async <T>(work: () => Promise<T>, imagesOf: (fetched: T) => readonly ImageContent[]): Promise<T> => {
    fetching += 1;
    try {
      await collecting;
      const fetched = await work();
      for (const image of imagesOf(fetched)) lately.add({ image, atMs: performance.now() });
      return fetched;
    } finally {
      fetching -= 1;
      recountInBackground();
    }
  };

  const effects: ImagesAdapter['effects'] = {
    PullImage: async ({ reference, credentials: token }, { signal }) => {
      const given = credentialsOf(token);
      const pull = (): Promise<ImageContent> => jobs.pull(reference, given, signal);
      return { image: await fetch(pull, (image) => [image]) };
    },
    LoadImages: async ({ upload }, { signal }) => {
      const load = async () => await jobs.load(await receive(upload, signal), upload, signal);
      return { images: await fetch(load, (images) => images) };
    },
    DeleteImageContent: async ({ blobs, chainIds }) => {
      // Layers before blobs: should it end half-way, what is left can still be unpacked again or deleted again.
      let freedBytes = 0;
      for (const chainId of chainIds) freedBytes += await removeSnapshot(chainId);
      if (blobs.length > 0) freedBytes += await jobs.removeBlobs(blobs);
      recountInBackground();
      return { freedBytes };
    },
  };

  /** Removes what is in the directory and was not touched for `ageMs`, but what `keep` names. */
  const removeOld = async (directory: string, ageMs: number, keep: ReadonlySet<string> = new Set()): Promise<void> => {
    let names: readonly string[];
    try {
      names = await readdir(directory);
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return;
      throw error;
    }
    const beforeMs = Date.now() - ageMs;
    for (const name of names) {
      const path = join(directory, name);
      const stats = keep.has(name) ? null : await stat(path).catch(() => null);
      if (stats !== null && stats.mtimeMs <= beforeMs) await trees.remove(path);
    }
  };

  const neededWith = (needed: StoredContent): StoredContent => {
    const beforeMs = performance.now() - LATELY_MS;
    for (const fetched of lately) if (fetched.atMs < beforeMs) lately.delete(fetched);
    const contents = [...lately].map(({ image }) => image);
    return {
      blobs: [...needed.blobs, ...contents.flatMap(({ blobs }) => blobs)],
      chainIds: [...needed.chainIds, ...contents.flatMap(({ layers }) => layers.map(({ chainId }) => chainId))],
    };
  };

  return {
    effects,
    setRegistryConfigDirs: jobs.setRegistryConfigDirs,
    snapshots,
    checkpointArchives,
    acceptUpload: (upload, stream) => {
      uploads.set(upload, stream);
    },
    forgetUpload: (upload) => {
      uploads.get(upload)?.destroy();
      uploads.delete(upload);
    },
    observeProgress: (observer) => {
      observers.add(observer);
      return () => observers.delete(observer);
    },
    imageFsUsage: usage.current,
    listContent: async () => {
      const { blobs, chainIds } = await takeInventory(layout);
      return { blobs, chainIds };
    },
    collectUnknown: async (needed, ageMs) => {
      if (fetching > 0) return null;
      const collection = collectUnknown(layout, neededWith(needed), ageMs);
      collecting = collection.catch(() => undefined);
      return await collection;
    },
    checkContent: jobs.checkBlobs,
    collectLeftovers: async () => {
      await removeOld(layout.unpack, 0, unpacker.active.union(checkpointArchives.active));
      await removeOld(layout.trash, 0);
      await removeOld(layout.ingest, LEFTOVER_AGE_MS);
      await usage.recount();
    },
    close: async () => {
      await jobs.close();
      await Promise.all([trees.close(), unpackedTrees.close()]);
    },
  };
};
