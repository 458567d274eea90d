/**
 * The pulling thread's own end: takes jobs from the daemon and tells of their progress. All that is big or slow about
 * images happens here: TLS, hashing, JSON of strangers, writing blobs. It alone touches blobs and ingest, so that a
 * blob is never removed under a pull that relies on it. Ends when the daemon ends it.
 */
import { mkdir } from 'node:fs/promises';
import { parentPort, workerData } from 'node:worker_threads';
import type { ImageContent } from '../../../domain/model/image-content.ts';
import { FailureError, messageOf } from '../../../domain/model/errors.ts';
import { createBlobStore } from '../blob-store.ts';
import { sha256Of } from '../chain-ids.ts';
import { asDiskFull } from '../disk-full.ts';
import { imageLayout } from '../layout.ts';
import { createHttpClient } from '../registry/http.ts';
import { goBehind } from '../../../platform/linux/own-process.ts';
import { createPassingBytes } from '../../../platform/linux/passing-bytes.ts';
import { createSemaphore, type Semaphore } from '../../../platform/linux/semaphore.ts';
import { type ThreadIsUp, tellUp } from '../../../platform/native-thread.ts';
import { createSharedWork } from '../shared-work.ts';
import { findDamagedBlobs } from './check-blobs.ts';
import type { FromPullThread, JobMessage, PullThreadOptions, ToPullThread } from './messages.ts';
import { pullImage, type PullObserver, type PullShop } from './pull.ts';

const PROGRESS_INTERVAL_MS = 100;

const options = workerData as PullThreadOptions & ThreadIsUp;
tellUp(options);
const layout = imageLayout(options.root);
const blobs = createBlobStore(layout, options.limits.reservedBytes);
const jobs = new Map<number, AbortController>();
/** Digests that each job has named, until its layers are unpacked: it counts on their blobs. */
const namedBy = new Map<number, Set<string>>();
/** When progress of a blob was last told. */
const toldAtMs = new Map<string, number>();

const tell = (message: FromPullThread): void => parentPort?.postMessage(message);

const onDownloaded = (digest: string, bytesDone: number, bytesTotal: number): void => {
  const nowMs = performance.now();
  if (bytesDone < bytesTotal && nowMs - (toldAtMs.get(digest) ?? 0) < PROGRESS_INTERVAL_MS) return;
  if (bytesDone < bytesTotal) toldAtMs.set(digest, nowMs);
  else toldAtMs.delete(digest);
  for (const [job, digests] of namedBy) {
    if (digests.has(digest)) tell({ kind: 'progress', job, digest, bytesDone, bytesTotal });
  }
};

/** A store that remembers what a job counts on, before it looks. */
const storeOf = (job: number): PullShop['blobs'] => {
  const named = new Set<string>();
  namedBy.set(job, named);
  return {
    ...blobs,
    has: (digest) => {
      named.add(digest);
      return blobs.has(digest);
    },
    put: (bytes) => {
      named.add(sha256Of(bytes));
      return blobs.put(bytes);
    },
  };
};

const turns = new Map<string, Semaphore>();

/** Registries are few on a node; the thread ends when it has nothing to do, and they are forgotten with it. */
const turnAt = (registryHost: string): Semaphore => {
  const turn = turns.get(registryHost) ?? createSemaphore(options.maxConcurrentDownloadsPerRegistry);
  turns.set(registryHost, turn);
  return turn;
};

const shop: PullShop = {
  options,
  blobs,
  http: createHttpClient(options.progress),
  downloads: createSharedWork<void>(),
  turnAt,
  onDownloaded,
  passed: createPassingBytes(),
};

const shopOf = ({ job, registryConfigDirs }: Extract<JobMessage, { kind: 'pull' }>): PullShop => ({
  ...shop,
  options: { ...options, registryConfigDirs },
  blobs: storeOf(job),
});

const observerOf = (job: number): PullObserver => ({
  fetching: () => tell({ kind: 'fetching', job }),
  layers: (image, layers) => tell({ kind: 'layers', job, image, layers }),
  layerBegun: (image, index) => tell({ kind: 'layerBegun', job, image, index }),
  layerReady: (image, index) => tell({ kind: 'layerReady', job, image, index }),
});

const asFailure = (error: unknown): FailureError => {
  const told = asDiskFull(error);
  return told instanceof FailureError
    ? told
    : new FailureError('HostFailed', `The image store failed: ${messageOf(error)}.`);
};

/** In the turn in which it is asked for: no job finds a blob that is about to go, and none lets go of one meanwhile. */
const removeBlobs = (digests: readonly string[]): number => {
  const isNeeded = (digest: string): boolean => [...namedBy.values()].some((named) => named.has(digest));
  return digests
    .filter((digest) => !isNeeded(digest))
    .reduce((freedBytes, digest) => freedBytes + blobs.remove(digest), 0);
};

type LongJobMessage = Exclude<JobMessage, { kind: 'removeBlobs' }>;

const run = async (message: LongJobMessage, signal: AbortSignal): Promise<void> => {
  const { job } = message;
  let images: readonly ImageContent[] = [];
  let freedBytes = 0;
  let damaged: readonly string[] = [];
  switch (message.kind) {
    case 'pull':
      images = [await pullImage(shopOf(message), message, observerOf(job), signal)];
      break;
    case 'load': {
      const { loadArchive } = await import('./load.ts');
      images = await loadArchive({ ...shop, blobs: storeOf(job) }, message.path, observerOf(job), signal);
      break;
    }
    case 'restoreBlobs': {
      const store = storeOf(job);
      // One by one: each is read whole.
      for (const digest of message.digests)
        if (!(await store.has(digest)))
          await shop.downloads({ key: digest, way: 'restore' }, signal, () => store.restore(digest));
      break;
    }
    case 'checkBlobs':
      damaged = await findDamagedBlobs(layout, message.digests, message.bytesPerSecond, signal);
      freedBytes = removeBlobs(damaged);
      break;
  }
  tell({ kind: 'finished', job, images, freedBytes, damaged });
};

const remove = ({ job, digests }: Extract<JobMessage, { kind: 'removeBlobs' }>): void => {
  try {
    tell({ kind: 'finished', job, images: [], freedBytes: removeBlobs(digests), damaged: [] });
  } catch (error) {
    tell({ kind: 'failed', job, failure: asFailure(error).failure });
  }
};

const start = async (message: LongJobMessage): Promise<void> => {
  const { job } = message;
  const abort = new AbortController();
  jobs.set(job, abort);
  try {
    await mkdir(layout.ingest, { recursive: true, mode: 0o700 });
    await run(message, abort.signal);
  } catch (error) {
    // The rest of a job that failed is of no use; what it downloaded so far is.
    abort.abort(error);
    // When it was cancelled, that is what happened, however the parts of it failed.
    tell({ kind: 'failed', job, failure: asFailure(abort.signal.reason).failure });
  } finally {
    jobs.delete(job);
  }
};

goBehind();
parentPort?.on('message', (message: ToPullThread) => {
  switch (message.kind) {
    case 'cancel':
      jobs.get(message.job)?.abort(new FailureError('Cancelled', 'The pull was cancelled.'));
      break;
    case 'release':
      namedBy.delete(message.job);
      break;
    case 'removeBlobs':
      remove(message);
      break;
    case 'pull':
    case 'load':
    case 'checkBlobs':
    case 'restoreBlobs':
      void start(message);
      break;
  }
});
