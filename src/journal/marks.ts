/**
 * Which records a search is after, as tests of their types and bodies, and how SQLite is asked for them: so those that
 * nobody asked for are neither handed over nor parsed. Knows texts and JSON, not what they mean.
 */
import type { Db } from './connect.ts';
import type { NameReader } from './names.ts';

/** What a body is tested for. Paths are SQLite's ($.code); a number that is not there counts as 0. */
export type BodyTest =
  /** All of it or one value; in any case of the letters of ASCII, unless it is exact, which is faster. */
  | { readonly kind: 'holds'; readonly text: string; readonly path?: string; readonly isExact?: boolean }
  | { readonly kind: 'is'; readonly path: string; readonly number: number }
  | { readonly kind: 'isNotZero'; readonly path: string }
  | { readonly kind: 'isOneOf'; readonly path: string; readonly texts: readonly string[] }
  | { readonly kind: 'isNotAscii' };

export type BodyTests = readonly (readonly BodyTest[])[];

/** Records of these types (null: of any) that pass a test of each list are marked, all where there is no list. */
export interface MarkRule {
  readonly types: readonly string[] | null;
  readonly allOf: BodyTests;
}

/** type null: pruned, so that nothing is known of it. */
export interface Mark {
  readonly seq: number;
  readonly call: number | null;
  readonly type: string | null;
}

/** SQLite takes no longer patterns; what begins a text that is there is there too. */
const PATTERN_CHARS_MAX = 10_000;

const beginningOf = (text: string): string => text.slice(0, PATTERN_CHARS_MAX).replace(/[\ud800-\udbff]$/, '');
const likePattern = (text: string): string => `%${beginningOf(text).replaceAll(/[\\%_]/g, '\\$&')}%`;
const globPattern = (text: string): string => `*${beginningOf(text).replaceAll(/[*?[]/g, '[$&]')}*`;

/** As many are sooner looked for in a body than it is parsed. */
const SOUGHT_TEXTS_MAX = 4;

/** A value that is one of these stands in the body as JSON writes it. */
const soughtFirst = (texts: readonly string[]): readonly string[] =>
  texts.length > SOUGHT_TEXTS_MAX ? [] : texts.map((text) => globPattern(`${JSON.stringify(text).slice(1)}`));

/** A value in a body, or in one that may be no JSON: which that is takes as long as to look for the value. */
const VALUE = 'json_extract(body, ?)';
const DOUBTED_VALUE = `CASE WHEN json_valid(body) THEN ${VALUE} END`;

/** What SQLite says of a body that is no JSON. */
export const isMalformed = (thrown: unknown): boolean => thrown instanceof Error && thrown.message === 'malformed JSON';

/** Asks SQLite once more, and of every body whether it is JSON, where one is not as it was written: all others are found (C20). */
export const askOf = <T>(ask: (value: string) => T): T => {
  try {
    return ask(VALUE);
  } catch (thrown) {
    if (!isMalformed(thrown)) throw thrown;
    return ask(DOUBTED_VALUE);
  }
};

const testSql = (test: BodyTest, value: string): string => {
  switch (test.kind) {
    case 'holds': {
      // Takes half the time of instr().
      const holds = test.isExact === true ? 'GLOB ?' : "LIKE ? ESCAPE '\\'";
      return `${test.path === undefined ? 'body' : value} ${holds}`;
    }
    case 'is':
      return `coalesce(${value}, 0) = ?`;
    case 'isNotZero':
      return `coalesce(${value}, 0) <> 0`;
    case 'isOneOf': {
      const sought = soughtFirst(test.texts).map(() => 'body GLOB ?');
      const isOne = `coalesce(${value}, '') IN (SELECT value FROM json_each(?))`;
      return sought.length === 0 ? isOne : `(${sought.join(' OR ')}) AND ${isOne}`;
    }
    case 'isNotAscii':
      return 'length(CAST(body AS BLOB)) > length(body)';
  }
};

const testValues = (test: BodyTest): (string | number)[] => {
  switch (test.kind) {
    case 'holds':
      return [
        ...(test.path === undefined ? [] : [test.path]),
        test.isExact === true ? globPattern(test.text) : likePattern(test.text),
      ];
    case 'is':
      return [test.path, test.number];
    case 'isNotZero':
      return [test.path];
    case 'isOneOf':
      return [...soughtFirst(test.texts), test.path, JSON.stringify(test.texts)];
    case 'isNotAscii':
      return [];
  }
};

/** A row of a mark. */
export type RawMark = readonly [seq: number, call: number | null, type: number | null];

/** A rule as SQLite is asked: types by their ids; null where none of them was ever written. */
interface RuleSql {
  readonly types: string;
  readonly allOf: BodyTests;
}

const ruleSqlOf = (names: NameReader, { types, allOf }: MarkRule): RuleSql | null => {
  if (types === null) return { types: 'type IS NOT NULL', allOf };
  const ids = types.flatMap((type) => names.idOf(type) ?? []);
  return ids.length === 0 ? null : { types: `type IN (${ids.join(', ')})`, allOf };
};

/** @param value  how a value is read from a body, as `askOf` says */
export const allOfSql = (allOf: BodyTests, value: string): readonly string[] =>
  allOf.map((anyOf) => `(${['0', ...anyOf.map((test) => testSql(test, value))].join(' OR ')})`);

export const allOfValues = (allOf: BodyTests): (string | number)[] =>
  allOf.flatMap((anyOf) => anyOf.flatMap(testValues));

interface MarkingSql {
  readonly isMarked: string;
  readonly values: readonly (string | number)[];
}

const markingSqlOf = (names: NameReader, rules: readonly MarkRule[], value: string): MarkingSql => {
  const known = rules.flatMap((rule) => ruleSqlOf(names, rule) ?? []);
  const marking = known.map(({ types, allOf }) => `(${[types, ...allOfSql(allOf, value)].join(' AND ')})`);
  return { isMarked: ['0', ...marking].join(' OR '), values: known.flatMap(({ allOf }) => allOfValues(allOf)) };
};

export const markOf = (names: NameReader, [seq, call, type]: RawMark): Mark => ({
  seq,
  call,
  type: type === null ? null : (names.nameOf(type) ?? '?'),
});

/** What `marked` gives. */
export const marksOf = (
  db: Db,
  names: NameReader,
  rules: readonly MarkRule[],
  fromSeq: number,
  toSeq: number,
): Mark[] => askOf((value) => marksBy(db, names, markingSqlOf(names, rules, value), fromSeq, toSeq));

const marksBy = (db: Db, names: NameReader, { isMarked, values }: MarkingSql, fromSeq: number, toSeq: number): Mark[] =>
  db
    .prepare<unknown[], RawMark>(
      `SELECT seq, call, type FROM records
         WHERE seq >= ? AND seq <= ? AND (type IS NULL OR ${isMarked}) ORDER BY seq`,
    )
    .raw()
    .all(fromSeq, toSeq, ...values)
    .map((row) => markOf(names, row));

/** What `markedOfCalls` gives. */
export const marksOfCalls = (db: Db, names: NameReader, rules: readonly MarkRule[], calls: readonly number[]): Mark[] =>
  askOf((value) => {
    const { isMarked, values } = markingSqlOf(names, rules, value);
    return db
      .prepare<unknown[], RawMark>(
        `SELECT seq, call, type FROM records INDEXED BY records_by_call
           WHERE call IN (SELECT value FROM json_each(?)) AND type IS NOT NULL AND (${isMarked})`,
      )
      .raw()
      .all(JSON.stringify(calls), ...values)
      .map((row) => markOf(names, row));
  });
