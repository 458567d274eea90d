/** Whether anybody listens at a socket, before the client that would speak to it is loaded: that takes longer than most reads. */
import { connect as connectSocket } from 'node:net';

const PROBE_TIMEOUT_MS = 5_000;

const WHY: Readonly<Record<string, string>> = {
  ENOENT: 'there is no such socket',
  ECONNREFUSED: 'nobody listens',
  EACCES: 'none that this user may connect to; try as root',
};

/** Why nobody answers at a socket; null when somebody listens. gRPC would try again and again, and then say less. */
export const whyUnreachable = (socketPath: string): Promise<string | null> =>
  new Promise((resolve) => {
    const socket = connectSocket(socketPath);
    const end = (why: string | null): void => {
      socket.destroy();
      resolve(why);
    };
    socket.setTimeout(PROBE_TIMEOUT_MS, () => end('nobody answers'));
    socket.once('connect', () => end(null));
    socket.once('error', (error: NodeJS.ErrnoException) => end(WHY[error.code ?? ''] ?? error.message));
  });
