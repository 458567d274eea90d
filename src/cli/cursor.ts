/**
 * Where whoever follows a journal has come to, in a file: saved when what it tells of was written, and never before, so
 * what was not saved comes again. Belongs to one journal: another one, and one that was put back, has other records under the
 * same numbers. Belongs to one target, too: of two at a time the faster one would say of the slower what that has not been given
 * yet.
 */
import { open, readFile, rename } from 'node:fs/promises';
import { isFullDisk } from '../domain/model/errors.ts';
import { JournalError } from '../journal/errors.ts';
import { takeLock } from '../journal/lock.ts';
import { openTree } from '../journal/open-tree.ts';
import type { JournalReader } from '../journal/reader.ts';
import { failure } from './command.ts';
import type { Range } from './time-argument.ts';
import { give, type Problem, type Waiting } from './waiting.ts';

/** Disposing of it lets another one have it. */
export interface Cursor extends Disposable {
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

interface Kept {
  /** The journal's own name. */
  readonly log: string;
  readonly seq: number;
  /** Of that record, in hex; null: there is none, or an older scribe saved this. */
  readonly bodyHash: string | null;
}

const parse = (path: string, text: string): Kept => {
  try {
    const { log, seq, bodyHash } = JSON.parse(text) as Partial<Record<string, unknown>>;
    if (typeof log === 'string' && typeof seq === 'number' && Number.isSafeInteger(seq) && seq >= 0)
      return { log, seq, bodyHash: typeof bodyHash === 'string' ? bodyHash : null };
  } catch {
    // Falls through to the one message below.
  }
  throw failure(`--cursor-file ${path} is no cursor of scribe: name another file, or remove it to begin anew.`);
};

const unwritable = (path: string, words: string): string => `--cursor-file ${path} cannot be written: ${words}.`;

/** The lock has a file of its own, since each save puts another file at the cursor's path. */
const take = (path: string): (() => void) => {
  try {
    return takeLock(`${path}.lock`, `--cursor-file ${path}`, 'Each target needs a cursor of its own.');
  } catch (thrown) {
    const { message } = thrown as Error;
    throw failure(thrown instanceof JournalError ? message : unwritable(path, message), thrown);
  }
};

/** What a cursor asks of its journal: the last record, behind which nothing can have been dealt with, and what the chain says of one. */
export type CursorJournal = Pick<JournalReader, 'headSeq' | 'hashesOf'>;

/** It outlives pruning, and has the time of the record in it, so no other record of this number has the same. */
const bodyHashOf = (journal: CursorJournal, seq: number): string | null => {
  const hashes = seq === 0 ? null : journal.hashesOf(seq);
  return hashes === null ? null : Buffer.from(hashes.bodyHash).toString('hex');
};

const refusePutBack = (path: string, { seq, bodyHash }: Kept, journal: CursorJournal): void => {
  const headSeq = journal.headSeq();
  if (seq <= headSeq && (bodyHash === null || bodyHash === bodyHashOf(journal, seq))) return;
  const why = seq > headSeq ? `this journal ends at ${headSeq}` : 'in this journal that is another one';
  throw failure(
    `--cursor-file ${path} has come to record ${seq}, and ${why}: an older copy was put back. Remove the file to begin anew.`,
  );
};

const writeTo = (path: string, waiting: Waiting): ((kept: Kept) => Promise<void>) => {
  const problem = (words: string): string => unwritable(path, words);
  const tryOnce = async (kept: Kept): Promise<Problem | null> => {
    try {
      await using file = await open(`${path}.new`, 'w', CURSOR_MODE);
      await file.writeFile(`${JSON.stringify(kept)}\n`);
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
  return (kept) => give({ tryOnce: () => tryOnce(kept), waitsMs: [], waiting, saying, failed: failure });
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

/** What was saved, if it is of this journal; null: nothing yet. */
const savedOf = async (path: string, log: string, journal: CursorJournal): Promise<number | null> => {
  const text = await readFile(path, 'utf8').catch((thrown: NodeJS.ErrnoException) => {
    if (thrown.code === 'ENOENT') return null;
    throw failure(`--cursor-file ${path} cannot be read: ${thrown.message}.`, thrown);
  });
  if (text === null) return null;
  const kept = parse(path, text);
  if (kept.log !== log)
    throw failure(
      `--cursor-file ${path} is of ${kept.log}, and this journal is ${log}: remove the file to begin anew with this one.`,
    );
  refusePutBack(path, kept, journal);
  return kept.seq;
};

/** @param waiting  for whoever goes on: a full disk is waited for */
export const openCursor = async (
  path: string,
  journalPath: string,
  journal: CursorJournal,
  waiting: Waiting,
): Promise<Cursor> => {
  const log = logOf(journalPath);
  const close = take(path);
  try {
    const write = writeTo(path, waiting);
    const seq = await savedOf(path, log, journal);
    let last: Kept = { log, seq: seq ?? 0, bodyHash: bodyHashOf(journal, seq ?? 0) };
    const save = async (throughSeq: number): Promise<void> => {
      // It may be put back under whoever follows it.
      refusePutBack(path, last, journal);
      last = { log, seq: throughSeq, bodyHash: bodyHashOf(journal, throughSeq) };
      await write(last);
    };
    // Where it cannot be saved, nothing is given that would come again and again.
    if (seq !== null) await save(seq);
    return { seq: seq ?? 0, isNew: seq === null, save, [Symbol.dispose]: close };
  } catch (error) {
    close();
    throw error;
  }
};
