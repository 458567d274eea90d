/**
 * client-go on the other end of a streaming URL: test/support/streaming-client, built on demand into the cache directory.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { access, mkdir, readdir, readFile, rename, rm } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Owner, onCleanup } from './cleanup.ts';
import { run } from './process.ts';

const sources = join(import.meta.dirname, 'streaming-client');
const cache = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'scribe/bin');
const buildTimeoutMs = 600_000;

const hashOfSources = async (): Promise<string> => {
  const hash = createHash('sha256');
  for (const name of (await readdir(sources)).sort()) hash.update(await readFile(join(sources, name)));
  return hash.digest('hex').slice(0, 16);
};

const build = async (path: string): Promise<void> => {
  await mkdir(cache, { recursive: true });
  const made = `${path}.${process.pid}`;
  const argv = ['go', 'build', '-C', sources, '-trimpath', '-o', made, '.'];
  const env = { ...process.env, GOFLAGS: '-mod=readonly' };
  const result = await run(argv, { env, timeoutMs: buildTimeoutMs }).catch((error: unknown) => {
    throw new Error(`The streaming client needs Go to be built (apt-get install golang, or go.dev): ${String(error)}`);
  });
  if (result.exitCode !== 0) throw new Error(`Building ${sources} failed: ${result.stderr}`);
  // Another file's tests may have built the same meanwhile.
  await rename(made, path);
  await rm(made, { force: true });
};

/** The client's path; builds it the first time, which takes minutes on a small machine. */
export const streamingClient = async (): Promise<string> => {
  const path = join(cache, `streaming-client-${await hashOfSources()}`);
  await access(path).catch(() => build(path));
  return path;
};

/** What client-go made of the session's ending. */
export interface ClientEnding {
  readonly exitCode: number;
  /** Empty when all went well. */
  readonly error: string;
}

export interface ClientProcess {
  readonly child: ChildProcess;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Rejects when the client ended without telling. */
  readonly ending: Promise<ClientEnding>;
}

/** Starts the client; it is gone when its owner ends. */
export const startClient = async (owner: Owner, argv: readonly string[]): Promise<ClientProcess> => {
  const child = spawn(await streamingClient(), argv, { stdio: ['pipe', 'pipe', 'pipe', 'pipe'] });
  const closed = once(child, 'close');
  onCleanup(owner, async () => {
    child.kill('SIGKILL');
    await closed;
  });
  // A client that has ended does not read its input any more.
  child.stdin.on('error', () => undefined);
  const ending = text(child.stdio[3] as Readable).then((told) => JSON.parse(told) as ClientEnding);
  ending.catch(() => undefined);
  return { child, stdin: child.stdin, stdout: child.stdout, stderr: child.stderr, ending };
};
