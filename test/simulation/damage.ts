/** Content that a disk has lost: found by whoever checks the image store, and told once for each image that has it. */
import type { Observation } from '../../src/domain/model/observation.ts';
import type { History } from './history.ts';

/** Takes a layer from the disk, whoever stands on it. */
export function damageContent({ random, world, daemon }: History, tell: (observation: Observation) => void): void {
  const chains = [...world.chains];
  if (daemon === null || chains.length === 0 || world.fetching > 0) return;
  const digest = random.pick(chains);
  world.chains.delete(digest);
  world.changing.damaged.add(digest);
  world.failures += 1;
  const damaged = { kind: 'layer', digest, problem: 'missing' } as const;
  for (const { id, content, removing } of daemon.view.state.images.values())
    if (!removing && content.layers.some(({ chainId }) => chainId === digest))
      tell({ kind: 'ContentDamaged', imageId: id, damaged });
}
