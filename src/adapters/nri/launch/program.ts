/**
 * The program of a launched plugin, and the connection that it finds at descriptor 3. The spawner starts it and connects
 * it to a socket that is listened on for this one connection; it ends with the daemon.
 */
import { createServer, type Socket } from 'node:net';
import { randomBytes } from 'node:crypto';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { messageOf } from '../../../domain/model/errors.ts';
import { bare } from '../../../domain/values/sentence.ts';
import { orAfter, within } from '../../../platform/rpc/timeout.ts';
import type { RunResult, Spawner } from '../../../platform/spawner/types.ts';
import type { FoundPlugin } from './discover.ts';

export interface PluginProgram {
  readonly socket: Socket;
  /** null: not known yet. */
  readonly pid: () => number | null;
  /** Resolves with how, in words. */
  readonly ended: Promise<string>;
  /** Gives it a moment to end by itself, since its connection has closed, and ends it then. Resolves with how it ended. */
  readonly leave: () => Promise<string>;
}

const FD = 3;
const SAID_BYTES_MAX = 4096;
/** Why it ended is often followed by that its connection is lost. */
const SAID_LINES = 3;
const LEAVE_MS = 2_000;

const describeEnd = ({ exitCode, signalName, stderr, stdout }: RunResult): string => {
  const how = signalName === null ? `it ended with exit code ${exitCode}` : `it was ended by ${signalName}`;
  const said = Buffer.from(stderr.length > 0 ? stderr : stdout)
    .toString()
    .trimEnd()
    .split('\n')
    .slice(-SAID_LINES)
    .join(' / ');
  return said === '' ? how : `${how}, and its last words were: ${said.slice(-1024)}`;
};

/** Listens for a single connection. */
const acceptOne = async (path: string) => {
  const { promise: socket, resolve } = Promise.withResolvers<Socket>();
  const server = createServer({ allowHalfOpen: true }, (accepted) => {
    server.close();
    // Whoever takes it hears of its close.
    accepted.on('error', () => undefined);
    resolve(accepted);
  });
  await new Promise<void>((listening, reject) => {
    server.once('error', reject);
    server.listen({ path }, listening);
  });
  return { socket, close: () => void server.close() };
};

/** Rejects when it can't be started within the time. */
export const startPlugin = async (
  { path, name, index }: FoundPlugin,
  { spawner, socketDir, timeoutMs }: { spawner: Pick<Spawner, 'run'>; socketDir: string; timeoutMs: number },
): Promise<PluginProgram> => {
  const socketPath = join(socketDir, `${randomBytes(8).toString('hex')}.sock`);
  const door = await acceptOne(socketPath);
  const killing = new AbortController();
  let pid: number | null = null;
  const run = spawner.run({
    command: path,
    args: [],
    env: { NRI_PLUGIN_NAME: name, NRI_PLUGIN_IDX: index, NRI_PLUGIN_SOCKET: String(FD) },
    cwd: '/',
    socketPath,
    timeoutMs: null,
    outputBytesMax: SAID_BYTES_MAX,
    keepsEnd: true,
    onStarted: (started) => {
      pid = started;
    },
    signal: killing.signal,
  });
  const ended = run.then(describeEnd, (error: unknown) => bare(messageOf(error)));
  try {
    const failed = run.then(() => new Promise<never>(() => undefined));
    const late = (): Error => new Error(`it could not be started within ${timeoutMs} ms`);
    const socket = await within(Promise.race([door.socket, failed]), timeoutMs, late);
    return {
      socket,
      pid: () => pid,
      ended,
      leave: async () => {
        await orAfter(ended, LEAVE_MS, null);
        killing.abort();
        return await ended;
      },
    };
  } catch (error) {
    killing.abort();
    throw error;
  } finally {
    door.close();
    await rm(socketPath, { force: true });
  }
};
