/** An images adapter on a directory of its own, with the real spawner, and short words for what tests ask of it. */
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import {
  createImagesAdapter,
  type ImagesAdapter,
  type ImagesAdapterOptions,
} from '../../../src/adapters/images/adapter.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { RunRequest, Spawner } from '../../../src/platform/spawner/types.ts';
import type { ImageContent } from '../../../src/domain/model/image-content.ts';
import { type Failure, FailureError } from '../../../src/domain/model/errors.ts';
import type { EffectContext } from '../../../src/engine/ports.ts';
import { type Owner, onCleanup } from '../cleanup.ts';
import { tempDir } from '../temp-dir.ts';
import { platform } from './build.ts';

export interface TestStore {
  readonly root: string;
  readonly adapter: ImagesAdapter;
  /** Programs the adapter had run, but those that wait for something to do. */
  readonly runs: readonly RunRequest[];
  readonly pull: (reference: string, credentials?: string, signal?: AbortSignal) => Promise<ImageContent>;
  /** How a pull failed; rejects if it did not. */
  readonly failedPull: (reference: string, credentials?: string) => Promise<Failure>;
  /** Ends it before its owner does, as a daemon that stops. */
  readonly stop: () => Promise<void>;
  readonly layerDirs: (image: ImageContent) => readonly string[];
}

export const contextOf = (signal = new AbortController().signal): EffectContext => ({
  signal,
  attach: () => undefined,
});

/** How it failed; rejects if it did not, or with something that is no FailureError. */
export const failureOf = async (work: Promise<unknown>): Promise<Failure> => {
  let outcome: unknown;
  try {
    outcome = await work;
  } catch (error) {
    if (error instanceof FailureError) return error.failure;
    throw error;
  }
  throw new Error(`It did not fail but gave ${JSON.stringify(outcome)}`);
};

const recording = (spawner: Spawner, runs: RunRequest[]): Spawner => ({
  ...spawner,
  run: (request) => {
    const { told } = request;
    if (told === undefined) {
      runs.push(request);
      return spawner.run(request);
    }
    const recorded: RunRequest['told'] = (tell) =>
      told((what) => {
        runs.push(request);
        tell(what);
      });
    return spawner.run({ ...request, told: recorded });
  },
});

export const startStore = async (owner: Owner, options: Partial<ImagesAdapterOptions> = {}): Promise<TestStore> => {
  const root = options.root ?? join(await tempDir(owner), 'root');
  await mkdir(root, { recursive: true });
  const spawner = await startSpawner({ lockPath: join(root, 'spawner.lock'), startTimeoutMs: 10_000 });
  const runs: RunRequest[] = [];
  const adapter = await createImagesAdapter({
    root,
    registryConfigDirs: [],
    mirrorCredentials: true,
    maxConcurrentDownloads: 3,
    maxConcurrentDownloadsPerRegistry: 12,
    progress: { timeoutMs: 10_000, bytesMin: 0 },
    platform,
    bootId: 'boot',
    credentials: () => null,
    isHere: () => false,
    log: { warn: () => undefined },
    ...options,
    spawner: recording(spawner, runs),
    limits: { retryDelayMs: 10, reservedBytes: 0, ...options.limits },
  });
  const stop = async (): Promise<void> => {
    await adapter.close();
    await spawner.close();
  };
  onCleanup(owner, stop);
  const pull: TestStore['pull'] = async (reference, credentials, signal) => {
    const effect = { kind: 'PullImage', reference, credentials: credentials ?? null } as const;
    return (await adapter.effects.PullImage(effect, contextOf(signal))).image;
  };
  return {
    root,
    adapter,
    runs,
    pull,
    stop,
    failedPull: (reference, credentials) => failureOf(pull(reference, credentials)),
    layerDirs: (image) => adapter.snapshots.layerDirs(image.layers.map(({ chainId }) => chainId)),
  };
};
