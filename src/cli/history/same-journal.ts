/**
 * Whether what lies at a path is still the journal that was there, by what its chain says of a record: a file keeps its inode when
 * another one is copied over it, and SQLite then reads pages of both. Opens the file anew each time that it is asked.
 */
import { JournalError } from '../../journal/errors.ts';
import { openReader } from '../../journal/open.ts';

interface Known {
  readonly seq: number;
  /** It outlives pruning, and has the time of the record in it, so no other record of this number has the same. */
  readonly bodyHash: string;
}

/** Of this record, or the newest; null: there is none. */
const knownAt = (path: string, seq?: number): Known | null => {
  const reader = openReader(path);
  try {
    const wanted = seq ?? reader.headSeq();
    const hashes = wanted === 0 ? null : reader.hashesOf(wanted);
    return hashes === null ? null : { seq: wanted, bodyHash: Buffer.from(hashes.bodyHash).toString('hex') };
  } finally {
    reader.close();
  }
};

export const isOfSqlite = (thrown: unknown): boolean => thrown instanceof Error && thrown.name === 'SqliteError';

/** What it gives; undefined: what is there cannot be read, or not yet. */
const unlessUnreadable = <T>(read: () => T): T | undefined => {
  try {
    return read();
  } catch (thrown) {
    if (thrown instanceof JournalError || isOfSqlite(thrown)) return undefined;
    throw thrown;
  }
};

/** Tells whether another journal is there by now. Of one that has no record yet, or cannot be read, that is not known. */
export const rememberJournal = (path: string): (() => boolean) => {
  const newest = (): Known | null => unlessUnreadable(() => knownAt(path)) ?? null;
  let known = newest();
  return () => {
    const { seq, bodyHash } = known ?? {};
    const now = unlessUnreadable(() => knownAt(path, seq));
    if (now === undefined) return false;
    if (bodyHash !== undefined && now?.bodyHash !== bodyHash) return true;
    // An older copy that is put back has fewer records.
    known = newest() ?? known;
    return false;
  };
};
