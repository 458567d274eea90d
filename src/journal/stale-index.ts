/**
 * The index of the write-ahead log that the processes which have a journal open share (-shm). It stays as long as anybody reads: after
 * a daemon was killed and a copy put back, log and all, it still tells of frames that the log put there does not have, and
 * SQLite would fail on looking for them. Its layout is that of SQLite's WAL-index header, which has not changed since there is one.
 */
import { closeSync, openSync, readSync, rmSync, statSync } from 'node:fs';
import { endianness } from 'node:os';
import { journalFiles } from './files.ts';

const HEADER_BYTES = 20;
const IS_INIT_AT = 12;
const PAGE_BYTES_AT = 14;
const FRAMES_AT = 16;
const LOG_HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;

const headerOf = (path: string): Buffer | null => {
  if (statSync(path, { throwIfNoEntry: false }) === undefined) return null;
  const fd = openSync(path, 'r');
  try {
    const header = Buffer.alloc(HEADER_BYTES);
    return readSync(fd, header, 0, HEADER_BYTES, 0) === HEADER_BYTES ? header : null;
  } finally {
    closeSync(fd);
  }
};

/** Bytes that a log has at least of which an index tells this. */
const logBytesOf = (header: Buffer): number => {
  const isLittle = endianness() === 'LE';
  const pageBytes = isLittle ? header.readUInt16LE(PAGE_BYTES_AT) : header.readUInt16BE(PAGE_BYTES_AT);
  const frames = isLittle ? header.readUInt32LE(FRAMES_AT) : header.readUInt32BE(FRAMES_AT);
  if (header[IS_INIT_AT] === 0 || frames === 0) return 0;
  return LOG_HEADER_BYTES + frames * (FRAME_HEADER_BYTES + pageBytes);
};

/**
 * Takes the index away where it is of another log: the next who opens the journal makes it anew. Frames are in the log before the
 * index tells of them, so one that is right is never taken. Only for who has the lock; whoever reads by it ends (watchJournal).
 */
export const dropStaleIndex = (path: string): void => {
  const { index, wal } = journalFiles(path);
  const header = headerOf(index);
  if (header === null) return;
  const walBytes = statSync(wal, { throwIfNoEntry: false })?.size ?? 0;
  if (logBytesOf(header) > walBytes) rmSync(index);
};
