/**
 * A journal that takes every record at once and hands them to the one on disk many at a time: what is made is the same
 * every time, however long a commit takes, and a commit's sync is paid once for thousands.
 */
import type { SqliteJournal } from '../../../src/journal/sqlite-journal.ts';
import type { Journal, JournalRecord, ReadRow } from '../../../src/journal/types.ts';

export interface BufferedJournal extends Journal {
  readonly seq: () => number;
  /** Puts on the disk what was taken. */
  readonly flush: () => Promise<void>;
}

export const bufferedJournal = (disk: SqliteJournal): BufferedJournal => {
  let records: JournalRecord[] = [];
  let reads: ReadRow[] = [];
  let seq = disk.head().seq;

  const flush = async (): Promise<void> => {
    const [takenRecords, takenReads] = [records, reads];
    [records, reads] = [[], []];
    for (const row of takenReads) disk.appendRead(row);
    if (takenRecords.length > 0) await disk.append(takenRecords);
  };

  return {
    seq: () => seq,
    flush,
    head: () => ({ seq, hash: disk.head().hash }),
    append: (added) => {
      records.push(...added);
      seq = added.at(-1)?.seq ?? seq;
      return Promise.resolve();
    },
    appendRead: (row) => void reads.push(row),
    read: disk.read,
    writeSnapshot: disk.writeSnapshot,
    newestSnapshot: disk.newestSnapshot,
    failed: disk.failed,
    close: async () => {
      await flush();
      await disk.close();
    },
  };
};
