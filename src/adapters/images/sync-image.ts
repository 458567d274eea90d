/**
 * Performs SyncImage: everything that an image needs is on the disk for good when it has ended. What a new boot has doubted
 * is hashed and unpacked anew first. In the background, and after what is being fetched: nobody waits for it.
 */
import type { ImageLayer } from '../../domain/model/image-content.ts';
import type { PerformEffects } from '../../engine/ports.ts';
import { settleAll } from '../../platform/linux/settle-all.ts';
import type { FetchTurns } from './fetch-or-collect.ts';
import type { ImageLayout } from './layout.ts';
import { lookAtContent, markOnDisk } from './on-disk.ts';
import type { PullJobs } from './pull/jobs.ts';
import type { Trees } from './trees/trees.ts';
import type { Unpacker } from './unpack/unpacker.ts';

export const createSyncImage =
  (parts: {
    readonly layout: ImageLayout;
    readonly turns: FetchTurns;
    readonly jobs: Pick<PullJobs, 'restoreBlobs'>;
    readonly unpacker: Pick<Unpacker, 'unpack'>;
    readonly trees: Pick<Trees, 'sync'>;
  }): PerformEffects['SyncImage'] =>
  async (content, { signal }) => {
    const { layout, turns, jobs, unpacker, trees } = parts;
    const { blobs, layers } = content;
    const restore = async (): Promise<void> => {
      await jobs.restoreBlobs(blobs, signal);
      const chainIds = layers.map(({ chainId }) => chainId);
      const failed = new AbortController();
      const either = AbortSignal.any([signal, failed.signal]);
      const unpack = async (layer: ImageLayer, index: number): Promise<void> => {
        try {
          await unpacker.unpack({ layer, below: chainIds.slice(0, index), whole: null }, either, () => undefined);
        } catch (error) {
          // Those above it would wait for it, and keep what they have on the disk.
          failed.abort(error);
          throw error;
        }
      };
      await settleAll(layers.map(unpack));
    };
    if ((await lookAtContent(layout, content)).isMissing) await turns.fetch(restore);
    await turns.whenIdle(signal);
    const { unmarked } = await lookAtContent(layout, content);
    if (unmarked.length === 0) return {};
    await trees.sync(layout.blobs);
    await markOnDisk(unmarked);
    // What this effect's end says must not be lost again.
    await trees.sync(layout.blobs);
    return {};
  };
