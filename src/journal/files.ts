/** The files of a journal, all beside each other, and how a corrupt journal is set aside (C20). */
import {
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lstatSync,
  openSync,
  readFileSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { freePath, takenPath } from './checkpoints.ts';
import { errorOf, JournalError } from './errors.ts';

export interface JournalFiles {
  readonly database: string;
  readonly wal: string;
  /** What processes that have it open share about the log. */
  readonly index: string;
  readonly lock: string;
  /** Ed25519 private key, PEM, mode 0600. */
  readonly key: string;
  /** The newest signed checkpoint once more. */
  readonly head: string;
  /** The newest checkpoint of the tree, as a signed note. */
  readonly note: string;
  /** Says what a commit met that could not be read: the next start writes the journal anew. */
  readonly damage: string;
}

export const journalFiles = (path: string): JournalFiles => ({
  database: path,
  wal: `${path}-wal`,
  index: `${path}-shm`,
  lock: `${path}.lock`,
  key: `${path}.key`,
  head: `${path}.head`,
  note: `${path}.checkpoint`,
  damage: `${path}.damage`,
});

/** What is about one database file, and no other. */
const besideDatabase = ['-wal', '-shm', '.damage'] as const;
/** What belongs to one chain: the key and the lock outlive it. */
const chainSuffixes = ['', ...besideDatabase, '.head', '.checkpoint'] as const;
const ASIDE = 'corrupt';

const fileMode = 0o600;
const othersMode = 0o077;

/**
 * Leaves the files of a journal to their owner, whoever made them. The database is made here when there is none: SQLite
 * gives the files beside it the mode that it has.
 */
export const narrowFiles = (path: string): void => {
  closeSync(openSync(path, 'a', fileMode));
  for (const suffix of chainSuffixes) {
    const file = `${path}${suffix}`;
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats !== undefined && (stats.mode & othersMode) !== 0) chmodSync(file, fileMode);
  }
};

/**
 * SQLite keeps its log beside the file that a link leads to: away from the lock, which then keeps no other daemon from that file,
 * from the room that is looked for, and from what a copy is put back over.
 */
export const refuseLink = (path: string): void => {
  if (lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() !== true) return;
  throw new JournalError(
    'Unsafe',
    `The journal ${path} is a symbolic link: its log and its lock would not lie beside it. Move what it leads to, with its -wal file, into ${dirname(path)}; for another disk, mount that there, or make the directory the link.`,
  );
};

/** Waits until a file, or the names in a directory, are on the disk. */
export const syncAt = (path: string): void => {
  const fd = openSync(path, 'r');
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
};

/** For the next start, which would otherwise find nothing wrong and end at the same page again. */
export const noteDamage = (file: string, thrown: unknown): void => {
  try {
    writeFileSync(file, `${errorOf(thrown).message}\n`, { mode: fileMode });
  } catch {
    // Where not even that can be written, the next start is no worse off than without it.
  }
};

/** What a commit met that could not be read; null: none did. */
export const notedDamage = (path: string): string | null => {
  const { damage } = journalFiles(path);
  return existsSync(damage) ? readFileSync(damage, 'utf8').trim() : null;
};

/**
 * Moves a journal out of the way whole, never overwriting an earlier one, and returns its new path. Nobody may have
 * it open; the caller holds the lock.
 */
export const setAside = (path: string): string => {
  const aside = freePath(path, ASIDE);
  for (const suffix of chainSuffixes) {
    if (existsSync(`${path}${suffix}`)) renameSync(`${path}${suffix}`, `${aside}${suffix}`);
  }
  return aside;
};

/**
 * Goes on with what was cut short after the database was moved: SQLite would apply the log that is left to the next one, or
 * remove it. Whatever else is left stays, as it does where somebody has removed the database. Returns where that is now; null:
 * there is one, or none was set aside.
 */
export const finishSettingAside = (path: string): string | null => {
  const aside = existsSync(path) ? null : takenPath(path, ASIDE);
  if (aside === null) return null;
  for (const suffix of besideDatabase)
    if (existsSync(`${path}${suffix}`) && !existsSync(`${aside}${suffix}`))
      renameSync(`${path}${suffix}`, `${aside}${suffix}`);
  return aside;
};
