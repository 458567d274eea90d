/**
 * Rows of read calls on their way to the writer: encoded as they come, taken a chunk at a time. Bounded: when the
 * writer can't keep up, rows are refused and counted, and the count becomes part of the segment's record, since a
 * caller that only reads must never be held up and must never eat the daemon's memory.
 */
import { encodeReadRow, READ_ROW_BYTES_MAX } from './read-rows.ts';
import type { ReadChunk } from './read-table.ts';
import type { ReadRow } from './types.ts';

const chunkBytes = 64 * 1024;
/** Chunks that were taken and are not on disk yet. */
const chunksUnderWayMax = 128;

export interface ReadBuffer {
  /** True when the chunk is full and should be taken now. */
  readonly add: (row: ReadRow) => boolean;
  /** Counts a row that is not to be kept. */
  readonly refuse: () => void;
  /** The rows since the last chunk; null when there are none. */
  readonly take: () => ReadChunk | null;
  readonly committed: (chunks: number) => void;
}

export const createReadBuffer = (): ReadBuffer => {
  const buffer = Buffer.allocUnsafeSlow(chunkBytes);
  let end = 0;
  let count = 0;
  let dropped = 0;
  let fromNs = 0n;
  let toNs = 0n;
  let underWay = 0;
  return {
    add: (row) => {
      if (end + READ_ROW_BYTES_MAX > chunkBytes) {
        dropped++;
        return true;
      }
      end = encodeReadRow(row, buffer, end);
      if (count === 0 || row.atNs < fromNs) fromNs = row.atNs;
      if (count === 0 || row.atNs > toNs) toNs = row.atNs;
      count++;
      return end + READ_ROW_BYTES_MAX > chunkBytes;
    },
    refuse: () => {
      dropped++;
    },
    take: () => {
      if (count === 0 || underWay >= chunksUnderWayMax) return null;
      const chunk = { rows: new Uint8Array(buffer.subarray(0, end)), count, fromNs, toNs, dropped };
      [end, count, dropped] = [0, 0, 0];
      underWay++;
      return chunk;
    },
    committed: (chunks) => {
      underWay -= chunks;
    },
  };
};
