/**
 * FIFOs: made and opened without ever waiting for the other side. The code that opens one closes it, or hands it on.
 */
import { constants } from 'node:fs';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { FailureError } from '../../domain/model/errors.ts';
import { type FileCalls, pooledCalls } from '../../platform/linux/file-calls.ts';
import { fifoSocket } from '../../platform/linux/fifo-socket.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { closeDescriptor, NodeType } from '../../platform/linux/syscalls.ts';

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

export interface FifoWriter {
  readonly fd: number;
  /**
   * Lets the reader hear of an end, once `fd` is closed: when there is one, or `isOver`. One that opens the FIFO behind its last
   * writer would wait for another, and read nothing of what is in it.
   */
  readonly end: (isOver: () => boolean) => Promise<void>;
  /** Lets go of what was written and not read by anybody. */
  readonly release: () => void;
}

/** A reader is there mostly at once. The kernel tells of none that comes, but to who would wait for it in `open`, maybe for good. */
const LOOK_MS = { first: 2, max: 100 } as const;

const isRead = async (path: string): Promise<boolean> => {
  const fd = await openListenedFifo(path);
  if (fd !== null) closeDescriptor(fd);
  return fd !== null;
};

/**
 * Opens a FIFO for writing whether or not its reader has come. What is written waits for it until `release`, also when
 * the descriptor is closed before: a FIFO that nobody has open forgets what it held.
 */
export const openFifoWriter = async (path: string, calls: FileCalls): Promise<FifoWriter> => {
  const held = new Set<number>();
  const hold = async (access: number): Promise<number> => {
    const fd = await openFifo(path, access, calls);
    held.add(fd);
    return fd;
  };
  const letGo = (fd: number): void => {
    if (held.delete(fd)) closeDescriptor(fd);
  };
  const release = (): void => held.forEach(letGo);
  try {
    const reader = await hold(constants.O_RDONLY);
    const writer = await hold(constants.O_WRONLY);
    const end: FifoWriter['end'] = async (isOver) => {
      letGo(reader);
      // Where it can't be looked for, it is taken to be there: a command that waits for an end must have it.
      const isThere = (): Promise<boolean> => isRead(path).catch(() => true);
      for (let lookMs: number = LOOK_MS.first; !isOver() && !(await isThere()); ) {
        await sleep(lookMs);
        lookMs = Math.min(2 * lookMs, LOOK_MS.max);
      }
      letGo(writer);
    };
    return { fd: await openFifo(path, constants.O_WRONLY, calls), end, release };
  } catch (error) {
    release();
    throw error;
  }
};
