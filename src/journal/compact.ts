/**
 * Giving all pages that hold nothing back to the file system at once: SQLite writes the whole database anew, during which
 * nothing can be committed, so only while no daemon has the journal, under its lock. What is in it stays as it is. From
 * then on the file can give pages back while the daemon writes, too (room.ts).
 */
import { statfsSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { connectWriter, explain } from './connect.ts';
import { JournalError } from './errors.ts';
import { journalFiles } from './files.ts';
import { takeLock } from './lock.ts';
import { listMigrations, refuseNewer } from './migrate.ts';
import { roomIn, usedBytesIn } from './room.ts';

export interface Compacted {
  readonly beforeBytes: number;
  readonly afterBytes: number;
}

const sizeOf = (path: string): number => statSync(path).size;

/** The database is written anew into its write-ahead log, and from there over itself: twice what is in use. */
const refuseWithoutRoom = (path: string, usedBytes: number): void => {
  const { bavail, bsize } = statfsSync(dirname(path));
  const [needed, free] = [2 * usedBytes, bavail * bsize];
  if (free < needed)
    throw new JournalError(
      'Unsafe',
      `Compacting ${path} takes ${needed} bytes for a while, and its file system has ${free} free: make room first.`,
    );
};

/** Throws JournalError: Locked while a daemon has the journal, Unsafe where there is no room, NewerSchema. */
export const compactJournal = (path: string): Compacted => {
  const unlock = takeLock(journalFiles(path).lock, 'The journal');
  try {
    const db = connectWriter(path);
    try {
      refuseNewer(db, listMigrations());
      refuseWithoutRoom(path, usedBytesIn(db));
      db.pragma('wal_checkpoint(TRUNCATE)');
      const beforeBytes = sizeOf(path);
      // In the form in which the daemon can give pages back; setting it again where it is set would write.
      if (!roomIn(db).givesBack) db.pragma('auto_vacuum = INCREMENTAL');
      db.exec('VACUUM');
      db.pragma('wal_checkpoint(TRUNCATE)');
      return { beforeBytes, afterBytes: sizeOf(path) };
    } catch (thrown) {
      throw explain(path, thrown);
    } finally {
      db.close();
    }
  } finally {
    unlock();
  }
};
