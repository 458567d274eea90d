/**
 * client-go on the other end of a streaming URL: test/support/streaming-client.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Readable, Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { type Owner, onCleanup } from './cleanup.ts';
import { goProgram } from './go-program.ts';

/** The client's path. */
export const streamingClient = (): Promise<string> => goProgram('streaming-client');

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
