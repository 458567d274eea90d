/**
 * The daemon's end of the pulling thread: turns messages into promises, and has layers unpacked as they become ready.
 * A job is done when its content is in the store and every layer is unpacked; it fails when either does.
 */
import type { ImageContent, ImageLayer } from '../../../domain/model/image-content.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { createPendingReplies } from '../../../platform/rpc/pending.ts';
import { type BackgroundThread, createBackgroundThread } from '../background-thread.ts';
import type { PullProgress, RegistryCredentials } from '../types.ts';
import type { Unpacker } from '../unpack/unpacker.ts';
import type { FromPullThread, JobMessage, PullThreadOptions, ToPullThread } from './messages.ts';

export interface PullJobs {
  readonly pull: (
    reference: string,
    credentials: RegistryCredentials | null,
    signal: AbortSignal,
  ) => Promise<ImageContent>;
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
  readonly releases: (() => void)[];
}

const newJob = (label: string): Job => ({
  label,
  abort: new AbortController(),
  layers: new Map(),
  unpacked: [],
  releases: [],
});

const IDLE_MS = 15_000;

const broken = (message: string): FailureError => new FailureError('HostFailed', message);

/** Once it is there; whoever waits for the job waits for it too. */
const unpackLayer = (
  job: Job,
  { image, index }: { readonly image: string; readonly index: number },
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
    .unpack(layer, below, job.abort.signal, (bytesDone) => tell('unpacking', bytesDone))
    .then(() => tell('done', layer.sizeBytes));
  // Whichever part of a job fails first ends the others.
  unpacking.catch((error: unknown) => job.abort.abort(error));
  job.unpacked.push(unpacking);
};

export const createPullJobs = (
  options: PullThreadOptions,
  unpacker: Unpacker,
  onProgress: (progress: PullProgress) => void,
): PullJobs => {
  const jobs = new Map<number, Job>();
  const pending = createPendingReplies<Finished>();
  let lastJob = 0;
  let { registryConfigDirs } = options;

  const take = (message: FromPullThread): void => {
    const job = jobs.get(message.job);
    if (job === undefined) return;
    switch (message.kind) {
      case 'layers':
        job.layers.set(message.image, message.layers);
        job.releases.push(unpacker.hold(message.layers.map(({ chainId }) => chainId)));
        return;
      case 'layerReady':
        return unpackLayer(job, message, unpacker, onProgress);
      case 'progress': {
        const { digest, bytesDone, bytesTotal } = message;
        return onProgress({ reference: job.label, digest, phase: 'downloading', bytesDone, bytesTotal });
      }
      case 'finished':
        return pending.resolve(message.job, message);
      case 'failed':
        return pending.reject(message.job, new FailureError(message.failure.reason, message.failure.message));
    }
  };

  const breakAll = (error: Error): void =>
    pending.failAll(broken(`The thread that pulls images broke: ${error.message}.`));

  const thread: BackgroundThread<ToPullThread> = createBackgroundThread<ToPullThread, FromPullThread>({
    program: new URL('./thread.ts', import.meta.url),
    data: options,
    idleMs: IDLE_MS,
    onMessage: take,
    onFailure: breakAll,
  });

  const run = async (label: string, signal: AbortSignal, messageOf: (job: number) => JobMessage): Promise<Finished> => {
    signal.throwIfAborted();
    lastJob += 1;
    const id = lastJob;
    const job = newJob(label);
    jobs.set(id, job);
    const reply = pending.wait(id);
    const cancel = (): void => job.abort.abort(new FailureError('Cancelled', `The pull of ${label} was cancelled.`));
    signal.addEventListener('abort', cancel, { once: true });
    job.abort.signal.addEventListener('abort', () => thread.post({ kind: 'cancel', job: id }), { once: true });
    thread.post(messageOf(id));
    try {
      const finished = await reply;
      await Promise.all(job.unpacked);
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
      if (jobs.size === 0) thread.rest();
    }
  };

  return {
    pull: async (reference, credentials, signal) => {
      const { images } = await run(reference, signal, (job) => ({
        kind: 'pull',
        job,
        reference,
        credentials,
        registryConfigDirs,
      }));
      const [image] = images;
      if (image === undefined) throw new FailureError('Bug', `The pull of ${reference} ended without an image.`);
      return image;
    },
    setRegistryConfigDirs: (dirs) => {
      registryConfigDirs = dirs;
    },
    load: async (path, label, signal) => (await run(label, signal, (job) => ({ kind: 'load', job, path }))).images,
    removeBlobs: async (digests) => {
      const { signal } = new AbortController();
      return (await run('removal', signal, (job) => ({ kind: 'removeBlobs', job, digests }))).freedBytes;
    },
    restoreBlobs: async (digests, signal) => {
      await run('what was pulled last', signal, (job) => ({ kind: 'restoreBlobs', job, digests }));
    },
    checkBlobs: async (bytesPerSecond, signal) =>
      (await run('check', signal, (job) => ({ kind: 'checkBlobs', job, bytesPerSecond }))).damaged,
    close: async () => {
      for (const job of jobs.values()) job.abort.abort(new FailureError('Interrupted', 'The daemon ends.'));
      await thread.close();
      pending.close(new FailureError('Interrupted', 'The daemon ends.'));
    },
  };
};
