/** What is under the state directory for pods and containers that no record explains. Reads only. */
import { lookForStrays, type Stray } from '../../adapters/doctor/strays.ts';
import { borrowedShimIds } from '../../domain/deciding/shared-shim.ts';
import type { NodeState } from '../../domain/model/state.ts';
import { nodeFold } from '../../engine/node-fold.ts';
import { foldState } from '../../journal/fold.ts';

export const strayWords = (stray: Stray): string =>
  stray.kind === 'shim'
    ? `shim ${stray.id}, pid ${stray.pid}, with ${stray.below.length - 1} processes below it`
    : `mount ${stray.path}`;

/**
 * Looks first and folds then: whatever the daemon makes is on the disk as an intent before it is there (C2), so that
 * nothing that it is making is taken for a stray.
 */
export const straysOf = async (stateDir: string, journalPath: string): Promise<readonly Stray[]> => {
  const found = await lookForStrays(stateDir);
  return found.length === 0 ? [] : unexplained(found, foldState(journalPath, nodeFold).state);
};

const unexplained = (found: readonly Stray[], state: NodeState): readonly Stray[] => {
  const { sandboxes, containers } = state;
  const borrowed = borrowedShimIds(state);
  return found.filter(
    ({ id }) => !sandboxes.has(id) && !containers.has(id) && !isShared(id, sandboxes) && !borrowed.has(id),
  );
};

/** A shim that pods have together is under a name of its own. */
const isShared = (id: string, sandboxes: NodeState['sandboxes']): boolean =>
  [...sandboxes.values()].some(({ sharedShimId }) => sharedShimId === id);
