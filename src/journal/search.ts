/**
 * Finding records by what is in them, where no seq is known and no index helps: SQLite looks at bodies, so that those which
 * nobody asked for are neither handed over nor parsed. In short transactions; knows texts and JSON, not what they mean.
 */
import { type CallOfFew, callsOfFew, type SuspectCalls, suspectCalls } from './calls.ts';
import { type CallsAhead, findCallsAhead } from './calls-ahead.ts';
import type { Db } from './connect.ts';
import type { NameReader } from './names.ts';
import type { RawRow, RecordRows } from './raw-record.ts';
import {
  allOfSql,
  allOfValues,
  askOf,
  type BodyTests,
  type Mark,
  markOf,
  type MarkRule,
  marksOf,
  marksOfCalls,
  type RawMark,
} from './marks.ts';
import { helpSearch, type MarkedWindow, searchWindows, type Window } from './search-windows.ts';
import type { JournalRecord } from './types.ts';

/** What streams of objects tell first, the making of what they are about, or whenever it was made anew. */
export interface MakingQuery {
  /** How the names of the streams begin. */
  readonly streamsBeginning: string;
  readonly type: string;
  readonly only: 'first' | 'all';
  readonly allOf: BodyTests;
  /** Only streams that began after the first of these; absent: all. */
  readonly laterThan?: readonly string[];
}

export interface Search {
  /** Streams of objects whose name begins like this, of which there are records; the first few. */
  readonly streamsBeginning: (start: string) => string[];
  /** Up to a record, in order; by the names of streams and the index on them. */
  readonly makings: (query: MakingQuery, toSeq: number) => JournalRecord[];
  /** The records of a stretch that are marked, or pruned, in order; in one transaction. */
  readonly marked: (rules: readonly MarkRule[], fromSeq: number, toSeq: number) => Mark[];
  /** The same of many stretches, in their order, on two threads: what `marked` gives for each. */
  readonly markedWindows: (
    rules: readonly MarkRule[],
    windows: readonly Window[],
  ) => AsyncGenerator<MarkedWindow, void>;
  /** Streams of objects that a stretch tells of. */
  readonly streamsIn: (fromSeq: number, toSeq: number) => string[];
  /** The records of these streams in a stretch, by the index on streams; all are marked, and in order of each stream. */
  readonly markedOf: (streams: readonly string[], fromSeq: number, toSeq: number) => Mark[];
  /** Those that are marked of all that was recorded on behalf of these calls, by the index on calls. */
  readonly markedOfCalls: (rules: readonly MarkRule[], calls: readonly number[]) => Mark[];
  /** Calls that began in a stretch and of which it tells little, or not all; by the index on calls, and what is near behind it. */
  readonly callsOfFew: (recordsMax: number, window: Window) => CallOfFew[];
  /** The same, and those of which their own streams tell more. */
  readonly suspectCalls: (recordsMax: number, window: Window) => SuspectCalls;
  /** The same, looked for on another thread from now on, where that is worth it. */
  readonly callsAhead: (recordsMax: number, window: Window) => CallsAhead | null;
}

const streamsMax = 20;

const marksOfStreams = (
  db: Db,
  names: NameReader,
  streams: readonly string[],
  fromSeq: number,
  toSeq: number,
): Mark[] => {
  const select = db
    .prepare<[number, number, number], RawMark>(
      `SELECT seq, call, type FROM records
         WHERE typeof(stream) = 'integer' AND stream = ? AND seq >= ? AND seq <= ? AND at IS NOT NULL ORDER BY seq`,
    )
    .raw();
  return streams.flatMap((stream) => {
    const id = names.idOf(stream);
    const rows = id === undefined ? [] : select.all(id, fromSeq, toSeq);
    return rows.map((row) => markOf(names, row));
  });
};

const nameEnd = '\u{10ffff}';

const makingRows = (
  db: Db,
  columns: string,
  typeId: number,
  query: MakingQuery,
  toSeq: number,
  value: string,
): RawRow[] => {
  const { streamsBeginning: start, only, allOf, laterThan = [] } = query;
  const ofStream = `typeof(stream) = 'integer' AND stream = +n.id`;
  const place = only === 'first' ? `r.seq = (SELECT min(seq) FROM records WHERE ${ofStream})` : ofStream;
  // A name gets its id with the first record that bears it.
  const later = 'id > coalesce((SELECT min(id) FROM names WHERE name IN (SELECT value FROM json_each(?))), 0)';
  return db
    .prepare<unknown[], RawRow>(
      // By their ids, which grow: in the order of names each lookup would be on another page.
      `WITH named AS MATERIALIZED (SELECT id FROM names WHERE name >= ? AND name < ? AND ${later} ORDER BY id)
         SELECT ${columns} FROM named n CROSS JOIN records r ON ${place}
         WHERE ${['r.seq <= ? AND r.type = ?', ...allOfSql(allOf, value)].join(' AND ')} ORDER BY r.seq`,
    )
    .raw()
    .all(start, `${start}${nameEnd}`, JSON.stringify(laterThan), toSeq, typeId, ...allOfValues(allOf));
};

/** Finds records by what they are about, where no seq is known. */
export const createSearch = (db: Db, names: NameReader, { columns, decode }: RecordRows): Search => {
  const beginning = db
    .prepare<[string, string], string>(
      `SELECT name FROM names WHERE name >= ? AND name < ? ORDER BY name LIMIT ${streamsMax}`,
    )
    .pluck();
  const marked: Search['marked'] = (rules, fromSeq, toSeq) => marksOf(db, names, rules, fromSeq, toSeq);
  return {
    marked,
    markedWindows: (rules, windows) =>
      searchWindows({ rules, windows }, marked, (records) => helpSearch(db.name, records)),
    streamsIn: (fromSeq, toSeq) =>
      db
        .prepare<[number, number], number>(
          `SELECT DISTINCT stream FROM records WHERE seq >= ? AND seq <= ? AND typeof(stream) = 'integer'`,
        )
        .pluck()
        .all(fromSeq, toSeq)
        .flatMap((id) => names.nameOf(id) ?? []),
    markedOf: (streams, fromSeq, toSeq) => marksOfStreams(db, names, streams, fromSeq, toSeq),
    markedOfCalls: (rules, calls) => marksOfCalls(db, names, rules, calls),
    callsOfFew: (recordsMax, window) => callsOfFew(db, recordsMax, window),
    suspectCalls: (recordsMax, window) => suspectCalls(db, recordsMax, window),
    callsAhead: (recordsMax, window) => findCallsAhead({ path: db.name, recordsMax, ...window }),
    streamsBeginning: (start) => beginning.all(start, `${start}${nameEnd}`),
    makings: (query, toSeq) => {
      const typeId = names.idOf(query.type);
      if (typeId === undefined) return [];
      return askOf((value) => makingRows(db, columns, typeId, query, toSeq, value)).map(decode);
    },
  };
};
