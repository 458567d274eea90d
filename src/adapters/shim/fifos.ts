/**
 * FIFOs: made and opened without ever waiting for the other side, and wrapped as sockets for libuv to watch. Opens only
 * FIFOs, never what somebody may have put in their place.
 */
import { constants, open as openCallback } from 'node:fs';
import { lstat } from 'node:fs/promises';
import { Socket } from 'node:net';
import { promisify } from 'node:util';
import { FailureError } from '../../domain/errors.ts';
import { closeDescriptor, errorCodeOf, makeNode, NodeType } from '../linux/syscalls.ts';

const openDescriptor = promisify(openCallback);
const ownerOnly = 0o600;

/** Makes a FIFO for root alone; one that is there already is left as it is. */
export const makeFifo = async (path: string): Promise<void> => {
  try {
    await makeNode(path, NodeType.fifo | ownerOnly);
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
    if ((await lstat(path)).isFIFO()) return;
    throw new FailureError('HostFailed', `${path} is in the way: a FIFO has to be made there.`, { cause: error });
  }
};

const wrap = (fd: number, readable: boolean): Socket => {
  try {
    // Wrapped at once: from the first poll on libuv sees writers come and go, before it there is nothing to miss.
    return new Socket({ fd, readable, writable: !readable });
  } catch (error) {
    closeDescriptor(fd);
    throw error;
  }
};

const openFifo = (path: string, access: number): Promise<number> =>
  openDescriptor(path, access | constants.O_NONBLOCK | constants.O_NOFOLLOW);

/** Opens a FIFO for reading: its end comes when the last writer has gone, not while none has come yet. */
export const openFifoReader = async (path: string): Promise<Socket> =>
  wrap(await openFifo(path, constants.O_RDONLY), true);

/** Opens a FIFO so that it never ends: with a writer of our own, others may come and go. */
export const openEndlessFifoReader = async (path: string): Promise<Socket> =>
  wrap(await openFifo(path, constants.O_RDWR), true);

export interface FifoWriter {
  readonly socket: Socket;
  /** Lets go of what was written and not read by anybody. */
  readonly release: () => void;
}

/**
 * Opens a FIFO for writing whether or not its reader has come. What is written waits for it until `release`, also when
 * the socket is closed before: a FIFO that nobody has open forgets what it held.
 */
export const openFifoWriter = async (path: string): Promise<FifoWriter> => {
  const held = await openFifo(path, constants.O_RDONLY);
  try {
    return { socket: wrap(await openFifo(path, constants.O_WRONLY), false), release: () => closeDescriptor(held) };
  } catch (error) {
    closeDescriptor(held);
    throw error;
  }
};

/** Opens a FIFO for writing to the reader that it has; null when it has none, or is not there. */
export const openListenedFifo = async (path: string): Promise<Socket | null> => {
  try {
    return wrap(await openFifo(path, constants.O_WRONLY), false);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENXIO' || code === 'ENOENT') return null;
    throw error;
  }
};
