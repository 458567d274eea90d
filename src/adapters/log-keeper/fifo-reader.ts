/**
 * Reads one FIFO to its end, without ever blocking, into a buffer that all FIFOs of the process share. Knows when the
 * last writer has gone; does not know what is read. Nothing is read while paused, so a writer feels it once the
 * FIFO is full.
 */
import { closeSync, constants, fstatSync, openSync, readSync, type Stats, statSync } from 'node:fs';
import { Socket } from 'node:net';
import { FailureError, messageOf } from '../../domain/model/errors.ts';

const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
/** Reads in a row when pulling: a writer that never stops must not keep the process from everything else. */
const PULLS_MAX = 32;

export interface FifoReader {
  /** True for the FIFO that stands at `path` now; false when it has been replaced by another. */
  readonly isAt: (path: string) => boolean;
  readonly pause: () => void;
  readonly resume: () => void;
  /**
   * Reads what is there now, and notices an end that the kernel does not tell: a FIFO whose writers had gone before
   * it was opened looks like one whose writers have yet to come. To be called when none are to come.
   */
  readonly pull: () => void;
  /** Stops reading; what is in the FIFO stays there. Doing it again is nothing. */
  readonly close: () => void;
}

export interface FifoReaderOptions {
  readonly path: string;
  /** What is read is at its start, until onData returns. */
  readonly readArea: Buffer;
  /** false: pause. */
  readonly onData: (length: number) => boolean;
  /** Called once, unless closed before: all writers have gone and everything has been read. */
  readonly onEnd: () => void;
}

const openFifo = (path: string): { readonly fd: number; readonly stats: Stats } => {
  try {
    const fd = openSync(path, OPEN_FLAGS);
    const stats = fstatSync(fd);
    if (stats.isFIFO()) return { fd, stats };
    closeSync(fd);
  } catch (error) {
    throw new FailureError('HostFailed', `Opening the FIFO ${path} for reading failed: ${messageOf(error)}`);
  }
  throw new FailureError('HostFailed', `Opening the FIFO ${path} for reading failed: it is no FIFO.`);
};

/** Opens the FIFO at once, so that a writer may open it; throws FailureError HostFailed. */
export const openFifoReader = ({ path, readArea, onData, onEnd }: FifoReaderOptions): FifoReader => {
  const { fd, stats } = openFifo(path);
  let open = true;

  const close = (): void => {
    open = false;
    socket.destroy();
  };

  const end = (): void => {
    if (!open) return;
    close();
    onEnd();
  };

  const socket = new Socket({
    fd,
    readable: true,
    writable: false,
    onread: { buffer: readArea, callback: (length) => open && onData(length) },
  });
  // An error is an end as well: nothing more is to be had from it.
  socket.on('error', end);
  socket.on('end', end);
  socket.resume();

  const isAt: FifoReader['isAt'] = (otherPath) => {
    if (!open) return false;
    const other = statSync(otherPath, { throwIfNoEntry: false });
    return other !== undefined && other.ino === stats.ino && other.dev === stats.dev;
  };

  const pull = (): void => {
    for (let pulls = 0; open && pulls < PULLS_MAX; pulls += 1) {
      let length: number;
      try {
        length = readSync(fd, readArea);
      } catch {
        // EAGAIN: it is empty, and there is a writer.
        return;
      }
      if (length === 0) {
        end();
        return;
      }
      if (!onData(length)) {
        socket.pause();
        return;
      }
    }
  };

  return {
    isAt,
    pause: () => {
      socket.pause();
    },
    resume: () => {
      if (open) socket.resume();
    },
    pull,
    close,
  };
};
