/** Listening on unix sockets in the file system: takes the place of a socket that a dead process has left. Knows no protocol. */
import { chmod, lstat, unlink } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { FailureError } from '../../domain/model/errors.ts';

/** sun_path holds 108 bytes with its final zero. */
export const SOCKET_PATH_BYTES_MAX = 107;

export interface UnixListener {
  /** Ends all connections, stops listening and removes the socket. */
  readonly close: () => Promise<void>;
  /** Rejects when listening has broken down, settles on close. */
  readonly ended: Promise<void>;
}

const removeStaleSocket = async (path: string): Promise<void> => {
  const found = await lstat(path).catch(() => null);
  if (found === null) return;
  if (!found.isSocket()) throw new FailureError('HostFailed', `${path} is in the way: a socket has to be made there.`);
  await unlink(path);
};

/**
 * Listens at `path` (0600). Connections beyond `connectionsMax` are closed; what is connected is half open where its other
 * side has said all. Rejects where there cannot be a socket.
 */
export const listenUnix = async (
  path: string,
  connectionsMax: number,
  onConnection: (socket: Socket) => void,
): Promise<UnixListener> => {
  if (Buffer.byteLength(path) > SOCKET_PATH_BYTES_MAX) {
    throw new FailureError(
      'HostFailed',
      `The socket path ${path} is longer than ${SOCKET_PATH_BYTES_MAX} bytes: choose a shorter directory.`,
    );
  }
  await removeStaleSocket(path);
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
    onConnection(socket);
  });
  server.maxConnections = connectionsMax;
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen({ path }, () => {
      server.off('error', reject);
      resolve();
    });
  });
  await chmod(path, 0o600);
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  ended.catch(() => undefined);
  server.on('error', reject);
  return {
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((done) => {
        server.close(() => {
          done();
        });
      });
      resolve();
    },
    ended,
  };
};
