/**
 * Where a command reads and writes: the process's own streams, or a test's. A reader of standard output may stop (`|
 * head`), which ends the command quietly; one that cannot take more (a full disk) ends it with a sentence.
 */
import { fstatSync, type Stats, writeSync } from 'node:fs';
import { constants, setPriority } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Readable, Writable } from 'node:stream';
import { errorCodeOf } from '../platform/error-code.ts';

export interface Output extends Writable {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  readonly getColorDepth?: () => number;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** What a command has read of a journal; absent: it does not know. */
export interface ReadExtent {
  readonly fromSeq?: number;
  readonly toSeq?: number;
  readonly shown?: number;
  /** What was asked on standard input, where it is no word of the command line. */
  readonly question?: string;
}

export interface Io {
  readonly stdin: Readable;
  /** Results. */
  readonly stdout: Output;
  /** Everything said beside the result: errors, progress, notes. */
  readonly stderr: Output;
  /** How long rows of a table that grows may still be held back; absent: until there are enough to tell its widths. */
  readonly holdRowsMs?: () => number;
  /** Lets others of this machine go before; absent: it does not matter. */
  readonly giveWay?: () => void;
  /** The environment that says by what somebody reads long results, a screen at a time; absent: nobody does. */
  readonly pagerEnv?: Environment;
  /**
   * Has it recorded that the journal is read, once for a command: by those that go on for ever before they do, by those
   * that know what they have read when they have. Otherwise it is recorded when the command has ended. Whoever goes on for
   * ever may give what says, at its end, what it came to: that is recorded then, and nothing may be shown any more once it
   * was asked. Never rejects.
   */
  readonly recordRead?: (extent: ReadExtent, atEnd?: () => ReadExtent) => Promise<void>;
  /**
   * Resolves when whoever reads standard output is seen to have gone, for those that write nothing for a long time; never where
   * that cannot be seen. Absent: nobody can go.
   */
  readonly readerGone?: () => Promise<null>;
  /** Has this done, once, before a signal or a reader that is gone ends the process; absent: there is none of its own. */
  readonly beforeEnd?: (work: () => Promise<void>) => void;
}

const STDIN = 0;
const STDOUT = 1;
const STDERR = 2;
/** From the command's start on, in which nobody waits for a row that is known. */
const ROWS_SHOWN_AFTER_MS = 150;
/** For what comes along with a row that was found later. */
const HOLD_ROWS_MIN_MS = 10;

/**
 * Writes a text and waits while the reader is slow. For a reader that is gone it waits until the process ends: what was not
 * taken must not be noted as dealt with (cursor.ts).
 */
export const write = async (output: Output, text: string): Promise<void> => {
  const outcome = { hasFailed: false };
  const hasRoom = output.write(text, (error) => {
    outcome.hasFailed = error instanceof Error;
  });
  if (hasRoom || output.destroyed) return;
  await new Promise<void>((resolve) => {
    const done = (): void => {
      output.off('drain', done).off('close', done);
      // The process's own streams forget that they have failed.
      if (!outcome.hasFailed) resolve();
    };
    output.once('drain', done).once('close', done);
  });
};

/** Says lines beside the result, as whoever goes on for a long time does. */
export const tellerTo =
  ({ stderr }: Pick<Io, 'stderr'>) =>
  (line: string): void =>
    void write(stderr, `scribe: ${line}\n`);

/** Node's own stream of a file takes for written what the disk had room for a part of, and the rest would be missing unsaid. */
const wholeFile = (fd: number): Output =>
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      try {
        for (let at = 0; at < chunk.length; ) at += writeSync(fd, chunk, at);
        done();
      } catch (thrown) {
        done(thrown as Error);
      }
    },
  });

const isPipe = (stats: Stats): boolean => stats.isFIFO() || stats.isSocket();

/** Between the ends of standard input and output of a caller that goes, as sshd closes them one after the other. */
const BOTH_ENDED_MS = 500;

/**
 * Nobody is told that a pipe has no reader but who writes to it, and sshd sends no SIGHUP where it made no terminal. The end of
 * standard input is when to try: it may also mean nothing, so an empty line has to be refused, too.
 */
const readerGone = async (): Promise<null> => {
  const never = new Promise<null>(() => {});
  if (!isPipe(fstatSync(STDIN)) || !isPipe(fstatSync(STDOUT))) return never;
  await new Promise((resolve) => process.stdin.once('close', resolve).once('error', resolve).resume());
  await sleep(BOTH_ENDED_MS);
  try {
    writeSync(STDOUT, '\n');
    return await never;
  } catch (thrown) {
    return errorCodeOf(thrown) === 'EPIPE' ? null : never;
  }
};

/** SIGHUP is that of a terminal that has gone. */
export const ENDING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/** Resolves at the first of these signals, which end nothing else then. */
export const toldToEnd = (signals: readonly NodeJS.Signals[]): Promise<null> =>
  new Promise((end) => {
    for (const signal of signals) process.once(signal, () => end(null));
  });

/** The process ends by the signal that it got: by the first when the work is done, by a second at once. */
const onSignals = (work: () => Promise<void>): void => {
  for (const signal of ENDING) process.once(signal, () => void work().finally(() => process.kill(process.pid, signal)));
};

export const processIo = (): Io => {
  let lastWork = async (): Promise<void> => {};
  const stdout: Output = fstatSync(STDOUT).isFile() ? wholeFile(STDOUT) : process.stdout;
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') return void lastWork().finally(() => process.exit(0));
    writeSync(STDERR, `scribe: Standard output cannot be written to: ${error.message}.\n`);
    process.exit(1);
  });
  return {
    // Only a command that reads it opens it.
    get stdin() {
      return process.stdin;
    },
    stdout,
    stderr: process.stderr,
    readerGone,
    holdRowsMs: () => Math.max(HOLD_ROWS_MIN_MS, ROWS_SHOWN_AFTER_MS - performance.now()),
    beforeEnd: (work) => {
      lastWork = work;
      onSignals(work);
    },
    giveWay: () => {
      setPriority(constants.priority.PRIORITY_BELOW_NORMAL);
    },
    ...(stdout.isTTY === true ? { pagerEnv: process.env } : {}),
  };
};
