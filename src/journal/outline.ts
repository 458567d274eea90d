/**
 * The outline of a journal: every record without its body, in pages, for whoever draws or counts a million of them at
 * once. Of some types a few values of the body come along, by JSON paths that the caller names: what they mean is its
 * own business. Opens for reading only, beside the daemon or without it.
 */
import { connectReader, isCorruption } from './connect.ts';
import { createHeadSeq } from './head-seq.ts';
import { isMalformed } from './marks.ts';
import { createNameReader, type NameReader } from './names.ts';
import type { SeqRange } from './types.ts';

export interface OutlineRow {
  readonly seq: number;
  /** Milliseconds since the epoch, with a fraction. */
  readonly atMs: number;
  readonly type: string;
  /** null: the stream of its call. */
  readonly stream: string | null;
  readonly call: number | null;
  /** The values at the type's paths, in their order, null for one that is not there; of other types absent. */
  readonly values: readonly unknown[] | null;
}

export interface OutlinePage {
  readonly rows: readonly OutlineRow[];
  /** What of this page SQLite cannot read, in order. */
  readonly unreadable: readonly SeqRange[];
  /** Where the next page begins. */
  readonly next: number;
}

/** Paths into the bodies of a type's records, as SQLite's json_extract takes them. */
export type OutlinePaths = Readonly<Record<string, readonly string[]>>;

export interface Outline {
  readonly headSeq: () => number;
  /** Unpruned records from `fromSeq` on, at most to `headSeq`. One short transaction. */
  readonly page: (fromSeq: number, headSeq: number) => OutlinePage;
  readonly close: () => void;
}

const PAGE_SEQS = 20_000;

type Row = readonly [
  seq: number,
  atMs: number,
  type: number,
  stream: number | string,
  call: number | null,
  values: string | null,
];

/** As marks.ts: whether every body is JSON is asked where one is known not to be. */
const valueSql = (path: string, isDoubted: boolean): string =>
  isDoubted ? `CASE WHEN json_valid(body) THEN json_extract(body, '${path}') END` : `json_extract(body, '${path}')`;

/** Which type has which values. A type that no record has yet has no id: it is asked for again. */
const valuesSql = (paths: OutlinePaths, names: NameReader, isDoubted: boolean): string => {
  const cases = Object.entries(paths).flatMap(([type, wanted]) => {
    const id = names.idOf(type);
    const values = wanted.map((path) => valueSql(path, isDoubted)).join(', ');
    return id === undefined ? [] : [`WHEN ${id} THEN json_array(${values})`];
  });
  return cases.length === 0 ? 'NULL' : `CASE type ${cases.join(' ')} END`;
};

interface Readable {
  readonly rows: readonly OutlineRow[];
  readonly unreadable: readonly SeqRange[];
}

/** What lies behind another stretch. */
const joined = (before: Readable, after: Readable): Readable => {
  const unreadable = [...before.unreadable];
  for (const [first, last] of after.unreadable) {
    const previous = unreadable.at(-1);
    if (previous?.[1] === first - 1) unreadable.splice(-1, 1, [previous[0], last]);
    else unreadable.push([first, last]);
  }
  return { rows: [...before.rows, ...after.rows], unreadable };
};

/** Where SQLite stumbles, a stretch is halved until what it stumbles over is left: records before and behind damage can be read. */
const readableIn = (
  rowsOf: (fromSeq: number, through: number) => OutlineRow[],
  fromSeq: number,
  through: number,
): Readable => {
  try {
    return { rows: rowsOf(fromSeq, through), unreadable: [] };
  } catch (thrown) {
    if (!isCorruption(thrown)) throw thrown;
    if (fromSeq === through) return { rows: [], unreadable: [[fromSeq, fromSeq]] };
    const middle = Math.floor((fromSeq + through) / 2);
    return joined(readableIn(rowsOf, fromSeq, middle), readableIn(rowsOf, middle + 1, through));
  }
};

export const openOutline = (path: string, paths: OutlinePaths): Outline => {
  const db = connectReader(path);
  const names = createNameReader(db);
  // Where all of a stretch are there, the limit keeps SQLite from looking behind it, where it may be unable to read.
  const statementOf = (values: string) =>
    db
      .prepare<[fromSeq: number, through: number, count: number], Row>(
        `SELECT seq, at / 1e6, type, stream, call, ${values} FROM records WHERE seq >= ? AND seq <= ? AND at IS NOT NULL ORDER BY seq LIMIT ?`,
      )
      .raw();
  let known = '';
  let isDoubted = false;
  let statement = statementOf('NULL');

  const rowOf = ([seq, atMs, type, stream, call, values]: Row): OutlineRow => ({
    seq,
    atMs,
    type: names.nameOf(type) ?? '?',
    stream: typeof stream === 'number' ? (names.nameOf(stream) ?? '?') : null,
    call,
    values: values === null ? null : (JSON.parse(values) as unknown[]),
  });

  const rowsOf = (fromSeq: number, through: number): Row[] => {
    const values = valuesSql(paths, names, isDoubted);
    if (values !== known) {
      known = values;
      statement = statementOf(values);
    }
    try {
      return statement.all(fromSeq, through, through - fromSeq + 1);
    } catch (thrown) {
      if (isDoubted || !isMalformed(thrown)) throw thrown;
      isDoubted = true;
      return rowsOf(fromSeq, through);
    }
  };

  return {
    headSeq: createHeadSeq(db),
    page: (fromSeq, headSeq) => {
      const through = Math.min(headSeq, fromSeq + PAGE_SEQS - 1);
      // What a name lies in may be damaged, too.
      const read = (from: number, to: number): OutlineRow[] => rowsOf(from, to).map(rowOf);
      return { ...readableIn(read, fromSeq, through), next: through + 1 };
    },
    close: () => db.close(),
  };
};
