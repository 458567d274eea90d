/**
 * Calls of a stretch that a search has to look at by themselves, since no stream of an object may tell of them: found in the
 * index on calls. Knows nothing of what they asked for.
 */
import type { Db } from './connect.ts';
import type { Window } from './search-windows.ts';

/** A call on whose behalf no more than so many records were made, itself with them, or some behind a place: then it goes on. */
export interface CallOfFew {
  readonly call: number;
  readonly goesOn: boolean;
}

export interface SuspectCalls {
  /** That began in the stretch and of which it tells little, or not all. */
  readonly few: readonly CallOfFew[];
  /** That began in it and have recorded more on their own streams than that they began and ended. */
  readonly withAsides: readonly number[];
}

/** A record costs as much to look at as so many entries of the index. */
const ENTRIES_PER_RECORD = 4;

/** Calls that began in a stretch and recorded more behind a place: found in what is less, the records there or the index. */
const callsGoingOn = (db: Db, { fromSeq, toSeq }: Window, seenToSeq: number): number[] => {
  const head = db.prepare<[], number>('SELECT coalesce(max(seq), 0) FROM records').pluck().get() ?? 0;
  const way = ENTRIES_PER_RECORD * (head - seenToSeq) < toSeq - fromSeq ? 'NOT INDEXED' : 'INDEXED BY records_by_call';
  return db
    .prepare<[number, number, number], number>(
      `SELECT DISTINCT call FROM records ${way} WHERE seq > ? AND call >= ? AND call <= ?`,
    )
    .pluck()
    .all(seenToSeq, fromSeq, toSeq);
};

const callsWithFew = (db: Db, recordsMax: number, { fromSeq, toSeq }: Window): number[] =>
  db
    .prepare<[number, number, number], number>(
      'SELECT call FROM records WHERE call >= ? AND call <= ? GROUP BY call HAVING count(*) <= ?',
    )
    .pluck()
    .all(fromSeq, toSeq, recordsMax);

const callsWithAsides = (db: Db, { fromSeq, toSeq }: Window): number[] =>
  db
    .prepare<[number, number], number>(
      // As the index has it, so that SQLite finds all in there.
      `SELECT call FROM records WHERE typeof(stream) = 'text' AND call <> seq AND call >= ? AND call <= ?
         GROUP BY call HAVING count(*) > 1`,
    )
    .pluck()
    .all(fromSeq, toSeq);

export const callsOfFew = (db: Db, recordsMax: number, window: Window, seenToSeq: number | null): CallOfFew[] => {
  const goingOn = new Set(callsGoingOn(db, window, seenToSeq ?? window.toSeq));
  const few = recordsMax === 0 ? [] : callsWithFew(db, recordsMax, window);
  return [
    ...few.filter((call) => !goingOn.has(call)).map((call) => ({ call, goesOn: false })),
    ...Array.from(goingOn, (call) => ({ call, goesOn: true })),
  ];
};

export const suspectCalls = (db: Db, recordsMax: number, window: Window, seenToSeq: number | null): SuspectCalls => ({
  few: callsOfFew(db, recordsMax, window, seenToSeq),
  withAsides: callsWithAsides(db, window),
});
