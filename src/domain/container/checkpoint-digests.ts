/**
 * Which archives of checkpoints were written here. They are known by their digests, beyond the lives of the containers that
 * they are of, and only those are restored that nobody has changed since. Bounded: the newest stay.
 */
import type { NodeState } from '../model/state.ts';

/** About 70 KB of a snapshot. Of older archives a signature can say whose they are. */
export const CHECKPOINT_DIGESTS_MAX = 1_000;

export function evolveCheckpointDigests(state: NodeState, digests: readonly string[]): void {
  const others = checkpointDigests(state).filter((digest) => !digests.includes(digest));
  state.checkpointDigests = [...others, ...digests].slice(-CHECKPOINT_DIGESTS_MAX);
}

/** Oldest first. */
export const checkpointDigests = ({ checkpointDigests: known = [] }: NodeState): readonly string[] => known;
