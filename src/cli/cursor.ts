/**
 * Where whoever follows a journal has come to, in a file: saved when what it tells of was written, and never before, so
 * what was not saved comes again. Belongs to one journal: another one has other records under the same numbers.
 */
import { open, readFile, rename } from 'node:fs/promises';
import { isFullDisk } from '../domain/model/errors.ts';
import { openTree } from '../journal/open-tree.ts';
import { failure } from './command.ts';
import type { Range } from './time-argument.ts';
import { give, type Problem, type Waiting } from './waiting.ts';

export interface Cursor {
  /** The last record that is dealt with; 0 for none. */
  readonly seq: number;
  /** Nothing was saved yet: what is asked for says where to begin. */
  readonly isNew: boolean;
  readonly save: (seq: number) => Promise<void>;
}

/**
 * What is asked for of a journal by whoever has come so far in it: --since says where the first time begins, and no later
 * one. "now" and "10m" are other moments each time, and what was recorded before them and behind the cursor would be missed.
 */
export const rangeBehind = ({ isNew }: Pick<Cursor, 'isNew'>, range: Range): Range =>
  isNew ? range : { ...range, since: null };

const CURSOR_MODE = 0o600;

const parse = (path: string, text: string): { readonly log: string; readonly seq: number } => {
  try {
    const { log, seq } = JSON.parse(text) as Partial<Record<string, unknown>>;
    if (typeof log === 'string' && typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0)
      return { log, seq };
  } catch {
    // Falls through to the one message below.
  }
  throw failure(`--cursor-file ${path} is no cursor of scribe: name another file, or remove it to begin anew.`);
};

const saveTo = (path: string, log: string, waiting: Waiting): Cursor['save'] => {
  const problem = (words: string): string => `--cursor-file ${path} cannot be written: ${words}.`;
  const tryOnce = async (seq: number): Promise<Problem | null> => {
    try {
      await using file = await open(`${path}.new`, 'w', CURSOR_MODE);
      await file.writeFile(`${JSON.stringify({ log, seq })}\n`);
      await file.datasync();
      await rename(`${path}.new`, path);
      return null;
    } catch (thrown) {
      if (isFullDisk(thrown)) return { words: thrown.message, afterMs: 0 };
      throw failure(problem((thrown as Error).message), thrown);
    }
  };
  const saying = {
    problem,
    waits: 'Nothing more is given until it can.',
    isOver: `--cursor-file ${path} can be written again.`,
  };
  return (seq) => give({ tryOnce: () => tryOnce(seq), waitsMs: [], waiting, saying, failed: failure });
};

/** The journal's own name: what a cursor belongs to. */
const logOf = (journalPath: string): string => {
  const tree = openTree(journalPath);
  try {
    return tree.origin;
  } finally {
    tree.close();
  }
};

/**
 * @param headSeq  the journal's last record: what is behind it cannot have been dealt with
 * @param waiting  for whoever goes on: a full disk is waited for
 */
export const openCursor = async (
  path: string,
  journalPath: string,
  headSeq: number,
  waiting: Waiting,
): Promise<Cursor> => {
  const log = logOf(journalPath);
  const text = await readFile(path, 'utf8').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return null;
    throw failure(`--cursor-file ${path} cannot be read: ${thrown.message}.`, thrown);
  });
  const save = saveTo(path, log, waiting);
  if (text === null) return { seq: 0, isNew: true, save };
  const kept = parse(path, text);
  if (kept.log !== log)
    throw failure(
      `--cursor-file ${path} is of ${kept.log}, and this journal is ${log}: remove the file to begin anew with this one.`,
    );
  if (kept.seq > headSeq)
    throw failure(
      `--cursor-file ${path} has come to record ${kept.seq}, and this journal ends at ${headSeq}: an older copy was put back. Remove the file to begin anew.`,
    );
  return { seq: kept.seq, isNew: false, save };
};
