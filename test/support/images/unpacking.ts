/** Unpacks single layers as a pull would: the real child process by the real spawner, on a blob put in place by hand. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { chainIdsOf } from '../../../src/adapters/images/chain-ids.ts';
import { blobPath, type ImageLayout, imageLayout, layerDir } from '../../../src/adapters/images/layout.ts';
import type { SnapshotInfo } from '../../../src/adapters/images/snapshot-info.ts';
import { createTrees } from '../../../src/adapters/images/trees/trees.ts';
import { defaultImageLimits, type ImageLimits } from '../../../src/adapters/images/types.ts';
import { createHomes } from '../../../src/adapters/images/unpack/home.ts';
import { createUnpackerProcesses } from '../../../src/adapters/images/unpack/processes.ts';
import { createTurns } from '../../../src/adapters/images/unpack/turns.ts';
import { createUnpacker, type Unpacker } from '../../../src/adapters/images/unpack/unpacker.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import { type Owner, onCleanup } from '../cleanup.ts';
import { tempDir } from '../temp-dir.ts';
import { sha256 } from './build.ts';

export interface Workshop {
  readonly layout: ImageLayout;
  readonly unpacker: Unpacker;
  readonly snapshots: readonly SnapshotInfo[];
  /** Unpacks layers (plain archives, or compressed ones with their plain form) of one image; their directories, base first. */
  readonly unpack: (
    ...layers: readonly (Buffer | { readonly blob: Buffer; readonly tar: Buffer })[]
  ) => Promise<readonly string[]>;
}

const never = new AbortController().signal;

/** `room`: as many layers are unpacked at a time. */
export const startWorkshop = async (owner: Owner, limits: Partial<ImageLimits> = {}, room = 2): Promise<Workshop> => {
  const root = await tempDir(owner);
  const layout = imageLayout(root);
  const spawner = await startSpawner({ lockPath: join(root, 'spawner.lock'), startTimeoutMs: 10_000 });
  onCleanup(owner, () => spawner.close());
  const trees = createTrees();
  onCleanup(owner, () => trees.close());
  const snapshots: SnapshotInfo[] = [];
  const unpacker = createUnpacker({
    layout,
    processes: createUnpackerProcesses(
      spawner,
      { ...defaultImageLimits, reservedBytes: 0, ...limits },
      createHomes(layout, trees.remove),
    ),
    turns: createTurns(room),
    arrivingMax: 2,
    trees,
    onSnapshot: (info) => snapshots.push(info),
  });
  await mkdir(layout.blobs, { recursive: true });
  return {
    layout,
    unpacker,
    snapshots,
    unpack: async (...layers) => {
      const parts = layers.map((layer) => (Buffer.isBuffer(layer) ? { blob: layer, tar: layer } : layer));
      const chainIds = chainIdsOf(parts.map(({ tar }) => sha256(tar)));
      const work = parts.map(async ({ blob, tar }, index) => {
        const digest = sha256(blob);
        await writeFile(blobPath(layout, digest), blob);
        const chainId = chainIds[index] ?? '';
        const layer = { digest, diffId: sha256(tar), chainId, sizeBytes: blob.length };
        await unpacker.unpack({ layer, below: chainIds.slice(0, index), whole: null }, never, () => undefined);
        return layerDir(layout, chainId);
      });
      await Promise.allSettled(work);
      return await Promise.all(work);
    },
  };
};
