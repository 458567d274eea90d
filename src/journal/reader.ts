/**
 * Reading a journal: short transactions, a page at a time, none of them long enough to hold up the loop or to keep
 * the write-ahead log from being checkpointed. Works on a connection of its own beside the writer, in the daemon and
 * in commands that read a journal whose daemon is up or down.
 */
import { setImmediate as otherTurns } from 'node:timers/promises';
import { type Db, isCorruption } from './connect.ts';
import { GENESIS } from './encoding.ts';
import { createHeadSeq } from './head-seq.ts';
import { createNameReader, type NameReader } from './names.ts';
import { createRecordRows, type RawRow, type Reading, streamName } from './raw-record.ts';
import { createMissing, type Missing } from './missing.ts';
import { parseReadsClosed, READS_CLOSED } from './own-records.ts';
import { decodeReadRows } from './read-rows.ts';
import { type JournalRoom, roomIn, usedBytesIn } from './room.ts';
import { createSearch, type Search } from './search.ts';
import { helpSearch } from './search-windows.ts';
import { segmentsWithChunks } from './read-table.ts';
import { type KeptSnapshot, readKeptSnapshots, readNewestSnapshot } from './snapshot-table.ts';
import { isInlineStream } from './streams.ts';
import type {
  JournalHead,
  JournalRecord,
  ReadQuery,
  ReadRow,
  ReadsQuery,
  RecordPlace,
  SealedSegment,
  Snapshot,
} from './types.ts';

const pageRecords = 256;
/** A page may look at no more than this many sequence numbers, however few of them match. */
const windowMin = 4096;
const windowMax = 1_048_576;
const windowGrowsBelowMs = 2;
const chunksPerPage = 64;

/**
 * Why a journal's keys cannot be what was written, or null. JavaScript's numbers do not hold larger ones exactly, so
 * whoever reads on past this would go round in circles; reading itself passes over such rows.
 */
export const impossibleKeys = (db: Db): string | null => {
  for (const [table, key] of [
    ['records', 'seq'],
    ['read_chunks', 'id'],
    ['names', 'id'],
    ['checkpoints', 'seq'],
  ] as const) {
    const outside = db
      .prepare<[], number>(`SELECT 1 FROM ${table} WHERE ${key} < 1 OR ${key} > ${Number.MAX_SAFE_INTEGER} LIMIT 1`)
      .pluck()
      .get();
    if (outside === 1) return `The table ${table} has a row whose ${key} cannot be`;
  }
  return null;
};

export interface RecordPage {
  readonly records: readonly JournalRecord[];
  /** Where the next page starts. */
  readonly next: number;
}

/** Rows of some chunks of read calls, and where the next chunks start; the same place when there are none yet. */
export interface ReadsPage {
  readonly rows: readonly ReadRow[];
  readonly next: number;
}

export interface RecordHashes {
  readonly bodyHash: Uint8Array;
  /** null: the record is pruned, maybe since it was read, and with it this. */
  readonly hash: Uint8Array | null;
}

export interface JournalReader extends Search, Missing {
  readonly head: () => JournalHead;
  /** That of its last record, known also where that record cannot be read; 0: there is none. */
  readonly headSeq: () => number;
  /** One page of a query from `cursor` on, in one short transaction; its limit aside. */
  readonly page: (query: ReadQuery, cursor: number, headSeq: number) => RecordPage;
  readonly read: (query?: ReadQuery) => AsyncIterable<JournalRecord>;
  readonly readReads: (query?: ReadsQuery) => AsyncIterable<ReadRow>;
  /** Read calls in the order in which they were committed, from 0 or an earlier page's `next` on. */
  readonly readsPage: (cursor: number) => ReadsPage;
  readonly newestSnapshot: (evolverVersion: number, throughSeq?: number) => Snapshot | null;
  readonly keptSnapshots: (evolverVersion: number) => KeptSnapshot[];
  readonly seqAtTime: (tNs: bigint) => number;
  readonly closedSegments: () => SealedSegment[];
  readonly placesOfStream: (stream: string) => RecordPlace[];
  /** 0: no record of it is left. */
  readonly firstSeqOfStream: (stream: string) => number;
  readonly lastSeqOfStream: (stream: string) => number;
  readonly placesOfCall: (call: number) => RecordPlace[];
  /** What the chain says of a record, pruned or not; null when there is none. */
  readonly hashesOf: (seq: number) => RecordHashes | null;
  readonly usedBytes: () => number;
  readonly room: () => JournalRoom;
  /** How many unpruned records of these types there are, from `fromSeq` to `toSeq`. Looks at every record. */
  readonly countOf: (types: readonly string[], fromSeq: number, toSeq: number) => number;
}

const holders = (count: number): string => Array.from({ length: count }, () => '?').join(', ');

interface Filter {
  readonly sql: string;
  readonly values: readonly (number | string | bigint)[];
}

const isUnfiltered = ({ types, streams, call, fromNs, toNs }: ReadQuery): boolean =>
  (types ?? streams ?? call ?? fromNs ?? toNs) === undefined;

/** null when a name that is asked for was never written: nothing can match. */
const filterOf = (query: ReadQuery, names: NameReader): Filter | null => {
  const idsOf = (texts: readonly string[]): number[] => texts.flatMap((text) => names.idOf(text) ?? []);
  const terms: string[] = ['at IS NOT NULL'];
  const values: (number | string | bigint)[] = [];
  const oneOf = (column: string, wanted: readonly (number | string)[]): void => {
    terms.push(`${column} IN (${holders(wanted.length)})`);
    values.push(...wanted);
  };
  if (query.types !== undefined) {
    const ids = idsOf(query.types);
    if (ids.length === 0) return null;
    oneOf('type', ids);
  }
  if (query.streams !== undefined) {
    const inline = query.streams.filter(isInlineStream);
    const ids = idsOf(query.streams.filter((stream) => !isInlineStream(stream)));
    if (ids.length + inline.length === 0) return null;
    // Only this form of the condition lets SQLite use the index on streams.
    if (inline.length === 0) terms.push(`typeof(stream) = 'integer'`);
    oneOf('stream', [...ids, ...inline]);
  }
  if (query.call !== undefined) {
    terms.push('call = ?');
    values.push(query.call);
  }
  if (query.fromNs !== undefined) {
    terms.push('at >= ?');
    values.push(query.fromNs);
  }
  if (query.toNs !== undefined) {
    terms.push('at <= ?');
    values.push(query.toNs);
  }
  return { sql: terms.join(' AND '), values };
};

/** Finds the last record that is not past a moment. */
const createTimeIndex = (db: Db, headSeq: () => number): JournalReader['seqAtTime'] => {
  const checkpointAt = db
    .prepare<[number], { seq: bigint; at_max: bigint }>(
      'SELECT seq, at_max FROM checkpoints WHERE seq <= ? ORDER BY seq DESC LIMIT 1',
    )
    .safeIntegers();
  /** The last checkpoint that is not past a moment: at_max grows with seq, so halving finds it. */
  const checkpointBefore = (tNs: bigint): number => {
    let [low, high] = [0, headSeq()];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      const found = checkpointAt.get(middle);
      if (found === undefined || Number(found.seq) <= low || found.at_max <= tNs) low = middle;
      else high = Number(found.seq) - 1;
    }
    const last = checkpointAt.get(low);
    return last !== undefined && last.at_max <= tNs ? Number(last.seq) : 0;
  };

  /** The first seq whose record is later than a moment. */
  const firstLater = (tNs: bigint): number | undefined =>
    db
      .prepare<[number, bigint], number>('SELECT seq FROM records WHERE seq > ? AND at > ? ORDER BY seq LIMIT 1')
      .pluck()
      .get(checkpointBefore(tNs), tNs);

  return (tNs) => {
    const later = firstLater(tNs);
    return later === undefined ? headSeq() : later - 1;
  };
};

/** Reads what was noted of read calls. */
const createReadsReader = (db: Db): Pick<JournalReader, 'readsPage' | 'readReads'> => {
  const chunksFrom = db.prepare<[number], { id: number; rows: Buffer }>(
    `SELECT id, rows FROM read_chunks WHERE id >= ? AND id <= ${Number.MAX_SAFE_INTEGER} ORDER BY id LIMIT ${chunksPerPage}`,
  );
  const readsPage = (cursor: number): ReadsPage => {
    const chunks = chunksFrom.all(cursor);
    const last = chunks.at(-1);
    return {
      rows: chunks.flatMap(({ rows }) => decodeReadRows(rows)),
      next: last === undefined ? cursor : last.id + 1,
    };
  };

  return {
    readsPage,
    readReads: async function* (query = {}) {
      let left = query.limit ?? Number.MAX_SAFE_INTEGER;
      let cursor = 0;
      for (let page = readsPage(cursor); page.next > cursor && left > 0; page = readsPage(cursor)) {
        for (const row of page.rows) {
          if (left <= 0) return;
          if (row.atNs < (query.fromNs ?? 0n) || (query.toNs !== undefined && row.atNs > query.toNs)) continue;
          left--;
          yield row;
        }
        cursor = page.next;
        await otherTurns();
      }
    },
  };
};

/** Finds records by what they are of. */
const createPlacesReader = (
  db: Db,
  names: NameReader,
): Pick<JournalReader, 'placesOfStream' | 'firstSeqOfStream' | 'lastSeqOfStream' | 'placesOfCall'> => {
  const byStream = db.prepare<[number], { seq: number; call: number | null }>(
    `SELECT seq, call FROM records WHERE typeof(stream) = 'integer' AND stream = ? ORDER BY seq`,
  );
  /** The index alone knows these. */
  const endByStream = (order: 'ASC' | 'DESC') =>
    db
      .prepare<[number], number>(
        `SELECT seq FROM records WHERE typeof(stream) = 'integer' AND stream = ? ORDER BY seq ${order} LIMIT 1`,
      )
      .pluck();
  const [firstByStream, lastByStream] = [endByStream('ASC'), endByStream('DESC')];
  const byCall = db.prepare<[number], { seq: number; stream: number | string }>(
    'SELECT seq, stream FROM records WHERE call = ? ORDER BY seq',
  );
  return {
    placesOfStream: (stream) => {
      const id = names.idOf(stream);
      return id === undefined ? [] : byStream.all(id).map(({ seq, call }) => ({ seq, stream, call }));
    },
    firstSeqOfStream: (stream) => {
      const id = names.idOf(stream);
      return id === undefined ? 0 : (firstByStream.get(id) ?? 0);
    },
    lastSeqOfStream: (stream) => {
      const id = names.idOf(stream);
      return id === undefined ? 0 : (lastByStream.get(id) ?? 0);
    },
    placesOfCall: (call) =>
      byCall.all(call).map((row) => ({ seq: row.seq, call, stream: streamName(names, row.stream) })),
  };
};

export const createReader = (db: Db, reading: Reading = 'unchecked', help = helpSearch(db.name)): JournalReader => {
  const names = createNameReader(db);
  const rows = createRecordRows(names, reading);
  const { columns, decode } = rows;
  const statements = new Map<string, ReturnType<typeof prepareRaw>>();
  const prepareRaw = (sql: string) => db.prepare<unknown[], RawRow>(sql).raw();
  const headRow = db.prepare<[], { seq: number; hash: Buffer }>(
    `SELECT seq, hash FROM records WHERE seq <= ${Number.MAX_SAFE_INTEGER} ORDER BY seq DESC LIMIT 1`,
  );
  const hashesBySeq = db.prepare<[number], RecordHashes>(
    'SELECT body_hash AS bodyHash, hash FROM records WHERE seq = ?',
  );
  // What a history is made of is looked up one by one, by the thousand; as a page, since that is what hides what a level does not show.
  const bySeq = prepareRaw(`SELECT ${columns} FROM records WHERE seq = ? AND at IS NOT NULL`);
  let window = windowMin;

  const statementOf = (filter: string): ReturnType<typeof prepareRaw> => {
    const known = statements.get(filter);
    if (known !== undefined) return known;
    if (statements.size > 32) statements.clear();
    const statement = prepareRaw(
      `SELECT ${columns} FROM records WHERE seq >= ? AND seq <= ? AND ${filter} ORDER BY seq LIMIT min(?, ${pageRecords})`,
    );
    statements.set(filter, statement);
    return statement;
  };

  /**
   * Those of a stretch that `filter` lets through, or of its beginning, as far as it can be read: SQLite looks one record further
   * than it is asked to, unless all have been found. Throws where the first cannot be read.
   */
  const readable = (filter: Filter, cursor: number, through: number): { found: JournalRecord[]; through: number } => {
    try {
      const found = statementOf(filter.sql).all(cursor, through, ...filter.values, through - cursor + 1);
      return { found: found.map(decode), through };
    } catch (thrown) {
      if (!isCorruption(thrown)) throw thrown;
      if (cursor < through) return readable(filter, cursor, cursor + Math.floor((through - cursor) / 2));
      bySeq.all(cursor).map(decode);
      return { found: [], through };
    }
  };

  const head = (): JournalHead => headRow.get() ?? { seq: 0, hash: GENESIS };

  const page = (query: ReadQuery, cursor: number, headSeq: number): RecordPage => {
    const last = Math.min(headSeq, query.toSeq ?? headSeq);
    if (cursor === last && isUnfiltered(query)) return { records: bySeq.all(cursor).map(decode), next: cursor + 1 };
    const filter = cursor > last ? null : filterOf(query, names);
    if (filter === null) return { records: [], next: last + 1 };
    const startedMs = performance.now();
    const { found, through } = readable(filter, cursor, Math.min(last, cursor + window - 1));
    const quick = performance.now() - startedMs < windowGrowsBelowMs;
    window = quick ? Math.min(window * 2, windowMax) : Math.max(windowMin, window / 2);
    const full = found.length === pageRecords;
    return { records: found, next: full ? (found.at(-1)?.seq ?? through) + 1 : through + 1 };
  };

  const headSeq = createHeadSeq(db);
  const seqAtTime = createTimeIndex(db, headSeq);

  return {
    head,
    headSeq,
    page,
    seqAtTime,
    ...createReadsReader(db),
    ...createMissing(db, names),
    ...createPlacesReader(db, names),
    ...createSearch(db, names, rows, help),
    read: async function* (query = {}) {
      const newestSeq = headSeq();
      const last = Math.min(newestSeq, query.toSeq ?? newestSeq);
      const skipped = query.fromNs === undefined ? 0 : seqAtTime(query.fromNs - 1n);
      let left = query.limit ?? Number.MAX_SAFE_INTEGER;
      for (let cursor = Math.max(1, query.fromSeq ?? 1, skipped + 1); cursor <= last && left > 0; ) {
        const { records, next } = page(query, cursor, newestSeq);
        yield* records.slice(0, left);
        left -= records.length;
        cursor = next;
        await otherTurns();
      }
    },
    newestSnapshot: (evolverVersion, throughSeq) => readNewestSnapshot(db, evolverVersion, throughSeq),
    keptSnapshots: (evolverVersion) => readKeptSnapshots(db, evolverVersion),
    closedSegments: () => {
      const closing = db.prepare<[number], { seq: number; body: string }>(
        'SELECT seq, body FROM records WHERE seq = (SELECT closed FROM read_segments WHERE segment = ?)',
      );
      return segmentsWithChunks(db).flatMap((segment) => {
        const record = closing.get(segment);
        return record === undefined ? [] : [parseReadsClosed({ ...record, type: READS_CLOSED })];
      });
    },
    hashesOf: (seq) => hashesBySeq.get(seq) ?? null,
    countOf: (types, fromSeq, toSeq) => {
      const ids = types.flatMap((type) => names.idOf(type) ?? []);
      // No more of them than there are: SQLite looks one record further otherwise, which may be damaged.
      const all = 'SELECT type FROM records WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?';
      const sql = `SELECT count(*) FROM (${all}) WHERE type IN (${holders(ids.length)})`;
      return (
        db
          .prepare<number[], number>(sql)
          .pluck()
          .get(fromSeq, toSeq, Math.max(0, toSeq - fromSeq + 1), ...ids) ?? 0
      );
    },
    usedBytes: () => usedBytesIn(db),
    room: () => roomIn(db),
  };
};
