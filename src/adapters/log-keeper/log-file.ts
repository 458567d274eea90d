/**
 * A container's log file: appends records, survives whatever happens to the file and its directory, and is opened anew
 * for rotation. Records that can't be written are dropped and counted, never waited for: a container must not stall for
 * its log. Must not look into records beyond counting them.
 *
 * Records are written at once, within the turn that read them: that is the shortest time in which a kill could lose
 * them, and needs no buffer per container. Only a disk that has just been slow is written from libuv's threads, so
 * that its pace is felt by those who log to it and by nobody else.
 */
import { closeSync, constants, fstatSync, ftruncateSync, openSync, write as writeCallback, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import { makeDirectoriesSync } from '../../platform/linux/make-directories.ts';
import { type Backoff, backoffMs } from '../../platform/rpc/retry.ts';
import { openBeneath } from './open-beneath.ts';
import { isReplaced, recordsIn } from './replaced-log.ts';
import type { LogTrouble } from './types.ts';
import type { LogPlace } from './unwritten-output.ts';
import type { WriteRecords } from './records.ts';

const FILE_MODE = 0o640;
const DIRECTORY_MODE = 0o755;
const NEWLINE = 10;
/** A write that takes longer than this makes its file count as slow, until one takes less again. */
const SLOW_WRITE_MS = 50;
const BACKOFF: Backoff = { firstMs: 100, lastMs: 5000 };
// Not blocking: what stands at the path might be a FIFO that somebody else has put there.
const OPEN_FLAGS =
  constants.O_WRONLY | constants.O_APPEND | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

const write = promisify(writeCallback);

export interface LogFile {
  /** Appends bytes[0, used), whole records; never throws. */
  readonly append: WriteRecords;
  /** Where the next record goes; null while it is not open, or slow: what is written then is under way for a while. */
  readonly place: () => LogPlace | null;
  /** Takes back what was written behind this place, if the file is still the one. */
  readonly cutBackTo: (place: LogPlace) => void;
  /** Writes a record of our own words among the others. */
  readonly say: (text: string) => void;
  /** Why it is not open now and will not be by itself, whatever the disk does; null: it is, or may yet be. */
  readonly obstacle: () => string | null;
  /** What is lost now; null: it is written. */
  readonly trouble: () => Omit<LogTrouble, 'containerId'> | null;
  /** null when all is written; else resolves when it is. Whoever appends should wait for it before reading more. */
  readonly settled: () => Promise<void> | null;
  /** Opens the file at `path` (the same or another) and appends there from now on; on failure stays with the old. */
  readonly reopen: (path: string) => Promise<void>;
  /** Goes on in the file that has taken its file's place, if one has, behind what that one held. */
  readonly rejoin: () => Promise<void>;
  /** Waits for what is under way and closes the file. */
  readonly close: () => Promise<void>;
}

export interface LogFileOptions {
  readonly path: string;
  /** The path, and that of every reopening, is beneath it, and no link is followed on the way. */
  readonly directory?: string;
  /** Makes one record of our own words. */
  readonly note: (text: string) => Buffer;
  /** Told once when records begin to be lost, and once when they are written again. */
  readonly report: (message: string) => void;
}

/** The one error that nothing on the node can take away: all others may go as they came. */
const isLasting = (error: unknown): boolean => {
  const cause = error instanceof Error && error.cause !== undefined ? error.cause : error;
  return cause instanceof Error && 'code' in cause && cause.code === 'ENAMETOOLONG';
};

const openRegularFile = (path: string, directory: string | undefined): number => {
  const isBeneath = directory !== undefined && path.startsWith(`${directory}/`);
  const fd = isBeneath ? openBeneath(directory, path, OPEN_FLAGS, FILE_MODE) : openSync(path, OPEN_FLAGS, FILE_MODE);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw new Error(`${path} is not a regular file`);
};

const openLog = (path: string, directory: string | undefined): number => {
  try {
    return openRegularFile(path, directory);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
    makeDirectoriesSync(dirname(path), DIRECTORY_MODE);
    return openRegularFile(path, directory);
  }
};

const countRecords = (bytes: Uint8Array, start: number, end: number): number => {
  let count = 0;
  for (let at = start; at < end; at += 1) if (bytes[at] === NEWLINE) count += 1;
  return count;
};

/**
 * The file behind the log, which comes and goes: what can't be written is counted, and the file is tried again until it
 * can be. `write` is for a record that says what was lost.
 */
const createTarget = (
  { path: firstPath, directory, note, report }: LogFileOptions,
  write: (record: Buffer, used: number) => void,
) => {
  let path = firstPath;
  let fd: number | null = null;
  let lostRecords = 0;
  let failing = false;
  let failingSinceMs = 0;
  let why = '';
  let obstacle: string | null = null;
  let failures = 0;
  let retryTimer: NodeJS.Timeout | undefined;

  const isOpen = (): boolean => fd !== null;

  const drop = (error: unknown): void => {
    obstacle = isLasting(error) ? messageOf(error) : null;
    if (fd !== null) closeSync(fd);
    fd = null;
    why = messageOf(error);
    if (!failing) {
      failingSinceMs = Date.now();
      report(`Dropping output, the log ${path} can't be written: ${why}`);
    }
    failing = true;
    failures += 1;
    retryTimer = setTimeout(retry, backoffMs(BACKOFF, failures));
  };

  /** bytes[done, used) were not written. The record that was cut in two is taken back, and counts as lost. */
  const writeFailed = (bytes: Uint8Array, done: number, used: number, error: unknown): void => {
    const cutAt = done === 0 ? 0 : bytes.lastIndexOf(NEWLINE, done - 1) + 1;
    if (fd !== null && cutAt < done) {
      try {
        ftruncateSync(fd, fstatSync(fd).size - (done - cutAt));
      } catch (truncateError) {
        report(`A record in ${path} stays cut off: ${messageOf(truncateError)}`);
      }
    }
    lostRecords += countRecords(bytes, cutAt, used);
    drop(error);
  };

  /** Takes an open file into use, and says in it what is missing before. */
  const use = (newFd: number): void => {
    clearTimeout(retryTimer);
    fd = newFd;
    const lost = lostRecords;
    lostRecords = 0;
    if (lost > 0) {
      const record = note(`scribe: ${lost} log records were lost here because the log could not be written`);
      write(record, record.length);
      // The note is no output: had it been lost too, it must not be counted as such.
      if (!isOpen()) lostRecords = lost;
    }
    if (!isOpen() || !failing) return;
    failing = false;
    failures = 0;
    report(`Writing the log ${path} again; ${lost} records were lost`);
  };

  const retry = (): void => {
    try {
      use(openLog(path, directory));
    } catch (error) {
      drop(error);
    }
  };

  const openAt = (newPath: string): number => {
    try {
      return openLog(newPath, directory);
    } catch (error) {
      throw new FailureError('HostFailed', `Opening the log ${newPath} failed: ${messageOf(error)}`);
    }
  };

  return {
    /** null: it can't be written now. */
    fd: (): number | null => fd,
    path: (): string => path,
    lose: (bytes: Uint8Array, used: number): void => {
      lostRecords += countRecords(bytes, 0, used);
    },
    writeFailed,
    retry,
    reopen: (newPath: string): void => {
      const newFd = openAt(newPath);
      if (fd !== null) closeSync(fd);
      path = newPath;
      use(newFd);
    },
    obstacle: (): string | null => (failing ? obstacle : null),
    trouble: () => (failing ? { logPath: path, why, sinceMs: failingSinceMs, lostRecords } : null),
    stopTrying: (): void => clearTimeout(retryTimer),
    close: (): void => {
      clearTimeout(retryTimer);
      if (lostRecords > 0) report(`The log ${path} is closed; ${lostRecords} records of its end were lost`);
      if (fd !== null) closeSync(fd);
      fd = null;
    },
  };
};

/** Opens the log at once; when that fails, output is dropped and counted until it can be opened. */
export const openLogFile = (options: LogFileOptions): LogFile => {
  let slow = false;
  let queue: Buffer[] = [];
  let writing: Promise<void> | null = null;

  const writeNow = (bytes: Buffer, used: number): void => {
    const fd = target.fd();
    if (fd === null) return target.lose(bytes, used);
    const startedMs = performance.now();
    let done = 0;
    try {
      while (done < used) done += writeSync(fd, bytes, done, used - done);
    } catch (error) {
      target.writeFailed(bytes, done, used, error);
    }
    slow = performance.now() - startedMs > SLOW_WRITE_MS;
  };

  const target = createTarget(options, writeNow);

  const writeQueue = async (): Promise<void> => {
    for (let chunk = queue.shift(); chunk !== undefined; chunk = queue.shift()) {
      const fd = target.fd();
      if (fd === null) {
        target.lose(chunk, chunk.length);
        continue;
      }
      const startedMs = performance.now();
      let done = 0;
      try {
        while (done < chunk.length) done += (await write(fd, chunk, done, chunk.length - done)).bytesWritten;
      } catch (error) {
        target.writeFailed(chunk, done, chunk.length, error);
      }
      slow = performance.now() - startedMs > SLOW_WRITE_MS;
    }
    writing = null;
  };

  const append: WriteRecords = (bytes, used) => {
    if (!slow && writing === null) {
      writeNow(bytes, used);
      return;
    }
    queue.push(Buffer.from(bytes.subarray(0, used)));
    writing ??= writeQueue();
  };

  const say = (text: string): void => {
    const record = options.note(text);
    append(record, record.length);
  };

  target.retry();
  return {
    append,
    place: () => {
      const fd = target.fd();
      if (fd === null || slow || writing !== null) return null;
      const { ino, size } = fstatSync(fd);
      return { inode: ino, sizeBytes: size };
    },
    cutBackTo: ({ inode, sizeBytes }) => {
      const fd = target.fd();
      if (fd === null) return;
      const { ino, size } = fstatSync(fd);
      if (ino === inode && size > sizeBytes) ftruncateSync(fd, sizeBytes);
    },
    say,
    obstacle: target.obstacle,
    trouble: target.trouble,
    settled: () => writing,
    reopen: async (newPath) => {
      await writing;
      target.reopen(newPath);
    },
    rejoin: async () => {
      await writing;
      const fd = target.fd();
      const path = target.path();
      if (fd === null || !isReplaced(fd, path)) return;
      const { records, leftBytes } = recordsIn(fd);
      target.reopen(path);
      append(records, records.length);
      options.report(`The log ${path} was replaced by another file: it goes on in that, with what it held`);
      if (leftBytes > 0) say(`scribe: ${leftBytes} bytes of log records were lost here because the log was replaced`);
    },
    close: async () => {
      target.stopTrying();
      await writing;
      target.close();
      queue = [];
    },
  };
};
