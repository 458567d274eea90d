/**
 * The disk under a history: what is durable, as somebody finds it who looks at nothing else, and journals opened on it,
 * one a life. Mostly it is memory; sqlite-disk.ts has the journal that scribe runs on.
 */
import { evolve } from '../../src/domain/turn/evolve.ts';
import { readState } from '../../src/domain/turn/snapshot.ts';
import { copyState, initialState, type NodeState } from '../../src/domain/model/state.ts';
import { createMemoryJournal, emptyContents, type MemoryContents } from '../../src/journal/memory-journal.ts';
import type { JournalRecord, KeptJournal, Snapshot } from '../../src/journal/types.ts';
import type { Durable } from './durable.ts';

/** Resolves when a batch may be made durable; rejects when that fails; never settles when it is lost. */
export type Commit = (records: readonly JournalRecord[]) => Promise<void>;

export interface Opened {
  readonly journal: KeptJournal;
  /** Folded from what is there. */
  readonly state: NodeState;
}

export interface Disk {
  readonly contents: MemoryContents;
  /** Brings `contents` up to what is durable now. */
  readonly look: () => void;
  /** Whatever an earlier life has not written by now is lost. */
  readonly open: (commit: Commit, durable: Durable) => Opened;
  /** What must be so of it when all is over. */
  readonly check: () => void;
  readonly dispose: () => void;
}

export function createMemoryDisk(): Disk {
  const contents = emptyContents();
  return {
    contents,
    look: () => undefined,
    open(commit, durable) {
      const journal = createMemoryJournal({ contents, commit });
      durable.sync();
      return { journal, state: foldContents(contents, durable) };
    },
    check: () => undefined,
    dispose: () => undefined,
  };
}

/** What a start folds: all that is durable, or the newest snapshot and what is behind it. */
function foldContents(contents: MemoryContents, { state: whole, parsed }: Durable): NodeState {
  const newest = contents.snapshots.reduce<Snapshot | null>((a, b) => (a === null || b.seq > a.seq ? b : a), null);
  if (newest === null && contents.rows.every(({ record }) => record !== null)) return copyState(whole);
  const state = newest === null ? initialState() : readState(newest.state);
  for (let seq = (newest?.seq ?? 0) + 1; seq <= contents.rows.length; seq += 1) {
    const record = parsed[seq - 1];
    if (contents.rows[seq - 1]?.record !== null && record !== null && record !== undefined) evolve(state, record);
  }
  return state;
}
