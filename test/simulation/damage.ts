/** Content that a disk has lost: found by whoever checks the image store, and told once for each image that has it. */
import type { Observation } from '../../src/domain/model/observation.ts';
import type { History } from './history.ts';

const BLOB_RATE = 0.3;

/** Alters a blob, or takes a layer from the disk, whoever stands on it. */
export function damageContent(history: History, tell: (observation: Observation) => void): void {
  const { random, world, daemon } = history;
  if (random.chance(BLOB_RATE)) return alterBlob(history, tell);
  const chains = [...world.chains];
  if (daemon === null || chains.length === 0 || world.fetching.length > 0) return;
  const digest = random.pick(chains);
  world.chains.delete(digest);
  world.changing.damaged.add(digest);
  world.failures += 1;
  const damaged = { kind: 'layer', digest, problem: 'missing' } as const;
  for (const { id, content, removing } of daemon.view.state.images.values())
    if (!removing && content.layers.some(({ chainId }) => chainId === digest))
      tell({ kind: 'ContentDamaged', imageId: id, damaged });
}

/** Layers that were unpacked from it stay as they are. */
function alterBlob({ random, world, daemon }: History, tell: (observation: Observation) => void): void {
  const blobs = [...world.blobs];
  if (daemon === null || blobs.length === 0 || world.fetching.length > 0) return;
  const damaged = { kind: 'blob', digest: random.pick(blobs), problem: 'altered' } as const;
  for (const { id, content, removing } of daemon.view.state.images.values())
    if (!removing && content.blobs.includes(damaged.digest)) tell({ kind: 'ContentDamaged', imageId: id, damaged });
}
