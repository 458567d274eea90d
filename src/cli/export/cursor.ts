/**
 * Where an export to one target has come to, in a file: saved when the target has what it tells of, and never before, so
 * what was not saved comes again. Belongs to one journal: another one has other records under the same numbers.
 */
import { open, readFile, rename } from 'node:fs/promises';
import { failure } from '../command.ts';

export interface Cursor {
  /** The last record that the target has; 0 for none. */
  readonly seq: number;
  readonly save: (seq: number) => Promise<void>;
}

const CURSOR_MODE = 0o600;

const parse = (path: string, text: string): { readonly log: string; readonly seq: number } => {
  try {
    const { log, seq } = JSON.parse(text) as Partial<Record<string, unknown>>;
    if (typeof log === 'string' && typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0)
      return { log, seq };
  } catch {
    // Falls through to the one message below.
  }
  throw failure(`--cursor-file ${path} is no cursor of scribe export: name another file, or remove it to begin anew.`);
};

const saveTo =
  (path: string, log: string) =>
  async (seq: number): Promise<void> => {
    const file = await open(`${path}.new`, 'w', CURSOR_MODE);
    try {
      await file.writeFile(`${JSON.stringify({ log, seq })}\n`);
      await file.datasync();
    } finally {
      await file.close();
    }
    await rename(`${path}.new`, path);
  };

/** @param log  the journal's name */
export const openCursor = async (path: string, log: string): Promise<Cursor> => {
  const text = await readFile(path, 'utf8').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return null;
    throw thrown;
  });
  const save = saveTo(path, log);
  if (text === null) return { seq: 0, save };
  const kept = parse(path, text);
  if (kept.log !== log)
    throw failure(
      `--cursor-file ${path} is of ${kept.log}, and this journal is ${log}: remove the file to export all of this one.`,
    );
  return { seq: kept.seq, save };
};
