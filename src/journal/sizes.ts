/**
 * What a journal takes, table by table and record by record, for those who ask how it grows. Reads beside its daemon or
 * without it, on the calling thread: a million records take seconds, so never on the daemon's. Knows types and streams,
 * not what they are about.
 */
import { statSync } from 'node:fs';
import { connectReader, type Db, explain, schemaVersion } from './connect.ts';
import { roomIn } from './room.ts';
import { journalFiles } from './files.ts';
import { createNameReader } from './names.ts';
import { decodeReadRows } from './read-rows.ts';

/** Where a record is and what its body takes; of the body itself only how it begins, but of types that are asked for whole. */
export interface SizedRecord {
  readonly seq: number;
  readonly atMs: number;
  readonly type: string;
  readonly stream: string;
  readonly cause: number | null;
  readonly call: number | null;
  readonly bodyBytes: number;
  readonly bodyStart: string;
}

export interface JournalSizes {
  readonly schemaVersion: number;
  /** The database as the file system has it, and the write-ahead log beside it. */
  readonly fileBytes: number;
  readonly walBytes: number;
  /** Pages that hold nothing: what is written next goes there first. */
  readonly freeBytes: number;
  readonly usedBytes: number;
  /** Records that there ever were; of those that are pruned the hash is left. */
  readonly records: number;
  readonly prunedRecords: number;
  /** Records with their indexes and the names that they share. */
  readonly recordBytes: number;
  readonly readCalls: number;
  readonly readCallBytes: number;
  readonly snapshots: number;
  readonly snapshotBytes: number;
  readonly newestSnapshotSeq: number | null;
  readonly checkpoints: number;
  readonly newestCheckpointSeq: number | null;
}

/** What is counted to records; indexes have the names of their tables in theirs. */
const RECORD_TABLES = /^(records|names|sqlite_autoindex_names)/;
const READ_TABLES = /^(read_|sqlite_autoindex_read_)/;
const SNAPSHOT_TABLES = /snapshots/;
const BODY_START_CHARS = 128;

const sumOf = (tables: readonly { readonly name: string; readonly bytes: number }[], pattern: RegExp): number =>
  tables.reduce((sum, { name, bytes }) => (pattern.test(name) ? sum + bytes : sum), 0);

interface Counted {
  readonly count: number;
  readonly newest: number | null;
}

const countOf = (db: Db, table: 'checkpoints' | 'snapshots'): Counted =>
  db.prepare<[], Counted>(`SELECT count(*) AS count, max(seq) AS newest FROM ${table}`).get() ?? {
    count: 0,
    newest: null,
  };

const readCallsIn = (db: Db): number => {
  let count = 0;
  for (const rows of db.prepare<[], Buffer>('SELECT rows FROM read_chunks').pluck().iterate())
    count += decodeReadRows(rows).length;
  return count;
};

const sizesIn = (db: Db, path: string, kept: number): JournalSizes => {
  const room = roomIn(db);
  const tables = db
    .prepare<[], { name: string; bytes: number }>('SELECT name, sum(pgsize) AS bytes FROM dbstat GROUP BY name')
    .all();
  const records = db.prepare<[], number | null>('SELECT max(seq) FROM records').pluck().get() ?? 0;
  const [snapshots, checkpoints] = [countOf(db, 'snapshots'), countOf(db, 'checkpoints')];
  return {
    schemaVersion: schemaVersion(db),
    fileBytes: statSync(path).size,
    walBytes: statSync(journalFiles(path).wal, { throwIfNoEntry: false })?.size ?? 0,
    freeBytes: room.freeBytes,
    usedBytes: room.fileBytes - room.freeBytes,
    records,
    prunedRecords: records - kept,
    recordBytes: sumOf(tables, RECORD_TABLES),
    readCalls: readCallsIn(db),
    readCallBytes: sumOf(tables, READ_TABLES),
    snapshots: snapshots.count,
    snapshotBytes: sumOf(tables, SNAPSHOT_TABLES),
    newestSnapshotSeq: snapshots.newest,
    checkpoints: checkpoints.count,
    newestCheckpointSeq: checkpoints.newest,
  };
};

type SizedRow = readonly [
  seq: number,
  atMs: number,
  type: number,
  stream: number | string,
  cause: number | null,
  call: number | null,
  bodyBytes: number,
  bodyStart: string,
];

/**
 * Calls `each` with every record that is not pruned, in order, and says what all of it takes: of one moment. Throws
 * JournalError Corrupt when SQLite can't read the file.
 *
 * @param wholeTypes  types of records of which the whole body is told
 */
export const measureJournal = (
  path: string,
  wholeTypes: readonly string[],
  each: (record: SizedRecord) => void,
): JournalSizes => {
  const db = connectReader(path);
  try {
    return db.transaction(() => {
      const names = createNameReader(db);
      const nameOf = (id: number): string => names.nameOf(id) ?? '?';
      const whole = wholeTypes.flatMap((type) => names.idOf(type) ?? []);
      const rows = db
        .prepare<[], SizedRow>(
          `SELECT seq, at / 1000000, type, stream, cause, call, octet_length(body),
               CASE WHEN type IN (${whole.join(', ')}) THEN body ELSE substr(body, 1, ${BODY_START_CHARS}) END
             FROM records WHERE at IS NOT NULL ORDER BY seq`,
        )
        .raw()
        .iterate();
      let kept = 0;
      for (const [seq, atMs, type, stream, cause, call, bodyBytes, bodyStart] of rows) {
        kept += 1;
        const streamName = typeof stream === 'number' ? nameOf(stream) : stream;
        each({ seq, atMs, type: nameOf(type), stream: streamName, cause, call, bodyBytes, bodyStart });
      }
      return sizesIn(db, path, kept);
    })();
  } catch (thrown) {
    throw explain(path, thrown);
  } finally {
    db.close();
  }
};
