/** NRI's socket: where plugins connect by themselves. Knows nothing of what they say. */
import { mkdir } from 'node:fs/promises';
import type { Socket } from 'node:net';
import { dirname } from 'node:path';
import { messageOf } from '../../domain/model/errors.ts';
import { dial } from '../../platform/linux/dial.ts';
import { listenUnix, type UnixListener } from '../../platform/linux/unix-listener.ts';

const CONNECTIONS_MAX = 128;
const DIAL_MS = 1_000;

/** A socket that a dead process has left is not. */
const isServed = async (path: string): Promise<boolean> => {
  const socket = await dial({ path }, DIAL_MS).catch(() => null);
  socket?.destroy();
  return socket !== null;
};

/** null, and a finding: there can be no socket, and all else goes on. */
export const listenForPlugins = async (
  socketPath: string,
  onConnection: (socket: Socket) => void,
  report: (sentence: string) => void,
): Promise<UnixListener | null> => {
  try {
    await mkdir(dirname(socketPath), { recursive: true, mode: 0o700 });
    if (await isServed(socketPath)) throw new Error('another runtime is listening there');
    return await listenUnix(socketPath, CONNECTIONS_MAX, onConnection);
  } catch (error) {
    report(`NRI plugins can not connect: there can be no socket at ${socketPath} (${messageOf(error)}).`);
    return null;
  }
};
