/**
 * One forwarded connection, in the thread that has the client's: to a port of a pod's loopback, and everything passed on in
 * both directions, each as fast as its taker. Knows nothing of pods.
 */
import { finished } from 'node:stream/promises';
import { readReusing } from '../../platform/linux/reused-buffers.ts';
import type { ForwardedBytes, ForwardTarget, PortStreams } from '../streaming/types.ts';
import { dialLoopback } from './loopback.ts';

/**
 * Resolves when the connection is over: both sides have ended, or one broke, or `signal` ended it. An end passes; the client is
 * told the end in any case. Rejects when nobody answers, with what was tried.
 */
export const forward = async (
  { input, output }: PortStreams,
  { port, netnsPath }: ForwardTarget,
  signal: AbortSignal,
): Promise<ForwardedBytes> => {
  const onread = readReusing((chunk, left) => {
    if (!output.write(chunk, left)) socket.pause();
  });
  const socket = await dialLoopback(port, netnsPath, onread);
  const end = (): void => {
    socket.destroy();
  };
  output.on('drain', () => socket.resume());
  output.on('close', end);
  input.on('close', () => {
    if (!input.readableEnded) end();
  });
  socket.on('end', () => output.end());
  signal.addEventListener('abort', end);
  if (signal.aborted || output.destroyed || (input.destroyed && !input.readableEnded)) end();
  input.pipe(socket);
  socket.resume();
  await finished(socket).catch(end);
  signal.removeEventListener('abort', end);
  input.destroy();
  output.end();
  return { toPodBytes: socket.bytesWritten, fromPodBytes: socket.bytesRead };
};
