/** Has a child answer a question in SQL, row by row, and ends it when its time is over or nobody reads on. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { timerMs } from '../../platform/rpc/timeout.ts';
import { failure } from '../command.ts';
import { duration } from '../format.ts';

export type AnswerCell = string | number | null;

export interface Question {
  readonly journalPath: string;
  readonly sql: string;
  readonly timeLimitMs: number;
  /** Ends the child at once. */
  readonly signal: AbortSignal;
}

/** The names of the columns, then the rows. Throws what SQLite says of the question, or that it took too long. */
export async function* ask({ journalPath, sql, timeLimitMs, signal }: Question): AsyncGenerator<readonly AnswerCell[]> {
  const program = fileURLToPath(new URL('./child.ts', import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, program, journalPath]);
  const ended = once(child, 'close');
  // One that could not be started says so before anybody waits for its end; who reads on is told of it there.
  ended.catch(() => undefined);
  signal.addEventListener('abort', () => child.kill('SIGKILL'));
  const said = text(child.stderr);
  const time = { isOver: false };
  const timer = setTimeout(() => {
    time.isOver = true;
    child.kill('SIGKILL');
  }, timerMs(timeLimitMs));
  // A child that could not start has closed its input; why is in what it said.
  child.stdin.on('error', () => undefined);
  child.stdin.end(sql);
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      // A child that was ended may leave half a line.
      if (time.isOver) break;
      yield JSON.parse(line) as AnswerCell[];
    }
    const [code] = (await ended) as [number | null];
    if (time.isOver) {
      const limit = duration(BigInt(timeLimitMs) * 1_000_000n);
      throw failure(
        `The query took longer than ${limit} and was ended. Narrow it by seq or at, have what is joined made once (WITH e AS MATERIALIZED (SELECT * FROM exits) ...), or give more --time-limit.`,
      );
    }
    if (code !== 0) throw failure((await said) || 'The process that was to answer has ended.');
  } finally {
    clearTimeout(timer);
    child.kill('SIGKILL');
  }
}
