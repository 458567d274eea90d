/**
 * Opening a journal: lock, migrate, check the tail, start the writer; and opening one only to read it. Damage to a
 * journal becomes a finding where reading can go on; where SQLite can't read it, it is written anew from its records, or, where those
 * are what is damaged, set aside whole, so that the daemon starts all the same (C20).
 */
import { existsSync, mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import { checkChain, type Finding } from './chain-check.ts';
import { isSigned, loadKey, loadPublicKey, readHeadFile, readNewestCheckpoint } from './checkpoints.ts';
import { connectReader, connectWriter, type Db, explain } from './connect.ts';
import { GENESIS } from './encoding.ts';
import { errorOf, JournalError } from './errors.ts';
import { giveUpReserveIfTight } from './disk-space.ts';
import { journalFiles, narrowFiles, notedDamage, refuseLink, setAside } from './files.ts';
import { takeLock } from './lock.ts';
import { keepLostHead, type LostHead, lossOf, lostHeads } from './lost-heads.ts';
import { listMigrations, type Migration, migrate, refuseNewer } from './migrate.ts';
import { createReader, impossibleKeys, type JournalReader } from './reader.ts';
import type { SoonHelp } from './search-windows.ts';
import { readSeqMark } from './seq-mark.ts';
import { type Later, laterByTimer } from './later.ts';
import { type SqliteJournal, startSqliteJournal, startWriterThread } from './sqlite-journal.ts';
import { dropStaleIndex } from './stale-index.ts';
import { finishWritingAnew, writeAnew, type WrittenAnew } from './write-anew.ts';
import type { StartWriter } from './writer-messages.ts';

export interface OpenOptions {
  /** The database; everything else of the journal is beside it. */
  readonly path: string;
  /** SQL files to migrate with; those that ship with scribe by default. */
  readonly migrationsDir?: string;
  /** Limit of the write-ahead log before the alarm; 64 MiB by default. */
  readonly walAlarmBytes?: number;
  readonly onWalAlarm?: (bytes: number | null) => void;
  /** Runs once nobody else can have the journal, before anything in it is looked at. */
  readonly onLocked?: () => void;
  /**
   * Runs on the checked journal before its writer starts: the place to fold it. When it throws Corrupt the journal is
   * set aside, and it runs again on the new one.
   */
  readonly beforeWriting?: (path: string) => void;
  /** What is given up when the disk is full, before a commit fails: the same file as createDiskGuard's. None by default. */
  readonly reservePath?: string;
  /** Where it is noted how far the journal has come (seq-mark.ts), apart from it. Nowhere by default. */
  readonly markPath?: string;
  /** A commit found the disk full, and goes on with what was reserved. */
  readonly onDiskFull?: () => void;
  /** While true, read calls are counted but not kept: see createDiskGuard. */
  readonly refuseReads?: () => boolean;
  /** The writer; in a thread of its own by default. */
  readonly startWriter?: StartWriter;
  /** What waits for the writer waits by this; by the clock by default. */
  readonly later?: Later;
}

export interface OpenedJournal {
  readonly journal: SqliteJournal;
  /** What is wrong with the journal, its key or its newest records; to be recorded and shown by `scribe doctor`. */
  readonly findings: readonly string[];
  /** The finding that its head was lost with what it ended with, now; null: it was not. */
  readonly loss: string | null;
  /** Heads that this journal did not contain when it was opened, now or earlier. */
  readonly lostHeads: readonly LostHead[];
  /** The last record that a daemon before this one had written, where this journal ends before it; else null. */
  readonly missingThrough: number | null;
  /** Where the old journal went, when it could not be read. */
  readonly setAside: { readonly path: string; readonly why: string } | null;
}

const dirMode = 0o700;
const walAlarmBytesDefault = 64 * 1024 * 1024;

/** Creates or migrates the file and closes it again; the reader is opened first so that the log survives. */
const prepare = (path: string, migrations: readonly Migration[]): Db => {
  narrowFiles(path);
  const writer = connectWriter(path);
  try {
    migrate(writer, migrations);
    return connectReader(path);
  } catch (thrown) {
    throw explain(path, thrown);
  } finally {
    writer.close();
  }
};

const sentence = ({ seq, what }: Finding): string => (seq === null ? what : `Record ${seq}: ${what}`);

/**
 * Checks what was written last: the chain from the newest checkpoint on, that checkpoint's signature, and the one
 * beside the journal. Whatever is wrong is a finding; the journal goes on from the hash it has.
 */
const checkTail = (
  db: Db,
  path: string,
): { readonly findings: string[]; readonly loss: string | null; readonly headSeq: number } => {
  const files = journalFiles(path);
  // First, so that beside a daemon that writes it can't know more than the records that are read after it.
  const beside = readHeadFile(files.head);
  const [head, newest] = db.transaction(() => [createReader(db).head(), readNewestCheckpoint(db)] as const)();
  const key = loadPublicKey(files.key);
  const start = newest !== null && newest.seq <= head.seq ? newest : null;
  const findings: string[] = [];
  if (newest !== null && start === null) {
    findings.push(`The journal was cut: it has a checkpoint at record ${newest.seq}, but ends at ${head.seq}.`);
  }
  if (newest !== null && key !== null && !isSigned(key, newest)) {
    findings.push(`The checkpoint at record ${newest.seq} is not signed by ${files.key}.`);
  }
  const loss = lossOf(db, files.head, beside, head.seq);
  if (loss !== null) findings.push(loss);
  const stretch = { fromSeq: (start?.seq ?? 0) + 1, toSeq: head.seq, previousHash: start?.hash ?? GENESIS };
  const part = checkChain(db, stretch);
  if (part.unreadable !== null) throw part.unreadable.error;
  return { findings: [...findings, ...part.findings.map(sentence)], loss, headSeq: head.seq };
};

const openWhole = (options: OpenOptions, unlock: () => void): Omit<OpenedJournal, 'setAside'> => {
  const { path, walAlarmBytes = walAlarmBytesDefault, onWalAlarm = () => {}, refuseReads = () => false } = options;
  const { reservePath = null, markPath = null, onDiskFull = () => {} } = options;
  const { startWriter = startWriterThread, later = laterByTimer } = options;
  const parts = { path, walAlarmBytes, onWalAlarm, refuseReads, reservePath, markPath, onDiskFull, startWriter, later };
  const findings: string[] = [];
  // Opening needs room of its own, for the log and its index.
  if (reservePath !== null) giveUpReserveIfTight(reservePath);
  const db = prepare(path, listMigrations(options.migrationsDir));
  try {
    const impossible = impossibleKeys(db);
    if (impossible !== null)
      throw new JournalError('Corrupt', `${impossible}, so that nothing can be appended to ${path}.`);
    const damage = notedDamage(path);
    if (damage !== null)
      throw new JournalError('Corrupt', `A commit to ${path} met what SQLite cannot read: ${damage}.`, {
        cause: new Error(damage),
      });
    loadKey(journalFiles(path).key, findings);
    const tail = checkTail(db, path);
    findings.push(...tail.findings);
    const { head, note } = journalFiles(path);
    if (tail.loss !== null) for (const file of [head, note]) keepLostHead(file);
    const marked = readSeqMark(markPath);
    // A head that is lost says it better.
    const missingThrough = marked > tail.headSeq && tail.loss === null ? marked : null;
    options.beforeWriting?.(path);
    const journal = startSqliteJournal({ ...parts, db, unlock });
    return { findings, loss: tail.loss, lostHeads: lostHeads(head), missingThrough, journal };
  } catch (thrown) {
    db.close();
    throw explain(path, thrown);
  }
};

/** null: its records are damaged themselves, or it cannot be written anew for another reason, as for want of room. */
const writtenAnew = (path: string): WrittenAnew | null => {
  try {
    return writeAnew(path);
  } catch {
    return null;
  }
};

const findingOf = ({ aside, lost }: WrittenAnew, why: unknown): string => {
  const without = lost.length === 0 ? '' : ` Not in it: ${lost.join(', ')}.`;
  return `The journal was damaged, but in none of its records: it was written anew from them, and as it was it is kept at ${aside}.${without} SQLite said: ${errorOf(why).message}.`;
};

/** Where it cannot be read: written anew from its records, or where those are damaged set aside, and begun anew. */
const openReadable = (options: OpenOptions, unlock: () => void): OpenedJournal => {
  try {
    return { ...openWhole(options, unlock), setAside: null };
  } catch (thrown) {
    if (!(thrown instanceof JournalError) || thrown.code !== 'Corrupt') throw thrown;
    const anew = writtenAnew(options.path);
    if (anew !== null) {
      const opened = openWhole(options, unlock);
      return { ...opened, findings: [findingOf(anew, thrown.cause ?? thrown), ...opened.findings], setAside: null };
    }
    const path = setAside(options.path);
    return { ...openWhole(options, unlock), setAside: { path, why: thrown.message } };
  }
};

/**
 * Opens the journal for the one process that writes it. Throws JournalError: Locked when another has it, NewerSchema
 * when a newer scribe wrote it, Unsafe when SQLite or the file system do not give what durability needs. Does all
 * its reading and writing of files on the calling thread: it is for start-up.
 */
export const openJournal = (options: OpenOptions): OpenedJournal => {
  mkdirSync(dirname(options.path), { recursive: true, mode: dirMode });
  refuseLink(options.path);
  const unlock = takeLock(journalFiles(options.path).lock, 'The journal');
  options.onLocked?.();
  try {
    finishWritingAnew(options.path);
    dropStaleIndex(options.path);
    return openReadable(options, unlock);
  } catch (thrown) {
    unlock();
    throw thrown;
  }
};

/**
 * What is wrong with the newest records of a journal, its key or the checkpoint beside it, as openJournal finds it; but
 * reads only, whether or not its daemon runs. Throws JournalError Corrupt when SQLite can't read the file.
 */
export const findingsOf = (path: string): readonly string[] => {
  const db = connectReader(path);
  try {
    return checkTail(db, path).findings;
  } catch (thrown) {
    throw explain(path, thrown);
  } finally {
    db.close();
  }
};

export interface OpenedReader extends JournalReader {
  readonly close: () => void;
}

/**
 * Opens a journal for reading only, whether or not its daemon runs. Throws when there is none or it is newer. Records that
 * are not as they were written come without their bodies (isAsWritten of raw-record.ts).
 * @param helper  for a search that comes soon; it ends with the reader
 */
export const openReader = (path: string, helper: SoonHelp | null = null): OpenedReader => {
  if (!existsSync(path)) throw new JournalError('Unsafe', `There is no journal at ${path}.`);
  let db: Db | null = null;
  const close = (): void => {
    helper?.end();
    db?.close();
  };
  try {
    db = connectReader(path);
    refuseNewer(db, listMigrations());
    return { ...createReader(db, 'checked', helper?.help), close };
  } catch (thrown) {
    close();
    throw explain(path, thrown);
  }
};
