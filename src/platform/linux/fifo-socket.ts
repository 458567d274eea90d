/** Descriptors of FIFOs as sockets, for libuv to watch. Apart from the system calls: threads that need no more load this. */
import { close } from 'node:fs';
import { type OnReadOpts, Socket } from 'node:net';

/**
 * Takes the descriptor over: it is closed with the socket, or when it can't be made one.
 *
 * @param onread  where a reader reads to, instead of into buffers of its own
 */
export const fifoSocket = (fd: number, end: 'reader' | 'writer', onread?: OnReadOpts): Socket => {
  try {
    // Wrapped at once: from the first poll on libuv sees writers come and go, before it there is nothing to miss.
    const options = { fd, readable: end === 'reader', writable: end === 'writer' };
    return new Socket(onread === undefined ? options : { ...options, onread });
  } catch (error) {
    close(fd, () => undefined);
    throw error;
  }
};
