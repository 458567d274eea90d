/**
 * Folds a part of the journal from one snapshot to the next, out of rows that are read for something else: who verifies
 * reads all of them anyway, and parts can be folded side by side. Reads by itself only what it was not given.
 */
import type { Db } from './connect.ts';
import { createPages, unsettled } from './fold.ts';
import { createRecordRows, type RawRecord } from './raw-record.ts';
import { hashOfState } from './snapshots.ts';
import { readNewestSnapshot } from './snapshot-table.ts';
import type { JournalRecord, StateFold } from './types.ts';

export interface FoldRoute {
  /** The snapshot that it begins with; 0: with nothing. */
  readonly snapshotSeq: number;
  /** Records after which the state is told, in order; it ends with the last of them. */
  readonly stops: readonly number[];
}

/** Somebody's state after a record: SHA-256, in hex, of what is written of it. */
export interface StateAt {
  readonly seq: number;
  readonly stateHash: string;
}

type Names = ReadonlyMap<number, string>;

export interface FoldedPart {
  /** One for each stop. */
  readonly states: readonly StateAt[];
  /** The last of them, as it is written. */
  readonly state: string;
}

export interface FoldPart {
  /** Rows that follow one another; what lies between them and those before is read. */
  readonly take: (rows: readonly RawRecord[]) => void;
  /** null: it could not be folded, for which the caller looks elsewhere. */
  readonly end: () => FoldedPart | null;
}

const stateAt = (db: Db, fold: StateFold<unknown>, snapshotSeq: number): unknown => {
  if (snapshotSeq === 0) return fold.initial();
  const snapshot = readNewestSnapshot(db, fold.evolverVersion, snapshotSeq);
  if (snapshot?.seq !== snapshotSeq) throw new Error(`There is no snapshot at ${snapshotSeq}.`);
  return fold.read(snapshot.state);
};

const createPart = (db: Db, fold: StateFold<unknown>, { snapshotSeq, stops }: FoldRoute, names: Names) => {
  const state = stateAt(db, fold, snapshotSeq);
  const { decode } = createRecordRows({ nameOf: (id) => names.get(id) }, 'unchecked');
  const eachPage = createPages(db);
  const states: StateAt[] = [];
  let folded = snapshotSeq;
  let written = '';

  const evolve = (records: readonly JournalRecord[]): void => {
    for (const record of unsettled(fold, records)) fold.evolve(state, record);
  };

  /** No record may be folded together with one behind a stop: what is settled then may not be settled at the stop. */
  const goTo = (toSeq: number, foldThrough: (toSeq: number) => void): void => {
    for (;;) {
      const stop = stops[states.length];
      if (stop === undefined || folded >= toSeq) return;
      const end = Math.min(stop, toSeq);
      foldThrough(end);
      folded = end;
      if (end < stop) return;
      written = fold.write(state);
      states.push({ seq: stop, stateHash: hashOfState(written) });
    }
  };

  const readTo = (toSeq: number): void =>
    goTo(toSeq, (end) => void eachPage({ fromSeq: folded + 1, toSeq: end }, evolve));

  return {
    take: (rows: readonly RawRecord[]): void => {
      const [[firstSeq] = [folded + 1], [lastSeq] = [folded]] = [rows[0], rows.at(-1)];
      readTo(firstSeq - 1);
      goTo(lastSeq, (end) => evolve(rows.slice(folded + 1 - firstSeq, end + 1 - firstSeq).map(decode)));
    },
    end: (): FoldedPart => {
      readTo(stops.at(-1) ?? 0);
      return { states, state: written };
    },
  };
};

/**
 * A part that throws is not folded any further: the check that it comes beside goes on.
 * @param names  by their ids
 */
export const createFoldPart = (db: Db, fold: StateFold<unknown>, route: FoldRoute, names: Names): FoldPart => {
  const tried = <T>(work: () => T): T | null => {
    try {
      return work();
    } catch {
      return null;
    }
  };
  let part = tried(() => createPart(db, fold, route, names));
  return {
    take: (rows) => {
      part = tried(() => (part?.take(rows), part));
    },
    end: () => tried(() => part?.end() ?? null),
  };
};
