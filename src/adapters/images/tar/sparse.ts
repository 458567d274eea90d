/**
 * Files with holes, as GNU tar writes them: a map says where in the file the parts lie that are the member's data. In form
 * 1.0 that data begins with the map, decimal numbers a line each and padded to a block; in older ones headers have it.
 * Tells a handler of the file itself. Every number comes from the archive: parts are in order, inside the file, and all
 * of the member's data.
 */
import { BLOCK_BYTES, invalidArchive, type SparseFile, type SparsePart, sparsePartsOf } from './header.ts';
import type { TarEntry, TarHandler } from './reader.ts';

export interface FileHandler extends TarHandler {
  /** So many bytes of the current member's file are a hole. */
  readonly hole: (lengthBytes: number) => void;
}

/** A map of more parts is nobody's. */
const MAP_BYTES_MAX = 16 * 1024 * 1024;
const NEWLINE = 0x0a;

interface Reading {
  readonly file: SparseFile;
  /** Of the member's data. */
  dataLeft: number;
  /** Less than a block of the map. */
  pending: Buffer;
  map: Buffer[];
  mapBytes: number;
  /** Lines of the map that are there, and that there will be. */
  lines: number;
  linesWanted: number | null;
  /** null until the map is whole. */
  parts: readonly SparsePart[] | null;
  next: number;
  partLeft: number;
  at: number;
}

const wrong = (what: string): Error => invalidArchive(`the map of a sparse file ${what}`);

const numbersOf = (map: readonly Buffer[]): number[] => {
  const lines = Buffer.concat(map).toString('latin1').split('\n').slice(0, -1);
  return lines.map((line) => {
    const number = Number(line);
    if (!/^\d{1,16}$/.test(line) || !Number.isSafeInteger(number)) throw wrong('holds something else than numbers');
    return number;
  });
};

/** The parts that are not empty, once all of them are as they must be. */
const fittingParts = (parts: readonly SparsePart[], { sizeBytes }: SparseFile, dataBytes: number): SparsePart[] => {
  let end = 0;
  let sum = 0;
  for (const part of parts) {
    if (part.offset < end) throw wrong('is out of order');
    end = part.offset + part.sizeBytes;
    sum += part.sizeBytes;
  }
  if (end > sizeBytes || sum !== dataBytes) throw wrong('does not fit the file');
  return parts.filter((part) => part.sizeBytes > 0);
};

export const createSparseHandler = (handler: FileHandler): TarHandler => {
  let reading: Reading | null = null;

  /** Takes one block of the map; true when that was the last. */
  const takeMapBlock = (now: Reading, block: Buffer): boolean => {
    // Whole lines only, and what comes after the last one is padding.
    let end = 0;
    for (let at = block.indexOf(NEWLINE); at >= 0; at = block.indexOf(NEWLINE, end)) {
      end = at + 1;
      now.lines += 1;
      if (now.linesWanted === null) {
        const [count = 0] = numbersOf([...now.map, block.subarray(0, end)]);
        now.linesWanted = 1 + 2 * count;
      }
      if (now.lines === now.linesWanted) break;
    }
    const isLast = now.lines === now.linesWanted;
    now.map.push(Buffer.from(isLast ? block.subarray(0, end) : block));
    return isLast;
  };

  /** What of the bytes comes after the map; null when that is not whole yet. */
  const takeMap = (now: Reading, chunk: Uint8Array): Buffer | null => {
    const bytes = Buffer.concat([now.pending, chunk]);
    let offset = 0;
    while (bytes.length - offset >= BLOCK_BYTES) {
      const isLast = takeMapBlock(now, bytes.subarray(offset, offset + BLOCK_BYTES));
      offset += BLOCK_BYTES;
      now.mapBytes += BLOCK_BYTES;
      now.dataLeft -= BLOCK_BYTES;
      if (now.mapBytes > MAP_BYTES_MAX) throw wrong('is too long');
      if (!isLast) continue;
      now.parts = fittingParts(sparsePartsOf(numbersOf(now.map).slice(1)), now.file, now.dataLeft);
      now.map = [];
      return bytes.subarray(offset);
    }
    now.pending = bytes.subarray(offset);
    return null;
  };

  const takeParts = (now: Reading, bytes: Buffer): void => {
    for (let offset = 0; offset < bytes.length; ) {
      if (now.partLeft === 0) {
        const part = now.parts?.[now.next];
        if (part === undefined) throw wrong('does not fit the file');
        now.next += 1;
        now.partLeft = part.sizeBytes;
        if (part.offset > now.at) handler.hole(part.offset - now.at);
        now.at = part.offset;
      }
      const taken = Math.min(now.partLeft, bytes.length - offset);
      handler.data(bytes.subarray(offset, offset + taken));
      offset += taken;
      now.partLeft -= taken;
      now.at += taken;
    }
  };

  return {
    entry: ({ sparse, ...entry }) => {
      reading = null;
      if (sparse === undefined) return handler.entry(entry);
      if (entry.type !== 'file') throw wrong('is of no file');
      reading = {
        file: sparse,
        dataLeft: entry.sizeBytes,
        pending: Buffer.alloc(0),
        ...{ map: [], mapBytes: 0, lines: 0, linesWanted: null, next: 0, partLeft: 0, at: 0 },
        parts: sparse.parts === null ? null : fittingParts(sparse.parts, sparse, entry.sizeBytes),
      };
      const whole: TarEntry = { ...entry, sizeBytes: sparse.sizeBytes };
      handler.entry(whole);
    },
    data: (chunk) => {
      if (reading === null) return handler.data(chunk);
      if (reading.parts !== null) return takeParts(reading, Buffer.from(chunk));
      const rest = takeMap(reading, chunk);
      if (rest !== null) takeParts(reading, rest);
    },
    endEntry: () => {
      if (reading !== null) {
        const { parts, file, at, next, partLeft } = reading;
        if (parts === null || next < parts.length || partLeft > 0) throw wrong('does not fit the file');
        if (file.sizeBytes > at) handler.hole(file.sizeBytes - at);
      }
      handler.endEntry();
    },
  };
};
