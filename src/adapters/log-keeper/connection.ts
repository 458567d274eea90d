/**
 * One connection from the daemon to a log keeper: numbers requests, matches replies, bounds the wait. Knows nothing
 * of starting keepers or of what to do when one is gone.
 */
import { createConnection } from 'node:net';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { createLineReader } from '../../platform/rpc/lines.ts';
import { createPendingReplies } from '../../platform/rpc/pending.ts';
import { encodeLine, type KeeperRequest, parseReply, REPLY_BYTES_MAX } from './protocol.ts';

/** A request was not answered because the connection ended: it may have been performed or not. */
export class ConnectionLost extends Error {}

export interface KeeperConnection {
  /**
   * Rejects with the keeper's FailureError, with FailureError TimedOut, or with ConnectionLost. Resolves with what the
   * keeper sent, unchecked.
   */
  readonly request: (request: KeeperRequest, timeoutMs: number) => Promise<unknown>;
  readonly closed: Promise<void>;
  /** Sends what was asked for before, then closes. */
  readonly end: () => void;
  readonly destroy: () => void;
}

/** Connects to the unix socket at `path`; rejects with the error of connect(2) when nobody listens there. */
export const connectToKeeper = async (path: string): Promise<KeeperConnection> => {
  const pending = createPendingReplies<unknown>();
  const closed = Promise.withResolvers<void>();
  let lastNumber = 0;

  const receive = (line: string): void => {
    try {
      const reply = parseReply(line);
      if ('failure' in reply) {
        const { reason, message } = reply.failure;
        pending.reject(reply.number, new FailureError(reason, message));
      } else pending.resolve(reply.number, reply.result);
    } catch (error) {
      socket.destroy(new Error(`The log keeper at ${path} sent what is no reply: ${messageOf(error)}`));
    }
  };

  const socket = createConnection(path);
  await new Promise<void>((resolve, reject) => {
    socket.once('connect', resolve);
    socket.once('error', reject);
  });
  socket.on('error', () => socket.destroy());
  socket.on(
    'data',
    createLineReader(REPLY_BYTES_MAX, receive, () => socket.destroy()),
  );
  socket.on('close', () => {
    pending.close(new ConnectionLost(`The log keeper at ${path} has gone`));
    closed.resolve();
  });

  const request: KeeperConnection['request'] = (message, timeoutMs) => {
    lastNumber += 1;
    const number = lastNumber;
    const late = (): FailureError => {
      const what = `The log keeper did not answer ${message.op} within ${timeoutMs} ms`;
      return new FailureError('TimedOut', `${what}: the disk its logs are on may hang.`);
    };
    const reply = pending.wait(number, { bound: { timeoutMs, late } });
    if (pending.has(number)) socket.write(encodeLine({ number, ...message }));
    return reply;
  };

  return {
    request,
    closed: closed.promise,
    end: () => {
      socket.end();
    },
    destroy: () => {
      socket.destroy();
    },
  };
};
