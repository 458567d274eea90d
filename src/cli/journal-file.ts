/** A file that somebody named as a journal: which one is meant, and whether it can be one. Reads no record of it. */
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { failure } from './command.ts';

const SQLITE_MAGIC = 'SQLite format 3\0';

const cannotOpen = (path: string, error: unknown): Error => {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === 'ENOENT') return failure(`There is no journal at ${path}.`, error);
  if (code === 'EACCES') return failure(`You may not read the journal ${path}; are you root?`, error);
  return failure(`The journal ${path} cannot be read: ${message}.`, error);
};

/** `path` is a file, or a root directory with a journal in it. */
export const fileOf = async (path: string): Promise<string> => {
  try {
    return (await stat(path)).isDirectory() ? join(path, 'journal.db') : path;
  } catch (error) {
    throw cannotOpen(path, error);
  }
};

export const isDatabase = async (path: string): Promise<boolean> => {
  try {
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SQLITE_MAGIC.length));
    return buffer.toString('latin1', 0, bytesRead) === SQLITE_MAGIC;
  } catch (error) {
    throw cannotOpen(path, error);
  }
};

/** The file of a journal. Throws a sentence for what can be none. */
export const databaseAt = async (path: string): Promise<string> => {
  const file = await fileOf(path);
  if (await isDatabase(file)) return file;
  throw failure(`${file} is no journal: it is no SQLite database. Copy the journal anew, with scribe journal backup.`);
};
