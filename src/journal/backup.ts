/**
 * Copies of a journal that are whole: of one moment, made beside the daemon that writes it or without one. The copy is
 * read in one transaction, so that no commit waits for it and none starts it anew; the write-ahead log grows as long.
 */
import { closeSync, openSync, renameSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import { readHeadFile, readNoteFile, writeHeadFile, writeNoteFile } from './checkpoints.ts';
import { connectReader, explain } from './connect.ts';
import { journalFiles, syncAt } from './files.ts';
import { refuseWithoutRoom, roomIn } from './room.ts';

/** Half a MiB at a time: enough to be quick, little enough to say how far it is. */
const PAGES_PER_STEP = 128;
const FILE_MODE = 0o600;
/** What stands beside a copy, for good or while it is verified. */
const BESIDE_BYTES = 256 * 1024;

export interface BackupProgress {
  readonly pagesDone: number;
  readonly pages: number;
}

/** Where a copy is while it is made. */
export const unfinishedCopyOf = (copyPath: string): string => `${copyPath}.unfinished`;

/**
 * Copies the journal at `path` to `copyPath`, with the checkpoints beside it, but without the key that signs. The copy
 * has its name only once it is whole and on the disk; there must be nothing at that name.
 */
export const backUpJournal = async (
  path: string,
  copyPath: string,
  onProgress: (progress: BackupProgress) => void = () => {},
): Promise<void> => {
  const [from, to] = [journalFiles(path), journalFiles(copyPath)];
  const unfinished = unfinishedCopyOf(copyPath);
  // Before the records are read: beside the copy they may know fewer records than it has, and never more.
  const [head, note] = [readHeadFile(from.head), readNoteFile(from.note)];
  rmSync(unfinished, { force: true });
  // SQLite would make it for everybody to read.
  closeSync(openSync(unfinished, 'wx', FILE_MODE));
  const db = connectReader(path);
  try {
    db.exec('BEGIN');
    db.prepare('SELECT max(seq) FROM records').get();
    refuseWithoutRoom(`A copy of ${path}`, dirname(copyPath), roomIn(db).fileBytes + BESIDE_BYTES);
    await db.backup(unfinished, {
      progress: ({ totalPages, remainingPages }) => {
        onProgress({ pagesDone: totalPages - remainingPages, pages: totalPages });
        return PAGES_PER_STEP;
      },
    });
    db.exec('COMMIT');
    syncAt(unfinished);
    if (head !== null && typeof head !== 'string') writeHeadFile(to.head, head);
    if (note !== null) writeNoteFile(to.note, note);
    renameSync(unfinished, copyPath);
    syncAt(dirname(copyPath));
  } catch (thrown) {
    rmSync(unfinished, { force: true });
    throw explain(path, thrown);
  } finally {
    db.close();
  }
};
