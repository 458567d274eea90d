/**
 * Finding records by what is in them, where no seq is known and no index helps: SQLite looks at bodies, so that those which
 * nobody asked for are neither handed over nor parsed. In short transactions; knows texts and JSON, not what they mean.
 */
import type { Db } from './connect.ts';
import type { NameReader } from './names.ts';
import { type RawRecord, recordColumns } from './raw-record.ts';
import type { JournalRecord } from './types.ts';

/** What a body is tested for. Paths are SQLite's ($.code); a number that is not there counts as 0. */
export type BodyTest =
  | { readonly kind: 'holds'; readonly text: string }
  /** In any case of the letters of ASCII. */
  | { readonly kind: 'holdsInAnyCase'; readonly text: string }
  | { readonly kind: 'is'; readonly path: string; readonly number: number }
  | { readonly kind: 'isNotZero'; readonly path: string }
  | { readonly kind: 'isOneOf'; readonly path: string; readonly texts: readonly string[] }
  | { readonly kind: 'isNotAscii' };

type BodyTests = readonly (readonly BodyTest[])[];

/**
 * Records of these types (null: of any) that pass a test of each list are marked, all where there is no list; null: they are
 * only told of.
 */
export interface MarkRule {
  readonly types: readonly string[] | null;
  readonly allOf: BodyTests | null;
}

/** type null: pruned. */
export interface Mark {
  readonly seq: number;
  readonly call: number | null;
  readonly type: string | null;
  readonly isMarked: boolean;
}

export interface Search {
  /** Streams of objects whose name begins like this, of which there are records; the first few. */
  readonly streamsBeginning: (start: string) => string[];
  /** The newest record before `beforeSeq`, of these types, whose body holds this text: no index helps. */
  readonly newestHolding: (types: readonly string[], text: string, beforeSeq: number) => JournalRecord | null;
  /** The records of a stretch that are marked, told of, or pruned, in order; in one transaction. */
  readonly marked: (rules: readonly MarkRule[], fromSeq: number, toSeq: number) => Mark[];
  /** The records of these streams in a stretch, by the index on streams; all are marked, and in order of each stream. */
  readonly markedOf: (streams: readonly string[], fromSeq: number, toSeq: number) => Mark[];
}

const streamsMax = 20;
/** Sequence numbers that one transaction of a search looks at. */
const searchWindow = 50_000;

const testSql = (test: BodyTest): string => {
  switch (test.kind) {
    case 'holds':
      return 'instr(body, ?) > 0';
    case 'holdsInAnyCase':
      return 'instr(lower(body), lower(?)) > 0';
    case 'is':
      return 'coalesce(json_extract(body, ?), 0) = ?';
    case 'isNotZero':
      return 'coalesce(json_extract(body, ?), 0) <> 0';
    case 'isOneOf':
      return 'coalesce(json_extract(body, ?), 0) IN (SELECT value FROM json_each(?))';
    case 'isNotAscii':
      return 'length(CAST(body AS BLOB)) > length(body)';
  }
};

const testValues = (test: BodyTest): (string | number)[] => {
  switch (test.kind) {
    case 'holds':
    case 'holdsInAnyCase':
      return [test.text];
    case 'is':
      return [test.path, test.number];
    case 'isNotZero':
      return [test.path];
    case 'isOneOf':
      return [test.path, JSON.stringify(test.texts)];
    case 'isNotAscii':
      return [];
  }
};

type RawMark = readonly [seq: number, call: number | null, type: number | null, isMarked: number];

const ofTypes = (ids: readonly number[] | null): string =>
  ids === null ? 'type IS NOT NULL' : `type IN (${ids.join(', ')})`;

const ruleSql = ({ ids, allOf }: { readonly ids: readonly number[] | null; readonly allOf: BodyTests }): string =>
  `(${[ofTypes(ids), ...allOf.map((anyOf) => `(${['0', ...anyOf.map(testSql)].join(' OR ')})`)].join(' AND ')})`;

const marksOf = (db: Db, names: NameReader, rules: readonly MarkRule[], fromSeq: number, toSeq: number): Mark[] => {
  const known = rules
    .map(({ types, allOf }) => ({ ids: types?.flatMap((type) => names.idOf(type) ?? []) ?? null, allOf }))
    .filter(({ ids }) => ids === null || ids.length > 0);
  const told = known.filter(({ allOf }) => allOf === null).map(({ ids }) => ofTypes(ids));
  const marking = known.flatMap(({ ids, allOf }) => (allOf === null ? [] : [{ ids, allOf }]));
  const isMarked = ['0', ...marking.map(ruleSql)].join(' OR ');
  const values = marking.flatMap(({ allOf }) => allOf.flatMap((anyOf) => anyOf.flatMap(testValues)));
  const rows = db
    .prepare<unknown[], RawMark>(
      `SELECT seq, call, type, ${isMarked} FROM records
         WHERE seq >= ? AND seq <= ? AND (type IS NULL OR ${[...told, isMarked].join(' OR ')}) ORDER BY seq`,
    )
    .raw()
    .all(...values, fromSeq, toSeq, ...values);
  return rows.map(([seq, call, type, marked]) => ({
    seq,
    call,
    type: type === null ? null : (names.nameOf(type) ?? '?'),
    isMarked: type !== null && marked === 1,
  }));
};

const marksOfStreams = (
  db: Db,
  names: NameReader,
  streams: readonly string[],
  fromSeq: number,
  toSeq: number,
): Mark[] => {
  const select = db
    .prepare<[number, number, number], readonly [seq: number, call: number | null, type: number | null]>(
      `SELECT seq, call, type FROM records
         WHERE typeof(stream) = 'integer' AND stream = ? AND seq >= ? AND seq <= ? AND at IS NOT NULL ORDER BY seq`,
    )
    .raw();
  return streams.flatMap((stream) => {
    const id = names.idOf(stream);
    const rows = id === undefined ? [] : select.all(id, fromSeq, toSeq);
    return rows.map(([seq, call, type]) => ({
      seq,
      call,
      type: type === null ? null : (names.nameOf(type) ?? '?'),
      isMarked: true,
    }));
  });
};

/** Finds records by what they are about, where no seq is known. */
export const createSearch = (db: Db, names: NameReader, decode: (row: RawRecord) => JournalRecord): Search => {
  const beginning = db
    .prepare<[string, string], string>(
      `SELECT name FROM names WHERE name >= ? AND name < ? ORDER BY name LIMIT ${streamsMax}`,
    )
    .pluck();
  return {
    marked: (rules, fromSeq, toSeq) => marksOf(db, names, rules, fromSeq, toSeq),
    markedOf: (streams, fromSeq, toSeq) => marksOfStreams(db, names, streams, fromSeq, toSeq),
    streamsBeginning: (start) => beginning.all(start, `${start}\u{10ffff}`),
    newestHolding: (types, text, beforeSeq) => {
      const ids = types.flatMap((type) => names.idOf(type) ?? []);
      if (ids.length === 0) return null;
      const newest = db
        .prepare<unknown[], RawRecord>(
          `SELECT ${recordColumns} FROM records WHERE seq >= ? AND seq < ? AND type IN (${ids.join(', ')})
             AND instr(body, ?) > 0 ORDER BY seq DESC LIMIT 1`,
        )
        .raw();
      for (let end = beforeSeq; end > 1; end -= searchWindow) {
        const row = newest.get(end - searchWindow, end, text);
        if (row !== undefined) return decode(row);
      }
      return null;
    },
  };
};
