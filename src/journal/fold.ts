/**
 * Folding from the start as fast as SQLite gives records away: for start-up, snapshots and commands that ask for a
 * past moment. Everything it reads is of one moment (a single read transaction), so it must not be used for long
 * looks at a journal that is being written; reader.ts is for those.
 */
import type { Finding } from './chain-check.ts';
import { connectReader, type Db, explain } from './connect.ts';
import { errorOf } from './errors.ts';
import { createNameReader } from './names.ts';
import { createRecordRows, isAsWritten, type RawRow, type Reading } from './raw-record.ts';
import { readNewestSnapshot } from './snapshot-table.ts';
import type { JournalRecord, StateFold } from './types.ts';

const pageRecords = 512;

export interface FoldRange {
  /** First record to fold; 1 by default. */
  readonly fromSeq?: number;
  /** Last record to fold; the newest by default. */
  readonly toSeq?: number;
  /** unchecked by default: whoever folds for somebody who reads what came of it says checked. */
  readonly reading?: Reading;
}

export interface Folded {
  /** The newest record in the range, pruned ones included; fromSeq - 1 when there is none. */
  readonly seq: number;
  readonly records: number;
}

/** Gives the records that are left in a range, in order and a page at a time, within the caller's transaction. */
export const createPages = (db: Db, reading: Reading = 'unchecked') => {
  const { columns, decode } = createRecordRows(createNameReader(db), reading);
  const page = db
    .prepare<[number, number, number], RawRow>(
      `SELECT ${columns} FROM records WHERE seq > ? AND seq <= ? AND at IS NOT NULL ORDER BY seq LIMIT min(?, ${pageRecords})`,
    )
    .raw();
  const newest = db.prepare<[number], number | null>('SELECT max(seq) FROM records WHERE seq <= ?').pluck();
  return (
    { fromSeq = 1, toSeq }: Omit<FoldRange, 'reading'>,
    each: (records: readonly JournalRecord[]) => void,
  ): Folded => {
    // No further than is asked for, since what is behind that may be damaged.
    const last = Math.max(fromSeq - 1, newest.get(toSeq ?? Number.MAX_SAFE_INTEGER) ?? 0);
    let records = 0;
    for (let after = fromSeq - 1; ; ) {
      const rows = page.all(after, last, last - after);
      each(rows.map(decode));
      records += rows.length;
      const read = rows.at(-1);
      if (read === undefined || rows.length < pageRecords) return { seq: last, records };
      after = read[0];
    }
  };
};

const atOneMoment = <T>(path: string, work: (db: Db) => T): T => {
  const db = connectReader(path);
  try {
    return db.transaction(() => work(db))();
  } catch (thrown) {
    throw explain(path, thrown);
  } finally {
    db.close();
  }
};

/**
 * Calls `each` with every unpruned record of a range, in order, on the calling thread. Throws JournalError Corrupt
 * when SQLite can't read the file; whatever `each` throws comes through.
 */
export const foldRecords = (path: string, range: FoldRange, each: (record: JournalRecord) => void): Folded =>
  atOneMoment(path, (db) => createPages(db, range.reading)(range, (records) => records.forEach(each)));

/** Those of a page that leave something behind: only where nobody looks at the state between them. */
export const unsettled = <State>(
  fold: StateFold<State>,
  records: readonly JournalRecord[],
): readonly JournalRecord[] => {
  const settled = fold.settledIn(records);
  return records.filter(({ seq }) => !settled.has(seq));
};

/** Who looks at a state that is folded from record 1 on, and where. */
export interface FoldLooks<State> {
  /** Shown after these, in order, whether or not there are records up to there. */
  readonly stops: readonly number[];
  readonly atStop: (state: State, seq: number) => void;
  /** Told now and then which record was folded. */
  readonly onProgress: (seq: number) => void;
}

/** Folds all that there is, from record 1 on whatever snapshots say. Throws what the fold throws. */
export const foldAll = <State>(
  path: string,
  fold: StateFold<State>,
  { stops, atStop, onProgress }: FoldLooks<State>,
): Pick<FoldedState<State>, 'state' | 'seq'> =>
  atOneMoment(path, (db) => {
    const state = fold.initial();
    const eachPage = createPages(db);
    const evolve = (records: readonly JournalRecord[]): void => {
      for (const record of unsettled(fold, records)) fold.evolve(state, record);
      const last = records.at(-1);
      if (last !== undefined) onProgress(last.seq);
    };
    let fromSeq = 1;
    for (const stop of stops) {
      fromSeq = eachPage({ fromSeq, toSeq: stop }, evolve).seq + 1;
      atStop(state, stop);
    }
    const { seq } = eachPage({ fromSeq }, evolve);
    return { state, seq };
  });

export interface FoldedState<State> {
  readonly state: State;
  /** The record up to which was folded. */
  readonly seq: number;
  /** seq of the snapshot it began with; 0 without one. */
  readonly snapshotSeq: number;
  /** Records that could not be folded and were passed over (C20): to be shown, and looked into with verify. */
  readonly bad: readonly Finding[];
}

/** More are as good as all. */
const badMax = 100;

/** Folds a state from the newest snapshot that serves and the records after it, up to `toSeq`. */
export const foldState = <State>(
  path: string,
  fold: StateFold<State>,
  toSeq?: number,
  reading: Reading = 'unchecked',
): FoldedState<State> =>
  atOneMoment(path, (db) => {
    const snapshot = readNewestSnapshot(db, fold.evolverVersion, toSeq);
    const state = snapshot === null ? fold.initial() : fold.read(snapshot.state);
    const range = { fromSeq: (snapshot?.seq ?? 0) + 1, ...(toSeq === undefined ? {} : { toSeq }) };
    const bad: Finding[] = [];
    const passOver = (seq: number, why: string): void => {
      if (bad.length < badMax) bad.push({ seq, what: `it cannot be folded: ${why}.` });
    };
    const evolve = (record: JournalRecord): void => {
      try {
        fold.evolve(state, record);
      } catch (thrown) {
        passOver(record.seq, errorOf(thrown).message);
      }
    };
    const { seq } = createPages(db, reading)(range, (records) => {
      // What is not folded settles nothing either.
      const settled = fold.settledIn(records.filter(isAsWritten));
      for (const record of records) {
        if (!isAsWritten(record)) passOver(record.seq, 'it is not as it was written');
        else if (!settled.has(record.seq)) evolve(record);
      }
    });
    return { state, seq, snapshotSeq: snapshot?.seq ?? 0, bad };
  });
