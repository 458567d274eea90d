/**
 * Which records a search is after, as tests of their types and bodies, and how SQLite is asked for them: so those that
 * nobody asked for are neither handed over nor parsed. Knows texts and JSON, not what they mean.
 */
import type { Db } from './connect.ts';
import type { NameReader } from './names.ts';

/** What a body is tested for. Paths are SQLite's ($.code); a number that is not there counts as 0. */
export type BodyTest =
  /** In any case of the letters of ASCII, all of it or one value. */
  | { readonly kind: 'holds'; readonly text: string; readonly path?: string }
  | { readonly kind: 'is'; readonly path: string; readonly number: number }
  | { readonly kind: 'isNotZero'; readonly path: string }
  | { readonly kind: 'isOneOf'; readonly path: string; readonly texts: readonly string[] }
  | { readonly kind: 'isNotAscii' }
  /** Not the body, but the stream: that of a single call. */
  | { readonly kind: 'isOfCall' };

export type BodyTests = readonly (readonly BodyTest[])[];

/**
 * Records of these types (null: of any, but for those of `except`) that pass a test of each list are marked, all where there
 * is no list; null: they are only told of.
 */
export interface MarkRule {
  readonly types: readonly string[] | null;
  readonly except?: readonly string[];
  readonly allOf: BodyTests | null;
}

/** type null: pruned. */
export interface Mark {
  readonly seq: number;
  readonly call: number | null;
  readonly type: string | null;
  readonly isMarked: boolean;
}

/** SQLite takes no longer patterns; what begins a text that is there is there too. */
const PATTERN_CHARS_MAX = 10_000;

const patternOf = (text: string): string => {
  const beginning = text.slice(0, PATTERN_CHARS_MAX).replace(/[\ud800-\udbff]$/, '');
  return `%${beginning.replaceAll(/[\\%_]/g, '\\$&')}%`;
};

const testSql = (test: BodyTest): string => {
  switch (test.kind) {
    case 'holds':
      // Takes half the time of instr().
      return `${test.path === undefined ? 'body' : 'json_extract(body, ?)'} LIKE ? ESCAPE '\\'`;
    case 'is':
      return 'coalesce(json_extract(body, ?), 0) = ?';
    case 'isNotZero':
      return 'coalesce(json_extract(body, ?), 0) <> 0';
    case 'isOneOf':
      return `coalesce(json_extract(body, ?), '') IN (SELECT value FROM json_each(?))`;
    case 'isNotAscii':
      return 'length(CAST(body AS BLOB)) > length(body)';
    case 'isOfCall':
      return "typeof(stream) = 'text'";
  }
};

const testValues = (test: BodyTest): (string | number)[] => {
  switch (test.kind) {
    case 'holds':
      return [...(test.path === undefined ? [] : [test.path]), patternOf(test.text)];
    case 'is':
      return [test.path, test.number];
    case 'isNotZero':
      return [test.path];
    case 'isOneOf':
      return [test.path, JSON.stringify(test.texts)];
    case 'isNotAscii':
    case 'isOfCall':
      return [];
  }
};

type RawMark = readonly [seq: number, call: number | null, type: number | null, isMarked: number];

/** A rule as SQLite is asked: types by their ids; null where none of them was ever written. */
interface RuleSql {
  readonly types: string;
  readonly allOf: BodyTests | null;
}

const ruleSqlOf = (names: NameReader, { types, except = [], allOf }: MarkRule): RuleSql | null => {
  const idsOf = (wanted: readonly string[]): number[] => wanted.flatMap((type) => names.idOf(type) ?? []);
  if (types === null) return { types: `type NOT IN (${idsOf(except).join(', ')})`, allOf };
  const ids = idsOf(types);
  return ids.length === 0 ? null : { types: `type IN (${ids.join(', ')})`, allOf };
};

export const allOfSql = (allOf: BodyTests): readonly string[] =>
  allOf.map((anyOf) => `(${['0', ...anyOf.map(testSql)].join(' OR ')})`);

export const allOfValues = (allOf: BodyTests): (string | number)[] =>
  allOf.flatMap((anyOf) => anyOf.flatMap(testValues));

interface MarkingSql {
  readonly told: readonly string[];
  readonly isMarked: string;
  readonly values: readonly (string | number)[];
}

const markingSqlOf = (names: NameReader, rules: readonly MarkRule[]): MarkingSql => {
  const known = rules.flatMap((rule) => ruleSqlOf(names, rule) ?? []);
  const marking = known.flatMap(({ types, allOf }) => (allOf === null ? [] : [{ types, allOf }]));
  return {
    told: known.filter(({ allOf }) => allOf === null).map(({ types }) => types),
    isMarked: ['0', ...marking.map(({ types, allOf }) => `(${[types, ...allOfSql(allOf)].join(' AND ')})`)].join(
      ' OR ',
    ),
    values: marking.flatMap(({ allOf }) => allOfValues(allOf)),
  };
};

const markOf = (names: NameReader, [seq, call, type, isMarked]: RawMark): Mark => ({
  seq,
  call,
  type: type === null ? null : (names.nameOf(type) ?? '?'),
  isMarked: type !== null && isMarked === 1,
});

/** What `marked` gives. */
export const marksOf = (
  db: Db,
  names: NameReader,
  rules: readonly MarkRule[],
  fromSeq: number,
  toSeq: number,
): Mark[] => {
  const { told, isMarked, values } = markingSqlOf(names, rules);
  // Where nothing is only told of, what is found is marked: bodies need not be looked at twice.
  const [marked, markedValues] = told.length === 0 ? ['type IS NOT NULL', []] : [isMarked, values];
  return db
    .prepare<unknown[], RawMark>(
      `SELECT seq, call, type, ${marked} FROM records
         WHERE seq >= ? AND seq <= ? AND (type IS NULL OR ${[...told, isMarked].join(' OR ')}) ORDER BY seq`,
    )
    .raw()
    .all(...markedValues, fromSeq, toSeq, ...values)
    .map((row) => markOf(names, row));
};

/** What `markedOfCalls` gives. */
export const marksOfCalls = (
  db: Db,
  names: NameReader,
  rules: readonly MarkRule[],
  calls: readonly number[],
): Mark[] => {
  const { isMarked, values } = markingSqlOf(names, rules);
  return db
    .prepare<unknown[], RawMark>(
      `SELECT seq, call, type, 1 FROM records INDEXED BY records_by_call
         WHERE call IN (SELECT value FROM json_each(?)) AND type IS NOT NULL AND (${isMarked})`,
    )
    .raw()
    .all(JSON.stringify(calls), ...values)
    .map((row) => markOf(names, row));
};
