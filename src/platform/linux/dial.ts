/** Connecting to a stream socket within a bound of time. Tries once: whether to try again is the caller's to say. */
import { type NetConnectOpts, Socket } from 'node:net';
import { within } from '../rpc/timeout.ts';

/** Resolves once connected; rejects with the error of connect(2), or when that takes longer than `timeoutMs`. */
export const dial = async (
  target: NetConnectOpts,
  timeoutMs: number,
  socket: Socket = new Socket(),
): Promise<Socket> => {
  socket.connect(target);
  const connected = new Promise<void>((resolve, reject) => {
    socket.once('error', reject);
    socket.once('connect', resolve);
  });
  try {
    await within(connected, timeoutMs, () => new Error(`no connection within ${Math.round(timeoutMs)} ms`));
  } catch (error) {
    socket.destroy();
    throw error;
  }
  socket.removeAllListeners('error');
  return socket;
};
