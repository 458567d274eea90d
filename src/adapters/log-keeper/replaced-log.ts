/**
 * A log whose file was replaced while it was open, as kubelet does that hears of no success: it moves the file that it had
 * rotated back over the one that the keeper has opened meanwhile. Nobody finds what is written to that one any more.
 */
import { closeSync, fstatSync, lstatSync, openSync, readSync } from 'node:fs';

/** A copy that is longer would keep containers waiting. */
const CARRIED_BYTES_MAX = 16 * 1024 * 1024;

/** Another file stands where this one had its only name. One that was removed, and is to stay so, is none of those. */
export const isReplaced = (fd: number, path: string): boolean =>
  fstatSync(fd).nlink === 0 && lstatSync(path, { throwIfNoEntry: false })?.isFile() === true;

export interface Carried {
  /** Whole records, from the beginning. */
  readonly records: Buffer;
  /** What is behind them. */
  readonly leftBytes: number;
}

/** What a file holds that is open for writing and has no name. */
export const recordsIn = (fd: number): Carried => {
  const { size } = fstatSync(fd);
  const bytes = Buffer.allocUnsafeSlow(Math.min(size, CARRIED_BYTES_MAX));
  const readable = openSync(`/proc/self/fd/${fd}`, 'r');
  let length = 0;
  try {
    for (let more = 1; more > 0 && length < bytes.length; length += more)
      more = readSync(readable, bytes, length, bytes.length - length, length);
  } finally {
    closeSync(readable);
  }
  const used = bytes.lastIndexOf('\n', length - 1) + 1;
  return { records: bytes.subarray(0, length === 0 ? 0 : used), leftBytes: size - used };
};
