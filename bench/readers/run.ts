/** Runs scribe as people do, and says when it said its first line, when it ended, and what it cost. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

export const program = join(import.meta.dirname, '../../bin/scribe');

export interface Ran {
  /** null: it said nothing. */
  readonly firstMs: number | null;
  readonly endMs: number;
  /** Of it and all that it started. */
  readonly cpuMs: number;
  readonly lines: number;
}

/** bash tells the times of what it ran. */
const timed = 'TIMEFORMAT="%U %S"; time "$@" 2>/dev/null';

export const runScribe = async (words: readonly string[], signal?: AbortSignal): Promise<Ran> => {
  const startedMs = performance.now();
  const child = spawn('bash', ['-c', timed, 'bash', program, ...words], {
    stdio: ['ignore', 'pipe', 'pipe'],
    ...(signal === undefined ? {} : { signal }),
  });
  child.on('error', () => {});
  let firstMs: number | null = null;
  let [lines, times] = [0, ''];
  child.stdout.on('data', (chunk: Buffer) => {
    firstMs ??= performance.now() - startedMs;
    for (const byte of chunk) if (byte === 10) lines += 1;
  });
  child.stderr.on('data', (chunk: Buffer) => (times += chunk.toString()));
  await once(child, 'close');
  const [userS = 0, systemS = 0] = times.trim().split(' ').map(Number);
  return { firstMs, endMs: performance.now() - startedMs, cpuMs: Math.round((userS + systemS) * 1000), lines };
};

/** Until `scribe at --listen` has said that it listens, from its start on. */
export const timeToListen = async (words: readonly string[]): Promise<number> => {
  const startedMs = performance.now();
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  await Promise.race([once(child.stderr, 'data'), ended]);
  const tookMs = performance.now() - startedMs;
  child.kill();
  await ended;
  return tookMs;
};

/** How many processes wait for or have a processor, in the last minute: what wall times are worth. */
export const load = (): string => readFileSync('/proc/loadavg', 'utf8').split(' ')[0] ?? '?';
