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
  | { readonly kind: 'isNotZero'; readonly path: string };

type BodyTests = readonly (readonly BodyTest[])[];

/** Records of these types that pass a test of each list are marked, all where there is no list; null: they are only told of. */
export interface MarkRule {
  readonly types: readonly string[];
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
  }
};

type RawMark = readonly [seq: number, call: number | null, type: number | null, isMarked: number];

const ruleSql = ({ ids, allOf }: { readonly ids: readonly number[]; readonly allOf: BodyTests }): string =>
  `(${[`type IN (${ids.join(', ')})`, ...allOf.map((anyOf) => `(${anyOf.map(testSql).join(' OR ')})`)].join(' AND ')})`;

const marksOf = (db: Db, names: NameReader, rules: readonly MarkRule[], fromSeq: number, toSeq: number): Mark[] => {
  const known = rules
    .map(({ types, allOf }) => ({ ids: types.flatMap((type) => names.idOf(type) ?? []), allOf }))
    .filter(({ ids }) => ids.length > 0);
  const told = known.filter(({ allOf }) => allOf === null).map(({ ids }) => `type IN (${ids.join(', ')})`);
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

/** Finds records by what they are about, where no seq is known. */
export const createSearch = (db: Db, names: NameReader, decode: (row: RawRecord) => JournalRecord): Search => {
  const beginning = db
    .prepare<[string, string], string>(
      `SELECT name FROM names WHERE name >= ? AND name < ? ORDER BY name LIMIT ${streamsMax}`,
    )
    .pluck();
  return {
    marked: (rules, fromSeq, toSeq) => marksOf(db, names, rules, fromSeq, toSeq),
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
