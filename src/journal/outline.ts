/**
 * The outline of a journal: every record without its body, in pages, for whoever draws or counts a million of them at
 * once. Of some types a few values of the body come along, by JSON paths that the caller names: what they mean is its
 * own business. Opens for reading only, beside the daemon or without it.
 */
import { connectReader } from './connect.ts';
import { createNameReader, type NameReader } from './names.ts';

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

/** Which type has which values. A type that no record has yet has no id: it is asked for again. */
const valuesSql = (paths: OutlinePaths, names: NameReader): string => {
  const cases = Object.entries(paths).flatMap(([type, wanted]) => {
    const id = names.idOf(type);
    const values = wanted.map((path) => `json_extract(body, '${path}')`).join(', ');
    return id === undefined ? [] : [`WHEN ${id} THEN json_array(${values})`];
  });
  return cases.length === 0 ? 'NULL' : `CASE type ${cases.join(' ')} END`;
};

export const openOutline = (path: string, paths: OutlinePaths): Outline => {
  const db = connectReader(path);
  const names = createNameReader(db);
  const head = db.prepare<[], number | null>('SELECT max(seq) FROM records').pluck();
  const statementOf = (values: string) =>
    db
      .prepare<[number, number], Row>(
        `SELECT seq, at / 1e6, type, stream, call, ${values} FROM records WHERE seq >= ? AND seq <= ? AND at IS NOT NULL ORDER BY seq`,
      )
      .raw();
  let known = '';
  let statement = statementOf('NULL');

  const rowOf = ([seq, atMs, type, stream, call, values]: Row): OutlineRow => ({
    seq,
    atMs,
    type: names.nameOf(type) ?? '?',
    stream: typeof stream === 'number' ? (names.nameOf(stream) ?? '?') : null,
    call,
    values: values === null ? null : (JSON.parse(values) as unknown[]),
  });

  return {
    headSeq: () => head.get() ?? 0,
    page: (fromSeq, headSeq) => {
      const values = valuesSql(paths, names);
      if (values !== known) {
        known = values;
        statement = statementOf(values);
      }
      const through = Math.min(headSeq, fromSeq + PAGE_SEQS - 1);
      return { rows: statement.all(fromSeq, through).map(rowOf), next: through + 1 };
    },
    close: () => db.close(),
  };
};
