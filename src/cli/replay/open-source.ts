/** Tells by what a file holds whether it is a journal, a golden journal or the report of a crash, and opens it as that. */
import { open, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { failure } from '../command.ts';
import { crashReportIn, crashSource, journalOfReport } from './crash.ts';
import { goldenSource, journalSource, type Source } from './source.ts';

const SQLITE_MAGIC = 'SQLite format 3\0';

/** `path` is a journal, a root directory with one, a golden journal or the report of a crash. Throws a sentence for anything else. */
export const openSource = async (path: string): Promise<Source> => {
  const file = await fileOf(path);
  if (await isDatabase(file)) return journalSource(path, file);
  const text = await readFile(file, 'utf8');
  if (text === '') throw failure(`${file} is empty, and so no journal: copy it anew.`);
  const report = crashReportIn(text);
  if (report === null) return goldenSource(path, text);
  return crashSource(report, await openSource(journalOfReport(report, file)));
};

export const isCrashReport = async (path: string): Promise<boolean> => {
  const file = await fileOf(path).catch(() => null);
  if (file === null || (await isDatabase(file))) return false;
  return crashReportIn(await readFile(file, 'utf8')) !== null;
};

const cannotOpen = (path: string, error: unknown): Error =>
  (error as NodeJS.ErrnoException).code === 'ENOENT'
    ? failure(`There is no journal at ${path}.`, error)
    : failure(`The journal ${path} cannot be read: ${(error as Error).message}.`, error);

const fileOf = async (path: string): Promise<string> => {
  try {
    return (await stat(path)).isDirectory() ? join(path, 'journal.db') : path;
  } catch (error) {
    throw cannotOpen(path, error);
  }
};

const isDatabase = async (path: string): Promise<boolean> => {
  try {
    await using file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(SQLITE_MAGIC.length));
    return buffer.toString('latin1', 0, bytesRead) === SQLITE_MAGIC;
  } catch (error) {
    throw cannotOpen(path, error);
  }
};
