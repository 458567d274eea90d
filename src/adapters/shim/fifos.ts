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

const openFifo = async (path: string, access: number): Promise<Socket> => {
  const fd = await openDescriptor(path, access | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  try {
    // Wrapped at once: from the first poll on libuv sees writers come and go, before it there is nothing to miss.
    return new Socket({ fd, readable: true, writable: false });
  } catch (error) {
    closeDescriptor(fd);
    throw error;
  }
};

/** Opens a FIFO for reading: its end comes when the last writer has gone, not while none has come yet. */
export const openFifoReader = (path: string): Promise<Socket> => openFifo(path, constants.O_RDONLY);

/** Opens a FIFO so that it never ends: with a writer of our own, others may come and go. */
export const openEndlessFifoReader = (path: string): Promise<Socket> => openFifo(path, constants.O_RDWR);
