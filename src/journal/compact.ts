/**
 * Giving all pages that hold nothing back to the file system at once: SQLite writes the whole database anew, during which
 * nothing can be committed, so only while no daemon has the journal, under its lock. What is in it stays as it is. From
 * then on the file can give pages back while the daemon writes, too (room.ts).
 */
import { statSync } from 'node:fs';
import { dirname } from 'node:path';
import { connectReader, connectWriter, explain, isCorruption } from './connect.ts';
import { journalFiles, refuseLink } from './files.ts';
import { takeLock } from './lock.ts';
import { listMigrations, refuseNewer } from './migrate.ts';
import { refuseWithoutRoom, roomIn, usedBytesIn } from './room.ts';
import { type WrittenAnew, writeAnew } from './write-anew.ts';

export interface Compacted {
  readonly beforeBytes: number;
  readonly afterBytes: number;
  /** null: SQLite could read all of it. */
  readonly anew: WrittenAnew | null;
}

const sizeOf = (path: string): number => statSync(path).size;

const vacuumed = (path: string): Compacted => {
  const db = connectWriter(path);
  try {
    refuseNewer(db, listMigrations());
    // The database is copied into a temporary file, and from there, by way of its write-ahead log, over itself: twice what is in use.
    refuseWithoutRoom(`Compacting ${path}`, dirname(path), 2 * usedBytesIn(db));
    db.pragma('wal_checkpoint(TRUNCATE)');
    const beforeBytes = sizeOf(path);
    // In the form in which the daemon can give pages back; setting it again where it is set would write.
    if (!roomIn(db).givesBack) db.pragma('auto_vacuum = INCREMENTAL');
    db.exec('VACUUM');
    db.pragma('wal_checkpoint(TRUNCATE)');
    return { beforeBytes, afterBytes: sizeOf(path), anew: null };
  } finally {
    db.close();
  }
};

/**
 * Where SQLite cannot read what is beside the records, the journal is written anew from them. Throws JournalError: Locked while a
 * daemon has the journal, Unsafe where there is no room, NewerSchema, Corrupt where records cannot be read.
 */
export const compactJournal = (path: string): Compacted => {
  // What is no journal stays as it is, without a lock beside it.
  connectReader(path).close();
  refuseLink(path);
  const unlock = takeLock(journalFiles(path).lock, 'The journal');
  try {
    return vacuumed(path);
  } catch (thrown) {
    if (!isCorruption(thrown)) throw explain(path, thrown);
    const beforeBytes = sizeOf(path);
    const anew = writeAnew(path);
    return { beforeBytes, afterBytes: sizeOf(path), anew };
  } finally {
    unlock();
  }
};
