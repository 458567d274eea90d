/**
 * Journals for commands to read, written by the real engine, and commands run in this process: their exit status and
 * all they said.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { WriteStream } from 'node:tty';
import type { Output } from '../../src/cli/io.ts';
import { runCommandLine } from '../../src/cli/run.ts';
import type { Caller } from '../../src/domain/model/records.ts';
import type { CallReply } from '../../src/engine/ports.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { openJournal } from '../../src/journal/open.ts';
import type { SqliteJournal } from '../../src/journal/sqlite-journal.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { type Rig, type RigOptions, startRig } from '../engine/rig.ts';
import type { Owner } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

export interface Said {
  readonly exitStatus: number;
  readonly stdout: string;
  readonly stderr: string;
}

interface Sink {
  readonly output: Output;
  readonly text: () => string;
}

/** What a terminal in colours says, heeding NO_COLOR alone of this process's environment. */
const getColorDepth = (): number => {
  const { NO_COLOR: noColor } = process.env;
  return WriteStream.prototype.getColorDepth({
    TERM: 'xterm',
    ...(noColor === undefined ? {} : { NO_COLOR: noColor }),
  });
};

/** A stream that keeps what is written to it; a terminal of this many columns when told. */
export const sink = (terminal?: { readonly columns: number; readonly rows: number }): Sink => {
  const chunks: string[] = [];
  const stream = new PassThrough();
  stream.on('data', (chunk: Buffer) => chunks.push(chunk.toString()));
  const output: Output =
    terminal === undefined ? stream : Object.assign(stream, { isTTY: true, getColorDepth, ...terminal });
  return { output, text: () => chunks.join('') };
};

export interface RunOptions {
  readonly stdin?: string;
  readonly terminal?: { readonly columns: number; readonly rows: number };
  /** Results go to a terminal, too. */
  readonly showsResults?: boolean;
}

/** Runs `scribe WORDS...` in this process. */
export const scribe = async (
  words: readonly string[],
  { stdin = '', terminal, showsResults = false }: RunOptions = {},
): Promise<Said> => {
  const [stdout, stderr] = [showsResults ? sink(terminal) : sink(), sink(terminal)];
  const input = new PassThrough();
  input.end(stdin);
  const io = { stdin: input, stdout: stdout.output, stderr: stderr.output };
  const exitStatus = await runCommandLine(words, io);
  return { exitStatus, stdout: stdout.text(), stderr: stderr.text() };
};

/** It ends with this status and says that, with no stack. */
export const fails = async (words: readonly string[], status: 1 | 2, said: RegExp): Promise<void> => {
  const { exitStatus, stderr } = await scribe(words);
  assert.match(stderr, said, words.join(' '));
  assert.doesNotMatch(stderr, /^ {4}at /m);
  assert.equal(exitStatus, status);
};

/** Lines of JSON, parsed. */
export const jsonLines = <T>(text: string): T[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as T);

export const kubelet: Caller = { pid: 812, uid: 0, executable: '/usr/bin/kubelet', startTicks: '77' };

/** The engine on a simulated node, whose calls come from a kubelet. */
export interface Node extends Rig {
  readonly ask: (draft: CallDraft, caller?: Caller | null, signal?: AbortSignal) => Promise<CallReply>;
}

export const startNode = async (options: RigOptions = {}): Promise<Node> => {
  const rig = await startRig(options);
  return {
    ...rig,
    ask: (draft, caller = kubelet, signal) =>
      rig.engine.call(draft, { caller, deadlineNs: null, ...(signal === undefined ? {} : { signal }) }),
  };
};

/** What a node has written down so far. */
export const recordsOf = (node: Pick<Rig, 'contents'>): JournalRecord[] =>
  node.contents.rows.flatMap(({ record }) => (record === null ? [] : [record]));

export interface Root {
  readonly dir: string;
  readonly journalPath: string;
}

/** A root directory whose journal has these records; `more` may write what is not a record. */
export const rootWith = async (
  owner: Owner,
  records: readonly JournalRecord[],
  more: (journal: SqliteJournal) => Promise<void> = async () => {},
): Promise<Root> => {
  const dir = await tempDir(owner);
  const journalPath = join(dir, 'journal.db');
  const { journal } = openJournal({ path: journalPath });
  await journal.append(records);
  await more(journal);
  await journal.close();
  return { dir, journalPath };
};
