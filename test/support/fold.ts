/** The state that a journal folds to, as a start and a snapshot fold it, for journals of any kind. */
import type { NodeState } from '../../src/domain/model/state.ts';
import { nodeFold } from '../../src/engine/node-fold.ts';
import type { Journal } from '../../src/journal/types.ts';

/** Folds up to and including `toSeq` (by default all), from the newest snapshot that is not past it. */
export const foldJournal = async (
  journal: Pick<Journal, 'read' | 'newestSnapshot'>,
  toSeq = Number.MAX_SAFE_INTEGER,
): Promise<NodeState> => {
  const newest = await journal.newestSnapshot(nodeFold.evolverVersion);
  const snapshot = newest !== null && newest.seq <= toSeq ? newest : null;
  const state = snapshot === null ? nodeFold.initial() : nodeFold.read(snapshot.state);
  for await (const record of journal.read({ fromSeq: (snapshot?.seq ?? 0) + 1, toSeq })) nodeFold.evolve(state, record);
  return state;
};
