/**
 * How far a download has come, as a file beside it that only grows: the downloading thread appends to it, and an unpacking
 * process that reads what is there already is woken by the kernel (inotify). Neither knows of the other. Unpacking processes
 * load this file: it must stay small. A line is the number of bytes that are there from the beginning on, or RESTART.
 */
import { closeSync, openSync, readSync, rmSync, watch, writeSync } from 'node:fs';
import { FailureError } from '../../domain/model/errors.ts';

/** What was there is not what comes: whoever has read it gives up. */
const RESTART = 'restart';
const STEP_BYTES_MIN = 64 * 1024;
const STEP_BYTES_MAX = 1024 * 1024;
const LINES_BYTES = 16 * 1024;
const FILE_MODE = 0o600;

export interface Arrivals {
  /** Told of every piece, it writes now and then, and when all is there. */
  readonly tell: (bytesThere: number) => void;
  readonly restart: () => void;
  /** The file goes; who has it open keeps what was told. Does nothing the second time. */
  readonly remove: () => void;
}

/** As much again as was told before, within bounds: who waits for the first bytes has them soon, and few lines tell of all. */
const stepAfter = (toldBytes: number): number => Math.min(STEP_BYTES_MAX, Math.max(STEP_BYTES_MIN, toldBytes));

export const createArrivals = (path: string, sizeBytes: number): Arrivals => {
  rmSync(path, { force: true });
  const fd = openSync(path, 'ax', FILE_MODE);
  let toldBytes = 0;
  let isOpen = true;
  const say = (line: string): void => {
    if (isOpen) writeSync(fd, `${line}\n`);
  };
  return {
    tell: (bytesThere) => {
      if (bytesThere < toldBytes + stepAfter(toldBytes) && bytesThere < sizeBytes) return;
      toldBytes = bytesThere;
      say(String(bytesThere));
    },
    restart: () => {
      toldBytes = 0;
      say(RESTART);
    },
    remove: () => {
      if (!isOpen) return;
      isOpen = false;
      closeSync(fd);
      rmSync(path, { force: true });
    },
  };
};

export interface Follower {
  /** Resolves with how many bytes are there once that is more than `bytesRead`. Throws FailureError after a restart. */
  readonly beyond: (bytesRead: number) => Promise<number>;
}

/** The numbers of whole lines; what follows the last of them is kept for later. */
const createLineReader = (fd: number): (() => readonly string[]) => {
  const buffer = Buffer.alloc(LINES_BYTES);
  let rest = '';
  return () => {
    for (let bytes = readSync(fd, buffer); bytes > 0; bytes = readSync(fd, buffer))
      rest += buffer.toString('latin1', 0, bytes);
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    return lines;
  };
};

/** Opens the file, so that it can be followed when its path is out of reach. Throws ENOENT when the download is over. */
export const followArrivals = (path: string): Follower => {
  const fd = openSync(path, 'r');
  // Its errors are the process's: whoever has it unpack then waits for the whole download.
  const watcher = watch(path);
  watcher.unref();
  const lines = createLineReader(fd);
  let there = 0;
  let woken = Promise.withResolvers<void>();
  watcher.on('change', () => woken.resolve());
  return {
    beyond: async (bytesRead) => {
      for (;;) {
        // Before looking: what is told after that look wakes.
        woken = Promise.withResolvers();
        for (const line of lines()) {
          if (line === RESTART) throw new FailureError('Interrupted', 'The download began anew.');
          there = Number(line);
        }
        if (there > bytesRead) return there;
        watcher.ref();
        await woken.promise;
        watcher.unref();
      }
    },
  };
};

/**
 * Reads the open file `fd`, `sizeBytes` of it, as they come: into the buffer, and resolves with how many bytes that were, 0 at the
 * end. On the calling thread, for they were written just now. Throws as `beyond` does.
 */
export const readArriving = (
  fd: number,
  sizeBytes: number,
  { beyond }: Follower,
): ((into: Buffer) => Promise<number>) => {
  let at = 0;
  return async (into) => {
    if (at >= sizeBytes) return 0;
    const there = Math.min(await beyond(at), sizeBytes);
    const bytesRead = readSync(fd, into, 0, Math.min(into.length, there - at), at);
    if (bytesRead === 0) throw new FailureError('Interrupted', 'The download was cut back.');
    at += bytesRead;
    return bytesRead;
  };
};
