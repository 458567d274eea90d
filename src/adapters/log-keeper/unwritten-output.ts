/**
 * What the keeper has read and not yet written, kept where a kill does not reach it: a file beside its state, in memory
 * as the state directory is. One piece at a time, since a piece is written to its log in the turn that read it. The next
 * keeper writes it again from the place in the log where it began, so that no line of it is lost or doubled.
 *
 *   one line of JSON   whose it is, and where its log ended before; an empty line: nothing is in hand
 *   the rest           the unfinished line before, and what was read
 */
import { constants, openSync, readFileSync, writeSync, writevSync } from 'node:fs';
import { join } from 'node:path';
import { messageOf } from '../../domain/model/errors.ts';
import { isObject } from '../../domain/values/json.ts';
import type { StreamName } from './records.ts';

const FILE_MODE = 0o600;
const OPEN_FLAGS = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW;
const NEWLINE = Buffer.from('\n');

/** Which file a log is, and its size. */
export interface LogPlace {
  readonly inode: number;
  readonly sizeBytes: number;
}

export interface PieceName {
  readonly containerId: string;
  readonly stream: StreamName;
  readonly place: LogPlace;
}

export interface Piece extends PieceName {
  /** The unfinished line before it. */
  readonly held: Buffer;
  readonly data: Buffer;
}

export interface UnwrittenOutput {
  readonly take: (name: PieceName, held: Uint8Array, data: Uint8Array) => void;
  /** It is in its log. */
  readonly done: () => void;
}

const pathIn = (dir: string): string => join(dir, 'in-hand');

/** Keeps nothing where the file can't be had: then a kill costs what it always did, and the logs say so. */
export const openUnwrittenOutput = (dir: string, report: (message: string) => void): UnwrittenOutput => {
  let fd: number | null = null;
  const attempt = (act: () => void): void => {
    try {
      act();
    } catch (error) {
      if (fd !== null) report(`What is in hand can't be kept: ${messageOf(error)}`);
      fd = null;
    }
  };
  attempt(() => {
    fd = openSync(pathIn(dir), OPEN_FLAGS, FILE_MODE);
  });
  return {
    take: (name, held, data) => {
      const file = fd;
      if (file === null) return;
      const head = JSON.stringify({ ...name, heldBytes: held.length, dataBytes: data.length });
      attempt(() => void writevSync(file, [Buffer.from(`${head}\n`), held, data], 0));
    },
    done: () => {
      const file = fd;
      if (file !== null) attempt(() => void writeSync(file, NEWLINE, 0, 1, 0));
    },
  };
};

const count = (value: unknown): number => (typeof value === 'number' && Number.isSafeInteger(value) ? value : -1);

/** What a keeper that was killed had in hand; null when nothing, or nothing that can be understood. */
export const readUnwrittenOutput = (dir: string): Piece | null => {
  try {
    const bytes = readFileSync(pathIn(dir));
    const headBytes = bytes.indexOf('\n');
    if (headBytes <= 0) return null;
    const head: unknown = JSON.parse(bytes.subarray(0, headBytes).toString());
    if (!isObject(head) || !isObject(head.place) || typeof head.containerId !== 'string') return null;
    const { containerId, stream, place, heldBytes, dataBytes } = head;
    if (stream !== 'stdout' && stream !== 'stderr') return null;
    const [inode, sizeBytes, heldEnd] = [count(place.inode), count(place.sizeBytes), headBytes + 1 + count(heldBytes)];
    const end = heldEnd + count(dataBytes);
    if (inode < 0 || sizeBytes < 0 || heldEnd <= headBytes || end < heldEnd || end > bytes.length) return null;
    const held = bytes.subarray(headBytes + 1, heldEnd);
    return { containerId, stream, place: { inode, sizeBytes }, held, data: bytes.subarray(heldEnd, end) };
  } catch {
    return null;
  }
};
