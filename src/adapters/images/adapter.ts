/**
 * The images adapter: pulls and loads images into content by digest and layers unpacked for overlayfs, and gives
 * containers their writable layers. Puts its parts together and decides nothing: which image is wanted, which content
 * nobody needs any more, is asked for by effects. Everything it writes is below the root directory.
 */
import { stat } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { type Observable, Subject } from 'rxjs';
import { FailureError } from '../../domain/model/errors.ts';
import type { ImageContent } from '../../domain/model/image-content.ts';
import type { PerformEffects } from '../../engine/ports.ts';
import { namesIn } from '../../platform/linux/files.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import { type Collected, collectUnknown } from './collection.ts';
import { createFetchTurns } from './fetch-or-collect.ts';
import { type ImageLayout, imageLayout } from './layout.ts';
import { createPullJobs, type PullJobs } from './pull/jobs.ts';
import type { Progress } from './registry/pace.ts';
import type { Snapshots } from './snapshots-port.ts';
import { readShownConfig } from './shown-config.ts';
import { createSnapshots } from './snapshots.ts';
import { createTrees, type Trees } from './trees/trees.ts';
import {
  defaultImageLimits,
  type ImageLimits,
  type Log,
  type Platform,
  type PullProgress,
  type RegistryCredentials,
} from './types.ts';
import { type CheckpointArchives, createCheckpointArchives } from './unpack/checkpoint.ts';
import { createHomes } from './unpack/home.ts';
import { createUnpackerProcesses } from './unpack/processes.ts';
import { createTurns } from './unpack/turns.ts';
import { createUnpacker, type Unpacker } from './unpack/unpacker.ts';
import { beginBoot } from './new-boot.ts';
import { lookAtContent } from './on-disk.ts';
import { createSyncImage } from './sync-image.ts';
import { createTrash, type Trash } from './trash.ts';
import { createUploads } from './uploads.ts';
import { createImageUsage, type ImageFsUsage, type StoredContent, takeInventory } from './usage.ts';

export interface ImagesAdapterOptions {
  /** Directory of the daemon's lasting data. */
  readonly root: string;
  /** Directories of hosts.toml directories, in order. */
  readonly registryConfigDirs: readonly string[];
  /** Whether credentials that name no server go to the mirrors in these files too. */
  readonly mirrorCredentials: boolean;
  /** Layers of one pull that are downloaded at a time. */
  readonly maxConcurrentDownloads: number;
  /** Layers that are downloaded at a time from one registry, of whatever pulls. */
  readonly maxConcurrentDownloadsPerRegistry: number;
  /** A request of which no byte arrives for so long, or too little, is given up. */
  readonly progress: Progress;
  readonly platform: Platform;
  /** The kernel's id of this boot. */
  readonly bootId: string;
  readonly spawner: Spawner;
  /** What a token of an effect stands for; null when it is not known (any more). */
  readonly credentials: (token: string) => RegistryCredentials | null;
  /** Whether an image of that name is here, which is then most likely still what the name stands for. */
  readonly isHere: (reference: string) => boolean;
  readonly log: Log;
  /** Files with the keys of those whose checkpoints are restored here; nobody's by default. */
  readonly trustedKeyPaths?: readonly string[];
  readonly limits?: Partial<ImageLimits>;
}

export interface ImagesAdapter {
  readonly effects: Pick<PerformEffects, 'PullImage' | 'LoadImages' | 'SyncImage' | 'DeleteImageContent'>;
  readonly snapshots: Snapshots;
  readonly checkpointArchives: CheckpointArchives;
  /** Pulls that begin from now on look there for hosts.toml files. */
  readonly setRegistryConfigDirs: (dirs: readonly string[]) => void;
  /** Keeps a stream for the LoadImages effect that will name it. It is destroyed if `forgetUpload` comes first. */
  readonly acceptUpload: (upload: string, stream: Readable) => void;
  readonly forgetUpload: (upload: string) => void;
  /** Every layer's, of all that is pulled and loaded. */
  readonly progress: Observable<PullProgress>;
  /** The config of the image with this id, as it came from its registry; null: it is not there, or too large to be shown. */
  readonly configOf: (imageId: string) => Promise<Readonly<Record<string, unknown>> | null>;
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

const checkRoot = (root: string): void => {
  if (!/[:,\\]/.test(root)) return;
  throw new FailureError(
    'InvalidField',
    `The root directory ${root} has a character (":", "," or "\\") that mount options can't hold.`,
  );
};

/** Removes what is in the directory and was not touched for `ageMs`, but what `keep` names. */
const removeOld = async (
  trees: Trees,
  directory: string,
  ageMs: number,
  keep: ReadonlySet<string> = new Set(),
): Promise<void> => {
  const beforeMs = Date.now() - ageMs;
  for (const name of await namesIn(directory)) {
    const path = join(directory, name);
    const stats = keep.has(name) ? null : await stat(path).catch(() => null);
    if (stats !== null && stats.mtimeMs <= beforeMs) await trees.remove(path);
  }
};

const credentialsOf = (
  token: string | null,
  credentials: ImagesAdapterOptions['credentials'],
): RegistryCredentials | null => {
  if (token === null) return null;
  const found = credentials(token);
  if (found !== null) return found;
  throw new FailureError('Interrupted', 'The credentials of the pull are not known any more: pull the image again.');
};

interface EffectParts {
  readonly credentials: ImagesAdapterOptions['credentials'];
  readonly isHere: ImagesAdapterOptions['isHere'];
  readonly turns: ReturnType<typeof createFetchTurns>;
  readonly jobs: PullJobs;
  readonly uploads: ReturnType<typeof createUploads>;
  readonly unpacker: Unpacker;
  readonly layout: ImageLayout;
  readonly syncImage: PerformEffects['SyncImage'];
  /** Something was moved to the trash. */
  readonly clearTrash: () => void;
  /** What is in the store has changed. */
  readonly recount: () => void;
}

const effectsOf = (parts: EffectParts): ImagesAdapter['effects'] => {
  const { credentials, isHere, turns, jobs, uploads, unpacker, layout, syncImage, clearTrash, recount } = parts;
  const fetch = async <T>(work: () => Promise<T>): Promise<T> => {
    try {
      return await turns.fetch(work);
    } finally {
      recount();
    }
  };

  const isUnsynced = async (image: ImageContent): Promise<boolean> => {
    const { isMissing, unmarked } = await lookAtContent(layout, image);
    return isMissing || unmarked.length > 0;
  };

  return {
    SyncImage: syncImage,
    PullImage: async ({ reference, credentials: token }, { signal }) => {
      const asked = { reference, credentials: credentialsOf(token, credentials), isHere: isHere(reference) };
      const image = await fetch(() => jobs.pull(asked, signal));
      return { image, ...((await isUnsynced(image)) && { unsynced: true }) };
    },
    LoadImages: async ({ upload }, { signal }) => {
      const images = await fetch(async () => await jobs.load(await uploads.receive(upload, signal), upload, signal));
      const areUnsynced = await Promise.all(images.map(isUnsynced));
      return { images, ...(areUnsynced.includes(true) && { unsynced: true }) };
    },
    // Pulls and loads hold what they count on until it is known what they brought, of which nobody may have heard when this was
    // asked for. What nobody needs after all is collected later.
    DeleteImageContent: ({ blobs, chainIds, fetching = [] }) =>
      turns.withBrought(fetching, async (brought) => {
        // Layers before blobs: should it end half-way, what is left can still be unpacked again or deleted again.
        const taken = await unpacker.takeAway(chainIds, (chainId) => brought().chainIds.includes(chainId));
        let freedBytes = taken.reduce((sum, { usedBytes }) => sum + usedBytes, 0);
        const needed = new Set(brought().blobs);
        const unneeded = blobs.filter((blob) => !needed.has(blob));
        if (unneeded.length > 0) freedBytes += await jobs.removeBlobs(unneeded);
        clearTrash();
        recount();
        return { freedBytes };
      }),
  };
};

/** Resolves once what a new boot may have taken of the store is doubted. */
export const createImagesAdapter = async (options: ImagesAdapterOptions): Promise<ImagesAdapter> => {
  const { root, platform, spawner, credentials, isHere, log } = options;
  checkRoot(root);
  const limits: ImageLimits = { ...defaultImageLimits, ...options.limits };
  const layout = imageLayout(root);
  const doubted = await beginBoot(layout, options.bootId);
  if (doubted.blobs + doubted.layers > 0)
    log.warn(doubted, 'the node ended before these were on its disk: they are checked and unpacked anew');
  const trees = createTrees();
  /** Threads of their own: containers' layers are removed meanwhile, and what can wait takes as long as the disk does. */
  const unpackedTrees = createTrees();
  const patientTrees = createTrees();
  const snapshots = createSnapshots(layout, trees);
  const usage = createImageUsage(layout);
  const progress = new Subject<PullProgress>();
  const uploads = createUploads(layout.ingest, limits.reservedBytes);
  const trash: Trash = createTrash({
    directory: layout.trash,
    trees: patientTrees,
    whenIdle: (signal) => turns.whenIdle(signal),
  });
  const turns = createFetchTurns(trash.whenRoomy);

  const clearTrash = (): void => {
    trash.clear().catch((error: unknown) => log.warn({ error }, 'removed images still take room on the disk'));
  };

  const recountInBackground = (): void => {
    usage.recount().catch((error: unknown) => log.warn({ error }, 'the size of the image store could not be counted'));
  };

  const cores = availableParallelism();
  const unpackTurns = createTurns(cores);
  const homes = createHomes(layout, unpackedTrees.remove);
  const processes = createUnpackerProcesses(spawner, limits, homes);
  const unpacker = createUnpacker({
    layout,
    processes,
    turns: unpackTurns,
    arrivingMax: cores,
    trees: unpackedTrees,
    onSnapshot: recountInBackground,
  });

  const checkpointArchives = createCheckpointArchives({
    layout,
    processes,
    limits,
    turns: unpackTurns,
    trees,
    trustedKeyPaths: options.trustedKeyPaths ?? [],
  });
  const jobs = createPullJobs(
    {
      root,
      registryConfigDirs: options.registryConfigDirs,
      mirrorCredentials: options.mirrorCredentials,
      maxConcurrentDownloads: options.maxConcurrentDownloads,
      maxConcurrentDownloadsPerRegistry: options.maxConcurrentDownloadsPerRegistry,
      progress: options.progress,
      platform,
      limits,
    },
    unpacker,
    { onProgress: (made) => progress.next(made), onFetched: turns.fetched },
  );

  const syncImage = createSyncImage({ layout, turns, jobs, unpacker, trees: patientTrees });

  return {
    effects: effectsOf({
      layout,
      syncImage,
      ...{ credentials, isHere, turns },
      jobs,
      uploads,
      unpacker,
      clearTrash,
      recount: recountInBackground,
    }),
    setRegistryConfigDirs: jobs.setRegistryConfigDirs,
    snapshots,
    checkpointArchives,
    acceptUpload: uploads.accept,
    forgetUpload: uploads.forget,
    progress: progress.asObservable(),
    configOf: (imageId) => readShownConfig(layout, imageId),
    imageFsUsage: usage.current,
    listContent: async () => {
      const { blobs, chainIds } = await takeInventory(layout);
      return { blobs, chainIds };
    },
    collectUnknown: (needed, ageMs) => turns.collect(needed, (all) => collectUnknown(layout, all, ageMs)),
    checkContent: jobs.checkBlobs,
    collectLeftovers: async () => {
      await removeOld(trees, layout.unpack, 0, unpacker.active.union(checkpointArchives.active).union(homes.active));
      await trash.clear();
      await removeOld(trees, layout.ingest, LEFTOVER_AGE_MS);
      await usage.recount();
    },
    close: async () => {
      processes.close();
      await Promise.all([jobs.close(), trash.close()]);
      await Promise.all([trees.close(), unpackedTrees.close(), patientTrees.close()]);
    },
  };
};
