/**
 * One forwarded connection, from the thread that has the client's: to a port of this network namespace, or through the
 * forwarder that is in a pod's. Knows nothing of how forwarders come and go.
 */
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { readLine } from '../../platform/rpc/lines.ts';
import type { ForwardedBytes, ForwardTarget } from '../streaming/types.ts';
import { dialHalfOpen, dialLoopback, join } from './loopback.ts';

const connect = async ({ port, forwarderPath }: ForwardTarget): Promise<Socket> => {
  if (forwarderPath === null) return dialLoopback(port);
  const socket = await dialHalfOpen({ path: forwarderPath });
  socket.on('error', () => socket.destroy());
  socket.write(`${port}\n`);
  const answer = await readLine(socket);
  if (answer === 'ok') return socket;
  socket.destroy();
  throw new Error(answer);
};

/** Resolves when the connection is over, or `signal` ended it; rejects when nobody answers, with what was tried. */
export const forward = async (client: Duplex, target: ForwardTarget, signal: AbortSignal): Promise<ForwardedBytes> => {
  const socket = await connect(target);
  const head = { read: socket.bytesRead - socket.readableLength, written: socket.bytesWritten };
  const end = (): void => {
    socket.destroy();
  };
  signal.addEventListener('abort', end);
  if (signal.aborted) end();
  await join(client, socket);
  signal.removeEventListener('abort', end);
  return { toPodBytes: socket.bytesWritten - head.written, fromPodBytes: socket.bytesRead - head.read };
};
