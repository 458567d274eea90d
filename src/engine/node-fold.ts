/** How the write state is folded from the journal's rows: the one StateFold of scribe, for start-up and snapshots. */
import { endCall } from '../domain/call/evolve.ts';
import { EVOLVER_VERSION, evolve } from '../domain/turn/evolve.ts';
import { readState, writeState } from '../domain/turn/snapshot.ts';
import { initialState, type NodeState } from '../domain/model/state.ts';
import type { FoldModule, StateFold } from '../journal/types.ts';
import { type FoldedColumns, fromJournalRecord, isReadable } from './codec.ts';
import { CALL_COMPLETED, settledIn } from './settled.ts';

export const nodeFold: StateFold<NodeState> = nodeFoldTelling(() => undefined);

/** The same for another thread. */
export const nodeFoldModule: FoldModule = {
  moduleUrl: new URL('./node-fold.ts', import.meta.url).href,
  exportName: 'nodeFold',
};

/** @param ofUnknown  hears of records that this scribe does not know: a newer one wrote them, and they change nothing here; `before` is the state then */
export function nodeFoldTelling(ofUnknown: (record: FoldedColumns, before: NodeState) => void): StateFold<NodeState> {
  return {
    evolverVersion: EVOLVER_VERSION,
    initial: initialState,
    evolve(state, record) {
      // A fifth of all records, whose answers nobody folds: to read them would take a tenth of a start's time.
      if (record.type === CALL_COMPLETED && isReadable(record)) return endCall(state, record);
      const sequenced = fromJournalRecord(record);
      if (sequenced === null) ofUnknown(record, state);
      else evolve(state, sequenced);
    },
    settledIn,
    write: writeState,
    read: readState,
  };
}
