/**
 * The daemon's end of the pulling thread: turns messages into promises, and has layers unpacked as they become ready.
 * A job is done when its content is in the store and every layer is unpacked; it fails when either does.
 */
import type { ImageContent, ImageLayer } from '../../../domain/model/image-content.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { createPendingReplies } from '../../../platform/rpc/pending.ts';
import { type BackgroundThread, createBackgroundThread } from '../background-thread.ts';
import type { PullProgress } from '../types.ts';
import type { Unpacker } from '../unpack/unpacker.ts';
import type { AskedPull, FromPullThread, JobMessage, PullThreadOptions, ToPullThread } from './messages.ts';

export interface PullJobs {
  readonly pull: (asked: AskedPull, signal: AbortSignal) => Promise<ImageContent>;
  /** Pulls that begin from now on look there. */
  readonly setRegistryConfigDirs: (dirs: readonly string[]) => void;
  /** `label` stands for the archive in progress reports. */
  readonly load: (path: string, label: string, signal: AbortSignal) => Promise<readonly ImageContent[]>;
  /** Blobs that a pull under way counts on are left alone. Resolves with the bytes freed. */
  readonly removeBlobs: (digests: readonly string[]) => Promise<number>;
  /** Has blobs that a new boot doubted in the store again; rejects with ImageInvalid when one of them was lost. */
  readonly restoreBlobs: (digests: readonly string[], signal: AbortSignal) => Promise<void>;
  /** Reads every blob, so many bytes a second, and removes those that are damaged. Resolves with their digests. */
  readonly checkBlobs: (bytesPerSecond: number, signal: AbortSignal) => Promise<readonly string[]>;
  readonly close: () => Promise<void>;
}

interface Finished {
  readonly images: readonly ImageContent[];
  readonly freedBytes: number;
  readonly damaged: readonly string[];
}

interface Job {
  readonly label: string;
  readonly abort: AbortController;
  /** Layers of each image, as the thread named them. */
  readonly layers: Map<string, readonly ImageLayer[]>;
  readonly unpacked: Promise<void>[];
  /** Layers that are unpacked while they are downloaded, as keyOf has them. */
  readonly begun: Set<string>;
  readonly releases: (() => void)[];
}

const newJob = (label: string): Job => ({
  label,
  abort: new AbortController(),
  layers: new Map(),
  unpacked: [],
  begun: new Set(),
  releases: [],
});

const IDLE_MS = 15_000;

const broken = (message: string): FailureError => new FailureError('HostFailed', message);

/** Which layer of a job: base first. */
interface LayerPlace {
  readonly image: string;
  readonly index: number;
}

const keyOf = ({ image, index }: LayerPlace): string => `${index} ${image}`;

const digestAt = ({ layers }: Job, { image, index }: LayerPlace): string => layers.get(image)?.[index]?.digest ?? '';

const downloadOf = (
  { label }: Job,
  { digest, bytesDone, bytesTotal }: Extract<FromPullThread, { kind: 'progress' }>,
): PullProgress => ({ reference: label, digest, phase: 'downloading', bytesDone, bytesTotal });

/** Whoever waits for the job waits for it too. `whole`: its blob is on its way, and resolves this when it is there. */
const unpackLayer = (
  job: Job,
  { image, index }: LayerPlace,
  whole: Promise<void> | null,
  unpacker: Unpacker,
  onProgress: (progress: PullProgress) => void,
): void => {
  const layers = job.layers.get(image) ?? [];
  const layer = layers[index];
  if (layer === undefined) return;
  const below = layers.slice(0, index).map(({ chainId }) => chainId);
  const tell = (phase: PullProgress['phase'], bytesDone: number): void =>
    onProgress({ reference: job.label, digest: layer.digest, phase, bytesDone, bytesTotal: layer.sizeBytes });
  const unpacking = unpacker
    .unpack({ layer, below, whole }, job.abort.signal, (bytesDone) => tell('unpacking', bytesDone))
    .then(() => tell('done', layer.sizeBytes));
  // Whichever part of a job fails first ends the others.
  unpacking.catch((error: unknown) => job.abort.abort(error));
  job.unpacked.push(unpacking);
};

/** Has layers unpacked as the thread tells of them: while they are downloaded, or once their blobs are there. */
const createLayerWork = (unpacker: Unpacker, onProgress: (progress: PullProgress) => void) => {
  /** Blobs on their way, by digest: of what any job has begun, any job may be told first that it is whole. */
  const arriving = new Map<string, PromiseWithResolvers<void>>();
  return {
    begun: (job: Job, place: LayerPlace): void => {
      const digest = digestAt(job, place);
      const whole = arriving.get(digest) ?? Promise.withResolvers<void>();
      arriving.set(digest, whole);
      job.begun.add(keyOf(place));
      unpackLayer(job, place, whole.promise, unpacker, onProgress);
    },
    ready: (job: Job, place: LayerPlace): void => {
      const digest = digestAt(job, place);
      arriving.get(digest)?.resolve();
      arriving.delete(digest);
      if (!job.begun.has(keyOf(place))) unpackLayer(job, place, null, unpacker, onProgress);
    },
    /** No job is under way. */
    forget: () => arriving.clear(),
  };
};

interface JobObserver {
  readonly onProgress: (progress: PullProgress) => void;
  /** What a reference or an upload has brought, before the job lets go of it. */
  readonly onFetched: (label: string, images: readonly ImageContent[]) => void;
}

/** Runs jobs in the thread, and has unpacked what they bring. */
const createRunner = (options: PullThreadOptions, unpacker: Unpacker, { onProgress, onFetched }: JobObserver) => {
  const jobs = new Map<number, Job>();
  const pending = createPendingReplies<Finished>();
  const layerWork = createLayerWork(unpacker, onProgress);
  let lastJob = 0;

  const take = (message: FromPullThread): void => {
    const job = jobs.get(message.job);
    if (job === undefined) return;
    switch (message.kind) {
      case 'fetching':
        return unpacker.expect();
      case 'layers':
        job.layers.set(message.image, message.layers);
        job.releases.push(unpacker.hold(message.layers));
        return;
      case 'layerBegun':
        return layerWork.begun(job, message);
      case 'layerReady':
        return layerWork.ready(job, message);
      case 'progress':
        return onProgress(downloadOf(job, message));
      case 'finished':
        return pending.resolve(message.job, message);
      case 'failed':
        return pending.reject(message.job, new FailureError(message.failure.reason, message.failure.message));
    }
  };

  const thread: BackgroundThread<ToPullThread> = createBackgroundThread<ToPullThread, FromPullThread>({
    program: new URL('./thread.ts', import.meta.url),
    data: options,
    idleMs: IDLE_MS,
    onMessage: take,
    onFailure: ({ message }) => pending.failAll(broken(`The thread that pulls images broke: ${message}.`)),
  });

  const run = async (
    label: string,
    signal: AbortSignal,
    messageOf: (job: number) => JobMessage,
    job = newJob(label),
  ): Promise<Finished> => {
    signal.throwIfAborted();
    lastJob += 1;
    const id = lastJob;
    jobs.set(id, job);
    const reply = pending.wait(id);
    const cancel = (): void => job.abort.abort(new FailureError('Cancelled', `The pull of ${label} was cancelled.`));
    signal.addEventListener('abort', cancel, { once: true });
    job.abort.signal.addEventListener('abort', () => thread.post({ kind: 'cancel', job: id }), { once: true });
    thread.post(messageOf(id));
    try {
      const finished = await reply;
      await Promise.all(job.unpacked);
      onFetched(label, finished.images);
      return finished;
    } catch (error) {
      // The unpacking processes of this job end before it does, so that nothing is written after it has failed.
      job.abort.abort(error);
      await Promise.allSettled(job.unpacked);
      throw job.abort.signal.reason;
    } finally {
      signal.removeEventListener('abort', cancel);
      jobs.delete(id);
      for (const release of job.releases) release();
      thread.post({ kind: 'release', job: id });
      if (jobs.size === 0) {
        layerWork.forget();
        thread.rest();
      }
    }
  };

  return {
    run,
    close: async () => {
      for (const job of jobs.values()) job.abort.abort(new FailureError('Interrupted', 'The daemon ends.'));
      await thread.close();
      pending.close(new FailureError('Interrupted', 'The daemon ends.'));
    },
  };
};

export const createPullJobs = (options: PullThreadOptions, unpacker: Unpacker, observer: JobObserver): PullJobs => {
  const { run, close } = createRunner(options, unpacker, observer);
  let { registryConfigDirs } = options;

  const check = async (
    signal: AbortSignal,
    digests: readonly string[] | null,
    bytesPerSecond: number,
  ): Promise<readonly string[]> =>
    (await run('check', signal, (job) => ({ kind: 'checkBlobs', job, digests, bytesPerSecond }))).damaged;

  /** A layer that was here already may have been damaged since: that is the disk's doing, and it is fetched anew. */
  const runDespiteDamage = async (
    label: string,
    signal: AbortSignal,
    messageOf: (job: number) => JobMessage,
  ): Promise<Finished> => {
    const job = newJob(label);
    try {
      return await run(label, signal, messageOf, job);
    } catch (error) {
      if (!(error instanceof FailureError) || error.failure.reason !== 'ImageInvalid') throw error;
      const digests = [...job.layers.values()].flat().map(({ digest }) => digest);
      const damaged = await check(signal, [...new Set(digests)], Infinity);
      if (damaged.length === 0) throw error;
      return await run(label, signal, messageOf);
    }
  };

  return {
    pull: async (asked, signal) => {
      const { reference } = asked;
      // Whoever unpacks it is started beside the thread: where pulls are rare neither is there, and each takes as long as a small pull.
      if (!asked.isHere) unpacker.expect();
      const messageOf = (job: number) => ({ kind: 'pull', job, ...asked, registryConfigDirs }) as const;
      const [image] = (await runDespiteDamage(reference, signal, messageOf)).images;
      if (image === undefined) throw new FailureError('Bug', `The pull of ${reference} ended without an image.`);
      return image;
    },
    setRegistryConfigDirs: (dirs) => {
      registryConfigDirs = dirs;
    },
    load: async (path, label, signal) => (await run(label, signal, (job) => ({ kind: 'load', job, path }))).images,
    removeBlobs: async (digests) =>
      (await run('removal', new AbortController().signal, (job) => ({ kind: 'removeBlobs', job, digests }))).freedBytes,
    restoreBlobs: async (digests, signal) => {
      await run('what was pulled last', signal, (job) => ({ kind: 'restoreBlobs', job, digests }));
    },
    checkBlobs: (bytesPerSecond, signal) => check(signal, null, bytesPerSecond),
    close,
  };
};
