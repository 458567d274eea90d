/**
 * A blob that is being received, from its beginning on or in ranges side by side, and also when it was begun before a restart.
 * Hashes what is there without a gap, so that the digest at the end covers all of it, and tells who reads it meanwhile
 * (arrivals.ts). What comes in ranges is noted every MiB (pieces.ts): no more of a range is lost when all this is killed.
 */
import { createHash, type Hash } from 'node:crypto';
import { closeSync, constants, ftruncateSync, openSync, readSync, statSync, writeSync } from 'node:fs';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { FailureError } from '../../domain/model/errors.ts';
import { createArrivals } from './arrivals.ts';
import { asDiskFull } from './disk-full.ts';
import { arrivalsPath, type ImageLayout, partialPath, piecesPath } from './layout.ts';
import { openPieces, type Stretch } from './pieces.ts';

/** What of a blob a range brings, in its order. */
export interface PieceSink {
  readonly write: (chunk: Uint8Array) => void;
  /** No more comes of it. */
  readonly end: () => void;
}

export interface PartialBlob {
  /** What is there from the beginning on. */
  readonly offset: () => number;
  readonly totalBytes: () => number;
  readonly missing: () => readonly Stretch[];
  /** Goes on at `offset`. */
  readonly write: (chunk: Uint8Array) => void;
  readonly piece: (from: number) => PieceSink;
  readonly restart: () => void;
  /** Throws FailureError ImageInvalid when what was written has another digest. */
  readonly finish: () => Promise<void>;
  /** Keeps what there is for a later attempt. */
  readonly close: () => void;
}

const READ_BYTES = 1024 * 1024;
const NOTED_EVERY_BYTES = 1024 * 1024;
const FILE_MODE = 0o600;
const { O_RDWR, O_CREAT } = constants;

interface Options {
  readonly layout: ImageLayout;
  readonly digest: string;
  readonly sizeBytes: number;
  /** Throws FailureError DiskFull when there is no room for so much more. */
  readonly checkSpace: (neededBytes: number) => Promise<void>;
  /** Makes a blob of the file, which has been verified. */
  readonly takeWhole: (path: string) => Promise<void>;
}

/** Hashes a file in its order, as far as it is told, however late that is. */
const createOrderedHash = (fd: number) => {
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  let hash: Hash = createHash('sha256');
  let hashed = 0;
  return {
    hashed: () => hashed,
    /** What was just written at `hashed`: it need not be read again. */
    take: (chunk: Uint8Array): void => {
      hash.update(chunk);
      hashed += chunk.length;
    },
    /** False when there is more to be read. */
    readOn: (to: number): boolean => {
      const bytes = hashed < to ? readSync(fd, buffer, 0, Math.min(READ_BYTES, to - hashed), hashed) : 0;
      hash.update(buffer.subarray(0, bytes));
      hashed += bytes;
      return bytes === 0;
    },
    restart: (): void => {
      hash = createHash('sha256');
      hashed = 0;
    },
    digest: (): string => `sha256:${hash.copy().digest('hex')}`,
  };
};

/** Throws FailureError DiskFull when the disk has no room for what is missing. */
export const openPartialBlob = async ({
  layout,
  digest,
  sizeBytes,
  checkSpace,
  takeWhole,
}: Options): Promise<PartialBlob> => {
  const path = partialPath(layout, digest);
  // Not to be appended to: ranges come in any order.
  const fd = openSync(path, O_RDWR | O_CREAT, FILE_MODE);
  const pieces = openPieces(piecesPath(layout, digest), statSync(path).size);
  const hash = createOrderedHash(fd);
  const forget = (): void => {
    ftruncateSync(fd, 0);
    pieces.clear();
    hash.restart();
  };
  if (pieces.end() > sizeBytes) forget();
  const arrivals = createArrivals(arrivalsPath(layout, digest), sizeBytes);
  let isOpen = true;
  let isInPieces = false;

  const restart = (): void => {
    if (!isOpen) return;
    arrivals.restart();
    isInPieces = false;
    forget();
  };
  const close = (): void => {
    if (isOpen) closeSync(fd);
    isOpen = false;
    pieces.close();
    arrivals.remove();
  };
  const put = (chunk: Uint8Array, at: number): void => {
    if (!isOpen) throw new Error(`${path} is closed`);
    try {
      for (let written = 0; written < chunk.length; )
        written += writeSync(fd, chunk, written, chunk.length - written, at + written);
    } catch (error) {
      throw asDiskFull(error);
    }
    pieces.add({ from: at, to: at + chunk.length });
    if (at === hash.hashed()) hash.take(chunk);
    else hash.readOn(pieces.frontier());
    arrivals.tell(pieces.frontier());
  };
  const hashRest = async (): Promise<void> => {
    while (!hash.readOn(pieces.frontier())) await nextTurn();
  };

  try {
    await hashRest();
    arrivals.tell(pieces.frontier());
    await checkSpace(sizeBytes - pieces.totalBytes());
  } catch (error) {
    close();
    throw asDiskFull(error);
  }

  return {
    offset: pieces.frontier,
    totalBytes: pieces.totalBytes,
    missing: () => pieces.missing(sizeBytes),
    restart,
    close,
    write: (chunk) => put(chunk, pieces.frontier()),
    piece: (from) => {
      if (!isInPieces) pieces.begin();
      isInPieces = true;
      let [at, noted] = [from, from];
      const note = (): void => {
        if (at > noted && isOpen) pieces.note({ from: noted, to: at });
        noted = at;
      };
      return {
        write: (chunk) => {
          put(chunk, at);
          at += chunk.length;
          if (at - noted >= NOTED_EVERY_BYTES) note();
        },
        end: note,
      };
    },
    finish: async () => {
      await hashRest();
      const actual = hash.digest();
      if (actual !== digest) {
        restart();
        throw new FailureError('ImageInvalid', `the digest of ${digest} is ${actual}`);
      }
      pieces.clear();
      // Until the blob has its name: who comes to read what arrives finds the one or the other.
      await takeWhole(path);
      close();
    },
  };
};
