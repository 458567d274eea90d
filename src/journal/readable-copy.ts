/**
 * A journal that can be read where it lies, or a copy of it: evidence on a read-only medium cannot (connect.ts).
 */
import { randomUUID } from 'node:crypto';
import { copyFileSync, constants, existsSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { isUnwritable } from './errors.ts';
import { isCorruption } from './connect.ts';
import { passing } from './left-behind.ts';
import { openReader } from './open.ts';

export interface ReadableCopy {
  readonly path: string;
  readonly isCopy: boolean;
  /** Removes the copy. */
  readonly release: () => void;
}

/** Its owner's alone. */
const DIR_MODE = 0o700;
/** What is not in the write-ahead log's index can be told from the log itself, so the index is not copied. */
const COPIED = ['', '-wal'] as const;

const asItLies = (path: string): ReadableCopy => ({ path, isCopy: false, release: () => undefined });

/** Throws what opening throws when the journal can't be read for another reason than where it lies. */
export const readableCopy = (path: string): ReadableCopy => {
  try {
    const reader = openReader(path);
    try {
      reader.head();
    } finally {
      reader.close();
    }
    return asItLies(path);
  } catch (thrown) {
    // What of a damaged journal can be read, whoever reads it finds out.
    if (isCorruption(thrown)) return asItLies(path);
    if (!isUnwritable(thrown)) throw thrown;
    return copied(path);
  }
};

const copied = (path: string): ReadableCopy => {
  const dir = join(tmpdir(), `scribe-journal-${randomUUID()}`);
  // Before it is there: a signal may come at any time.
  const { keep } = passing([dir]);
  const release = (): void => {
    rmSync(dir, { recursive: true, force: true });
    keep();
  };
  try {
    mkdirSync(dir, { mode: DIR_MODE });
    const copy = join(dir, basename(path));
    for (const end of COPIED)
      if (existsSync(path + end)) copyFileSync(path + end, copy + end, constants.COPYFILE_FICLONE);
    return { path: copy, isCopy: true, release };
  } catch (thrown) {
    release();
    throw thrown;
  }
};
