/** Runs scribe as people do, and says when it said its first line, when it ended, and what it cost. */
import { spawn } from 'node:child_process';
import { hash } from 'node:crypto';
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

const HASHES = 50_000;
const HASHING_ROUNDS = 5;
const BYTES_HASHED = 64;

/** So long takes one SHA-256, of which verifying is made: a machine that is shared has hours in which all takes half as long again. */
const sha256Ns = (): number => {
  const bytes = Buffer.alloc(BYTES_HASHED);
  const tookMs = Array.from({ length: HASHING_ROUNDS }, () => {
    const startedMs = performance.now();
    for (let count = 0; count < HASHES; count++) hash('sha256', bytes, 'binary');
    return performance.now() - startedMs;
  });
  return Math.round((Math.min(...tookMs) * 1e6) / HASHES);
};

/** What wall times are worth: how many processes waited for or had a processor in the last minute, and how fast one is now. */
export const load = (): string => {
  const [processes = '?'] = readFileSync('/proc/loadavg', 'utf8').split(' ');
  return `${processes}, SHA-256 of ${BYTES_HASHED} bytes in ${sha256Ns()} ns`;
};
