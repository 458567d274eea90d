/**
 * Tells when a journal that another process writes may hold something new. The kernel tells of every write to the
 * write-ahead log, but SQLite makes a commit visible a moment after it wrote it (when it has reached the disk), and of
 * that nobody tells: so after a write it is worth looking a few more times. While nothing is written, nothing is done.
 */
import { type FSWatcher, realpathSync, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { journalFiles } from '../../journal/files.ts';
import { failure } from '../command.ts';

/** After the last write; a sync that takes longer than the last of these is shown with the next one. */
const LOOK_AGAIN_MS = [2, 10, 50, 250, 1_000, 5_000] as const;

export interface JournalWatch {
  /** Resolves when it is worth looking; rejects when the journal is another file by now. */
  readonly changed: () => Promise<void>;
  readonly close: () => void;
}

const inodeOf = (path: string): number | null => {
  try {
    return statSync(path).ino;
  } catch {
    return null;
  }
};

/** Starts watching: what is written from now on is told. */
export const watchJournal = (path: string): JournalWatch => {
  const inode = inodeOf(path);
  // SQLite keeps its log beside the file that a link leads to.
  const file = realpathSync(path);
  const dir = dirname(file);
  const { index } = journalFiles(file);
  // As long as anybody reads SQLite keeps it; who opens a journal takes it away where it is of one that was there before.
  const indexInode = inodeOf(index);
  const isAnother = (): boolean => inodeOf(path) !== inode || (indexInode !== null && inodeOf(index) !== indexInode);
  // Of its own being moved away the kernel tells under the directory's own name.
  const names: readonly (string | null)[] = [basename(file), `${basename(file)}-wal`, basename(dir)];
  const seen: { written: boolean; error: Error | null } = { written: true, error: null };
  let looks = 0;
  let timer: NodeJS.Timeout | null = null;
  let wake: () => void = () => {};

  const look = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    wake();
  };
  const fail = (why: string): void => {
    seen.error = failure(why);
    look();
  };

  const watcher: FSWatcher = watch(dir, (_event, name) => {
    if (!names.includes(name)) return;
    if (isAnother()) return fail(`${path} was replaced or removed; start again to follow the new journal.`);
    seen.written = true;
    look();
  });
  watcher.on('error', (thrown) => fail(`${dir} can't be watched any more: ${thrown.message}`));

  const waitForWord = (): Promise<void> => {
    const afterMs = LOOK_AGAIN_MS[looks];
    looks += 1;
    return new Promise((resolve) => {
      wake = resolve;
      if (afterMs !== undefined) timer = setTimeout(look, afterMs);
    });
  };

  return {
    async changed() {
      if (!seen.written && seen.error === null) await waitForWord();
      if (seen.error !== null) throw seen.error;
      if (seen.written) looks = 0;
      seen.written = false;
    },
    close: () => {
      watcher.close();
      if (timer !== null) clearTimeout(timer);
    },
  };
};
