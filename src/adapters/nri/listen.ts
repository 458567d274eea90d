/** NRI's socket: where plugins connect by themselves. Knows nothing of what they say. */
import type { Socket } from 'node:net';
import { dirname } from 'node:path';
import { errorCodeOf } from '../../platform/error-code.ts';
import { messageOf } from '../../domain/model/errors.ts';
import { dial } from '../../platform/linux/dial.ts';
import { makeDirectories } from '../../platform/linux/make-directories.ts';
import { listenUnix, type UnixListener } from '../../platform/linux/unix-listener.ts';

const CONNECTIONS_MAX = 128;
const DIAL_MS = 1_000;

/** What connecting says of a socket that a dead process has left, and of none. */
const NOBODY: readonly unknown[] = ['ECONNREFUSED', 'ENOENT'];

/** In doubt it is: what another runtime has may not be taken away. */
const isServed = async (path: string): Promise<boolean> => {
  try {
    (await dial({ path }, DIAL_MS)).destroy();
    return true;
  } catch (error) {
    return !NOBODY.includes(errorCodeOf(error));
  }
};

const REMEDY =
  'Only plugins that are launched are asked: name another path in nri.socket or --nri-socket and restart scribe, or set nri.disable_connections';

/** null, and a finding: there can be no socket, and all else goes on. */
export const listenForPlugins = async (
  socketPath: string,
  onConnection: (socket: Socket) => void,
  report: (sentence: string) => void,
): Promise<UnixListener | null> => {
  try {
    await makeDirectories(dirname(socketPath), 0o700);
    if (await isServed(socketPath)) throw new Error('another runtime is listening there');
    return await listenUnix(socketPath, CONNECTIONS_MAX, onConnection);
  } catch (error) {
    report(`NRI plugins can not connect: there can be no socket at ${socketPath} (${messageOf(error)}). ${REMEDY}.`);
    return null;
  }
};
