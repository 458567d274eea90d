/** Connecting to a stream socket within a bound of time. Tries once: whether to try again is the caller's to say. */
import { connect, type NetConnectOpts, type Socket } from 'node:net';

/** Resolves once connected; rejects with the error of connect(2), or when that takes longer than `timeoutMs`. */
export const dial = (target: NetConnectOpts, timeoutMs: number): Promise<Socket> =>
  new Promise((resolve, reject) => {
    const socket = connect(target);
    const timer = setTimeout(() => {
      socket.destroy(new Error(`no connection within ${Math.round(timeoutMs)} ms`));
    }, timeoutMs);
    socket.once('error', (error) => {
      clearTimeout(timer);
      reject(error);
    });
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.removeAllListeners('error');
      resolve(socket);
    });
  });
