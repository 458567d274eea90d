/**
 * Tells when a journal that another process writes may hold something new. The kernel tells of every write to the
 * write-ahead log, but SQLite makes a commit visible a moment after it wrote it (when it has reached the disk), and of
 * that nobody tells: so after a write it is worth looking a few more times. While nothing is written, nothing is done.
 */
import { type FSWatcher, realpathSync, statSync, watch } from 'node:fs';
import { basename, dirname } from 'node:path';
import { journalFiles } from '../../journal/files.ts';
import { failure } from '../command.ts';
import { isOfSqlite, rememberJournal } from './same-journal.ts';

/** After the last write; a sync that takes longer than the last of these is shown with the next one. */
const LOOK_AGAIN_MS = [2, 10, 50, 250, 1_000, 5_000] as const;

/** So long after a reading failed it may come out that the journal was replaced. */
const KNOWN_WITHIN_MS = 2_000;

export interface JournalWatch {
  /** Resolves when it is worth looking, or it is closed; rejects when the journal is another one by now. */
  readonly changed: () => Promise<void>;
  /** Reads. What is put over a journal is half there for a while, and SQLite then says anything: fails with what is known soon after. */
  readonly reading: <T>(read: () => Promise<T>) => Promise<T>;
  readonly close: () => void;
}

/** What came in since it was last asked for. */
interface Seen {
  written: boolean;
  /** The file itself, not only the log beside it. */
  fileWritten: boolean;
  error: Error | null;
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
  const isWrittenOver = rememberJournal(path);
  const seen: Seen = { written: true, fileWritten: false, error: null };
  let looks = 0;
  let timer: NodeJS.Timeout | null = null;
  let wake: () => void = () => {};

  const look = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    wake();
  };
  const replaced = (): Error => failure(`${path} was replaced or removed; start again to follow the new journal.`);
  const fail = (error: Error): void => {
    seen.error = error;
    look();
  };

  const watcher: FSWatcher = watch(dir, (_event, name) => {
    if (!names.includes(name)) return;
    if (isAnother()) return fail(replaced());
    seen.written = true;
    // Records are written to the log, and from there to the file, some thousand at a time.
    if (name === basename(file)) seen.fileWritten = true;
    look();
  });
  watcher.on('error', (thrown) => fail(failure(`${dir} can't be watched any more: ${thrown.message}`)));

  /** @param afterMs  at the latest; undefined: whenever there is word */
  const waitForWord = (afterMs: number | undefined): Promise<void> =>
    new Promise((resolve) => {
      wake = resolve;
      if (afterMs !== undefined) timer = setTimeout(look, afterMs);
    });

  return {
    async reading(read) {
      try {
        return await read();
      } catch (thrown) {
        if (!isOfSqlite(thrown)) throw thrown;
        const untilMs = performance.now() + KNOWN_WITHIN_MS;
        while (seen.error === null && performance.now() < untilMs) await waitForWord(untilMs - performance.now());
        throw seen.error ?? (isAnother() || isWrittenOver() ? replaced() : thrown);
      }
    },
    async changed() {
      if (!seen.written && seen.error === null) {
        looks += 1;
        await waitForWord(LOOK_AGAIN_MS[looks - 1]);
      }
      if (seen.error !== null) throw seen.error;
      if (seen.fileWritten && isWrittenOver()) throw replaced();
      seen.fileWritten = false;
      if (seen.written) looks = 0;
      seen.written = false;
    },
    close: () => {
      watcher.close();
      // Nor is whoever asks from now on kept waiting.
      seen.written = true;
      look();
    },
  };
};
