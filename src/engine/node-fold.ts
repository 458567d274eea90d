/** How the write state is folded from the journal's rows: the one StateFold of scribe, for start-up and snapshots. */
import { EVOLVER_VERSION, evolve } from '../domain/turn/evolve.ts';
import { readState, writeState } from '../domain/turn/snapshot.ts';
import { initialState, type NodeState } from '../domain/model/state.ts';
import type { StateFold } from '../journal/types.ts';
import { fromJournalRecord } from './codec.ts';

export const nodeFold: StateFold<NodeState> = {
  evolverVersion: EVOLVER_VERSION,
  initial: initialState,
  evolve(state, record) {
    const sequenced = fromJournalRecord(record);
    if (sequenced !== null) evolve(state, sequenced);
  },
  write: writeState,
  read: readState,
};
