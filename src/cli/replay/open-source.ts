/** Tells by what a file holds whether it is a journal, a golden journal or the report of a crash, and opens it as that. */
import { readFile } from 'node:fs/promises';
import { failure } from '../command.ts';
import { fileOf, isDatabase } from '../journal-file.ts';
import { crashReportIn, crashSource, journalOfReport } from './crash.ts';
import { goldenSource, journalSource, type Source } from './source.ts';

/** `path` is a journal, a root directory with one, a golden journal or the report of a crash. Throws a sentence for anything else. */
export const openSource = async (path: string): Promise<Source> => {
  const file = await fileOf(path);
  if (await isDatabase(file)) return journalSource(path, file);
  const text = await readFile(file, 'utf8');
  if (text === '') throw failure(`${file} is empty, and so no journal: copy it anew.`);
  const report = crashReportIn(text);
  if (report === null) return goldenSource(path, text);
  const journal = await openSource(journalOfReport(report, file));
  try {
    return crashSource(report, journal);
  } catch (error) {
    journal.close();
    throw error;
  }
};

export const isCrashReport = async (path: string): Promise<boolean> => {
  const file = await fileOf(path).catch(() => null);
  if (file === null || (await isDatabase(file))) return false;
  return crashReportIn(await readFile(file, 'utf8')) !== null;
};
