/**
 * Opens the journal's SQLite file, for writing (one connection, the writer's) or for reading. Owns the settings that
 * durability rests on and asserts them; a setting that does not hold is an error, never a warning (C8).
 */
import { statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { JournalError, errorOf } from './errors.ts';

export type Db = Database.Database;

/** What is native of SQLite is loaded by the first connection of a thread, which has this as one that may fail for nothing else. */
export const loadSqlite = (): void => void new Database(':memory:').close();

/** Older ones can corrupt a database when a WAL is reset while it is being read. */
const sqliteVersionMin = [3, 51, 3] as const;
const synchronousFull = 2;
const busyTimeoutMs = 5000;

/** Kept small: pages that matter are in the kernel's cache, and the daemon's memory is counted. */
const cacheKiB = { writer: 2048, reader: 512 } as const;

const isOlder = (version: string): boolean => {
  const parts = version.split('.').map(Number);
  for (const [index, least] of sqliteVersionMin.entries()) {
    const part = parts[index] ?? 0;
    if (part !== least) return part < least;
  }
  return false;
};

const pragma = (db: Db, source: string): unknown => db.pragma(source, { simple: true });

const demand = (db: Db, source: string, wanted: string | number): void => {
  const got = pragma(db, source);
  if (got !== wanted) {
    throw new JournalError('Unsafe', `SQLite answers ${String(got)} to "${source}" on ${db.name}, not ${wanted}.`);
  }
};

const hasCode = (thrown: unknown, codes: RegExp): boolean =>
  thrown instanceof Error && 'code' in thrown && typeof thrown.code === 'string' && codes.test(thrown.code);

/** SQLite met something in the file that it cannot have written, or what was never a database. */
export const isCorruption = (thrown: unknown): boolean => hasCode(thrown, /^SQLITE_(CORRUPT|NOTADB)/);

/** The file system has no room left. */
export const isFull = (thrown: unknown): boolean => hasCode(thrown, /^SQLITE_FULL/);

/** What SQLite says where the file system failed it. An error that comes from another thread has nothing else. */
const WORDS_OF_DISK: readonly string[] = ['disk I/O error', 'unable to open database file'];

/** Also where the file system fails even to say. */
const isThere = (path: string): boolean => {
  try {
    return statSync(path, { throwIfNoEntry: false }) !== undefined;
  } catch {
    return true;
  }
};

/** The error for a journal that its file system does not give; null: that is not what is wrong. */
export const explainDisk = (path: string, thrown: unknown): JournalError | null => {
  const { message } = errorOf(thrown);
  if (thrown instanceof JournalError || !WORDS_OF_DISK.includes(message) || !isThere(path)) return null;
  return new JournalError(
    'Unreadable',
    `The journal ${path} cannot be read, whatever is written in it: its file system does not give it (SQLite: ${message}). See what the kernel says of its disk (dmesg), and copy the journal to another one as soon as it can be read again.`,
    { cause: thrown },
  );
};

/** Why SQLite cannot make the index that it reads by, in words; null: that is not what is wrong. */
const whyPlace = (thrown: unknown): string | null => {
  if (hasCode(thrown, /^SQLITE_(READONLY|CANTOPEN)/))
    return 'on a medium or in a directory that nothing can be written to';
  return hasCode(thrown, /^SQLITE_(FULL|IOERR_SHMSIZE)/) ? 'on a disk that is full' : null;
};

/**
 * SQLite opens a file in WAL mode only where it may write an index beside it, unless another process has it open: a
 * journal on a read-only medium, in somebody else's directory or on a full disk cannot be read there.
 */
const explainPlace = (path: string, thrown: unknown): unknown => {
  const why = whyPlace(thrown);
  if (why === null) return thrown;
  return new JournalError(
    'Unwritable',
    `The journal ${path} cannot be read where it lies, ${why} (SQLite: ${errorOf(thrown).message}). Copy journal.db and the files beside it elsewhere, and name that directory with --root.`,
    { cause: thrown },
  );
};

/** The error as the journal's users know it: Corrupt for damage, Unreadable for a disk that fails, unchanged for anything else. */
export const explain = (path: string, thrown: unknown): Error => {
  const error = errorOf(thrown);
  if (!isCorruption(error)) return explainDisk(path, error) ?? error;
  return new JournalError(
    'Corrupt',
    `SQLite cannot read the journal ${path}: ${error.message}. A copy that was cut short, or made without journal.db-wal, is of no use: make it with scribe journal backup. Where it is damaged otherwise, scribe verify says from which record on, and all before that can be read: with --until, or --at.`,
    { cause: error },
  );
};

const assertVersion = (db: Db): void => {
  const version = String(db.prepare('SELECT sqlite_version()').pluck().get());
  if (isOlder(version)) {
    throw new JournalError('Unsafe', `SQLite ${version} is too old: the journal needs ${sqliteVersionMin.join('.')}.`);
  }
};

const isEmpty = (db: Db): boolean => db.prepare('SELECT count(*) FROM sqlite_schema').pluck().get() === 0;

const WHERE_JOURNALS_ARE =
  'A journal is journal.db in the root directory of its node, which --root names, or a copy by scribe journal backup.';

/** Others may call a table so, too. */
const COLUMNS_OF_SCHEMA = ['version', 'name', 'sha256'] as const;

const hasOurSchema = (db: Db): boolean => {
  const columns = db.prepare<[], string>("SELECT name FROM pragma_table_info('schema')").pluck().all();
  return COLUMNS_OF_SCHEMA.every((name) => columns.includes(name));
};

/** The schema's version: 0 for an empty file. Throws Corrupt for a database that is no journal. */
export const schemaVersion = (db: Db): number => {
  if (hasOurSchema(db)) return Number(db.prepare('SELECT max(version) FROM schema').pluck().get());
  if (isEmpty(db)) return 0;
  throw new JournalError('Corrupt', `${db.name} is a database, but no journal of scribe. ${WHERE_JOURNALS_ARE}`);
};

/** Whoever reads is told what a file is not before SQLite misses a table in it. */
const refuseForeign = (db: Db): void => {
  if (schemaVersion(db) > 0) return;
  throw new JournalError(
    'Corrupt',
    `${db.name} is no journal of scribe, or one to which nothing was ever written. ${WHERE_JOURNALS_ARE}`,
  );
};

const opened = (path: string, readonly: boolean, prepare: (db: Db) => void): Db => {
  let db: Db | null = null;
  try {
    db = new Database(path, { readonly, fileMustExist: readonly, timeout: busyTimeoutMs });
    prepare(db);
    return db;
  } catch (thrown) {
    db?.close();
    throw explain(path, thrown);
  }
};

/** Opens for writing: WAL, synchronous FULL, both read back; checkpoints are the writer's own business. */
export const connectWriter = (path: string): Db =>
  opened(path, false, (db) => {
    assertVersion(db);
    // Before anything is written: what is no journal stays as it is.
    schemaVersion(db);
    // Only a file that is new, or written anew (compact.ts), becomes one that can give pages back a few at a time.
    if (pragma(db, 'page_count') === 0) pragma(db, 'auto_vacuum = INCREMENTAL');
    demand(db, 'journal_mode = WAL', 'wal');
    pragma(db, 'synchronous = FULL');
    demand(db, 'synchronous', synchronousFull);
    pragma(db, 'wal_autocheckpoint = 0');
    pragma(db, `cache_size = -${cacheKiB.writer}`);
    pragma(db, 'trusted_schema = OFF');
    pragma(db, 'cell_size_check = ON');
  });

/** An empty database that is never on a disk: for comparing with. */
export const connectScratch = (): Db => new Database(':memory:');

const prepareReader = (db: Db): void => {
  assertVersion(db);
  pragma(db, `cache_size = -${cacheKiB.reader}`);
  pragma(db, 'query_only = ON');
  pragma(db, 'trusted_schema = OFF');
  pragma(db, 'cell_size_check = ON');
  refuseForeign(db);
};

/**
 * Opens for reading; works beside a writer in another process and when there is none. Throws JournalError: Corrupt for
 * what is no journal, Unwritable where it cannot be read for the place it lies in, Unreadable where that gives nothing.
 */
export const connectReader = (path: string): Db =>
  opened(path, true, (db) => {
    try {
      prepareReader(db);
    } catch (thrown) {
      // The file itself is open by now: what SQLite cannot open is what it needs beside it.
      throw explainPlace(path, thrown);
    }
  });
