/**
 * Finding records by what is in them, where no seq is known and no index helps: SQLite looks at bodies, so that those which
 * nobody asked for are neither handed over nor parsed. In short transactions; knows texts and JSON, not what they mean.
 */
import { type CallOfFew, callsOfFew, type SuspectCalls, suspectCalls } from './calls.ts';
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
import { createWindowSearch, type HelpSearch, type Window, type WindowSearch } from './search-windows.ts';
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
  /** The same of many stretches, on two threads: `marked` of each. */
  readonly markedWindows: (rules: readonly MarkRule[], windows: readonly Window[]) => WindowSearch<readonly Mark[]>;
  /** Streams of objects that a stretch tells of. */
  readonly streamsIn: (fromSeq: number, toSeq: number) => string[];
  /** The records of these streams in a stretch, by the index on streams; all are marked, and in order of each stream. */
  readonly markedOf: (streams: readonly string[], fromSeq: number, toSeq: number) => Mark[];
  /** How many these are; of the index alone. */
  readonly countOfStreams: (streams: readonly string[], fromSeq: number, toSeq: number) => number;
  /** Those that are marked of all that was recorded on behalf of these calls, by the index on calls. */
  readonly markedOfCalls: (rules: readonly MarkRule[], calls: readonly number[]) => Mark[];
  /** Calls that began in a stretch and of which it tells little, or not all; by the index on calls, and what is near behind it. */
  readonly callsOfFew: (recordsMax: number, window: Window) => CallOfFew[];
  /**
   * The same of many stretches, and calls of which their own streams tell more; on two threads.
   * @param seenToSeq  they go on who recorded more behind this one; null: behind the stretch in which they began
   */
  readonly suspectWindows: (
    recordsMax: number,
    windows: readonly Window[],
    seenToSeq: number | null,
  ) => WindowSearch<SuspectCalls>;
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

const countOfStreams = (
  db: Db,
  names: NameReader,
  streams: readonly string[],
  fromSeq: number,
  toSeq: number,
): number => {
  const count = db
    .prepare<[number, number, number], number>(
      `SELECT count(*) FROM records INDEXED BY records_by_stream
         WHERE typeof(stream) = 'integer' AND stream = ? AND seq >= ? AND seq <= ?`,
    )
    .pluck();
  return streams.reduce((sum, stream) => {
    const id = names.idOf(stream);
    return sum + (id === undefined ? 0 : (count.get(id, fromSeq, toSeq) ?? 0));
  }, 0);
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
export const createSearch = (db: Db, names: NameReader, { columns, decode }: RecordRows, help: HelpSearch): Search => {
  const beginning = db
    .prepare<[string, string], string>(
      `SELECT name FROM names WHERE name >= ? AND name < ? ORDER BY name LIMIT ${streamsMax}`,
    )
    .pluck();
  const marked: Search['marked'] = (rules, fromSeq, toSeq) => marksOf(db, names, rules, fromSeq, toSeq);
  return {
    marked,
    markedWindows: (rules, windows) =>
      createWindowSearch(
        { look: { kind: 'marks', rules }, windows },
        ({ fromSeq, toSeq }) => marked(rules, fromSeq, toSeq),
        help,
      ),
    streamsIn: (fromSeq, toSeq) =>
      db
        .prepare<[number, number], number>(
          `SELECT DISTINCT stream FROM records WHERE seq >= ? AND seq <= ? AND typeof(stream) = 'integer'`,
        )
        .pluck()
        .all(fromSeq, toSeq)
        .flatMap((id) => names.nameOf(id) ?? []),
    markedOf: (streams, fromSeq, toSeq) => marksOfStreams(db, names, streams, fromSeq, toSeq),
    countOfStreams: (streams, fromSeq, toSeq) => countOfStreams(db, names, streams, fromSeq, toSeq),
    markedOfCalls: (rules, calls) => marksOfCalls(db, names, rules, calls),
    callsOfFew: (recordsMax, window) => callsOfFew(db, recordsMax, window, null),
    suspectWindows: (recordsMax, windows, seenToSeq) =>
      createWindowSearch(
        { look: { kind: 'suspectCalls', recordsMax, seenToSeq }, windows },
        (window) => suspectCalls(db, recordsMax, window, seenToSeq),
        help,
      ),
    streamsBeginning: (start) => beginning.all(start, `${start}${nameEnd}`),
    makings: (query, toSeq) => {
      const typeId = names.idOf(query.type);
      if (typeId === undefined) return [];
      return askOf((value) => makingRows(db, columns, typeId, query, toSeq, value)).map(decode);
    },
  };
};
