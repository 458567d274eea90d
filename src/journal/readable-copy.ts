/**
 * A journal that can be read where it lies, or a copy of it: SQLite opens a journal in WAL mode only in a directory that
 * it may write, unless another process has it open. Evidence on a read-only medium is none.
 */
import { copyFileSync, constants, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { connectReader } from './connect.ts';
import { openReader } from './open.ts';

export interface ReadableCopy {
  readonly path: string;
  readonly isCopy: boolean;
  /** Removes the copy. */
  readonly release: () => void;
}

const CANNOT_WRITE = /^SQLITE_(READONLY|CANTOPEN)/;

/** What is not in the write-ahead log's index can be told from the log itself, so the index is not copied. */
const COPIED = ['', '-wal'] as const;

const isByPlace = (thrown: unknown): boolean => {
  const { code } = thrown as NodeJS.ErrnoException;
  return code !== undefined && CANNOT_WRITE.test(code);
};

/** SQLite's words where only a copy of it elsewhere can be read; null: it can be where it lies, or nowhere. */
export const whyOnlyCopied = (path: string): string | null => {
  try {
    connectReader(path).close();
    return null;
  } catch (thrown) {
    return isByPlace(thrown) ? (thrown as Error).message : null;
  }
};

/** Throws what opening throws when the journal can't be read for another reason than where it lies. */
export const readableCopy = (path: string): ReadableCopy => {
  try {
    const reader = openReader(path);
    try {
      reader.head();
    } finally {
      reader.close();
    }
    return { path, isCopy: false, release: () => undefined };
  } catch (thrown) {
    if (!isByPlace(thrown)) throw thrown;
    return copied(path);
  }
};

const copied = (path: string): ReadableCopy => {
  const dir = mkdtempSync(join(tmpdir(), 'scribe-journal-'));
  const release = (): void => rmSync(dir, { recursive: true, force: true });
  try {
    const copy = join(dir, basename(path));
    for (const end of COPIED)
      if (existsSync(path + end)) copyFileSync(path + end, copy + end, constants.COPYFILE_FICLONE);
    return { path: copy, isCopy: true, release };
  } catch (thrown) {
    release();
    throw thrown;
  }
};
