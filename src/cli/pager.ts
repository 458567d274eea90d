/**
 * Shows long results a screen at a time, where somebody looks at them on a terminal: through the pager of the environment,
 * or less. Whoever leaves the pager has seen enough, which ends the command. Knows nothing of what is shown.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { findProgram } from '../platform/linux/find-program.ts';
import { type ExitStatus, failure } from './command.ts';
import type { Environment, Output } from './io.ts';

/** less leaves by itself what fits on one screen, shows colours, and leaves what it showed on the terminal. */
const LESS_FLAGS = 'FRX';
/** What a shell says of a program that is not there, or is none. */
const NOT_RUN: readonly (number | null)[] = [126, 127];
/** The names of having none. */
const NONE: readonly string[] = ['', 'cat'];

/** A line for the shell; null: none is wanted, or there is none. */
const pagerOf = async (env: Environment): Promise<string | null> => {
  const wanted = env['SCRIBE_PAGER'] ?? env['PAGER'];
  if (wanted !== undefined) return NONE.includes(wanted.trim()) ? null : wanted;
  return (await findProgram('less', env['PATH'] ?? '')) === null ? null : 'less';
};

/**
 * Runs what writes results, with an output that a pager shows, and resolves when both have ended, or the pager alone: with 0
 * then. Without a pager the output is the terminal itself.
 */
export const paged = async (
  stdout: Output,
  env: Environment,
  run: (output: Output) => Promise<ExitStatus>,
): Promise<ExitStatus> => {
  const line = await pagerOf(env);
  if (line === null) return run(stdout);
  const pager = spawn('sh', ['-c', line], {
    stdio: ['pipe', 'inherit', 'inherit'],
    env: { LESS: LESS_FLAGS, ...env },
  });
  const ended = once(pager, 'close') as Promise<[number | null]>;
  const { stdin } = pager;
  // Its reader has left.
  stdin.on('error', () => undefined);
  const { columns, rows } = stdout;
  // Whoever writes on for nobody waits, and uses up nothing, until the process ends.
  const waiting = new Writable({
    write: (chunk: Buffer, _encoding, goOn) => void (stdin.write(chunk) ? goOn() : stdin.once('drain', goOn)),
    final: (goOn) => void stdin.end(goOn),
  });
  const output: Output = Object.assign(waiting, {
    isTTY: true,
    ...(columns === undefined ? {} : { columns }),
    ...(rows === undefined ? {} : { rows }),
    getColorDepth: () => stdout.getColorDepth?.() ?? 1,
  });
  output.on('error', () => undefined);
  // The key that interrupts is the pager's, which stays until it is left; there is no more to come for it.
  const stop = (): void => void stdin.end();
  process.on('SIGINT', stop);
  try {
    const done = settled(run(output).finally(() => output.end()));
    const outcome = await Promise.race([done, ended.then(() => () => 0 as const)]);
    const [code] = await ended;
    if (NOT_RUN.includes(code))
      throw failure(`The pager "${line}" could not be run: set SCRIBE_PAGER to another, or to cat.`);
    return outcome();
  } finally {
    process.off('SIGINT', stop);
  }
};

/** What is waited for before anybody hears of it: a failure, too, is told where the terminal is free again. */
const settled = <T>(work: Promise<T>): Promise<() => T> =>
  work.then(
    (value) => () => value,
    (error: unknown) => () => {
      throw error;
    },
  );
