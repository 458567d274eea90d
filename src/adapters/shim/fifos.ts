/**
 * FIFOs: made and opened without ever waiting for the other side. The code that opens one closes it, or hands it on.
 */
import { constants } from 'node:fs';
import type { Socket } from 'node:net';
import { FailureError } from '../../domain/model/errors.ts';
import { type FileCalls, pooledCalls } from '../../platform/linux/file-calls.ts';
import { fifoSocket } from '../../platform/linux/fifo-socket.ts';
import { closeDescriptor, errorCodeOf, NodeType } from '../../platform/linux/syscalls.ts';

const ownerOnly = 0o600;

/** Makes a FIFO for root alone; one that is there already is left as it is. */
export const makeFifo = async (path: string, { mknod, lstat }: FileCalls = pooledCalls): Promise<void> => {
  try {
    await mknod(path, NodeType.fifo | ownerOnly);
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
    if ((await lstat(path)).isFIFO()) return;
    throw new FailureError('HostFailed', `${path} is in the way: a FIFO has to be made there.`, { cause: error });
  }
};

const openFifo = (path: string, access: number, { open }: FileCalls): Promise<number> =>
  open(path, access | constants.O_NONBLOCK | constants.O_NOFOLLOW);

/** Opens a FIFO for reading: its end comes when the last writer has gone, not while none has come yet. */
export const openFifoReader = (path: string, calls: FileCalls = pooledCalls): Promise<number> =>
  openFifo(path, constants.O_RDONLY, calls);

/** Opens a FIFO so that it never ends: with a writer of our own, others may come and go. */
export const openEndlessFifoReader = async (path: string): Promise<Socket> =>
  fifoSocket(await openFifo(path, constants.O_RDWR, pooledCalls), 'reader');

export interface FifoWriter {
  readonly fd: number;
  /** Lets go of what was written and not read by anybody. */
  readonly release: () => void;
}

/**
 * Opens a FIFO for writing whether or not its reader has come. What is written waits for it until `release`, also when
 * the descriptor is closed before: a FIFO that nobody has open forgets what it held.
 */
export const openFifoWriter = async (path: string, calls: FileCalls): Promise<FifoWriter> => {
  const held = await openFifo(path, constants.O_RDONLY, calls);
  try {
    return { fd: await openFifo(path, constants.O_WRONLY, calls), release: () => closeDescriptor(held) };
  } catch (error) {
    closeDescriptor(held);
    throw error;
  }
};

/** Opens a FIFO for writing to the reader that it has; null when it has none, or is not there. */
export const openListenedFifo = async (path: string): Promise<number | null> => {
  try {
    return await openFifo(path, constants.O_WRONLY, pooledCalls);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENXIO' || code === 'ENOENT') return null;
    throw error;
  }
};
