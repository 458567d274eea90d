/** Descriptors of FIFOs as sockets, for libuv to watch. Apart from the system calls: threads that need no more load this. */
import { close } from 'node:fs';
import { Socket } from 'node:net';

/** Takes the descriptor over: it is closed with the socket, or when it can't be made one. */
export const fifoSocket = (fd: number, end: 'reader' | 'writer'): Socket => {
  try {
    // Wrapped at once: from the first poll on libuv sees writers come and go, before it there is nothing to miss.
    return new Socket({ fd, readable: end === 'reader', writable: end === 'writer' });
  } catch (error) {
    close(fd, () => undefined);
    throw error;
  }
};
