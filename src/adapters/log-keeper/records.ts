/**
 * Turns a container's raw output into CRI log records, "time stream P|F content\n", within two work areas that the
 * whole process shares: one that FIFOs are read into, one that records are collected in. Knows nothing of files and
 * FIFOs. Bytes in, bytes out: no string and no object is made per line.
 */
import { copyBytes, createArea, findNewline } from './bytes.ts';
import { createStamp, STAMP_BYTES, type StampClock } from './stamp.ts';

/** The most that `lineBytesMax` may be; the configuration allows no more. Work areas are made for it. */
export const LINE_BYTES_LIMIT = 65536;
/** An unfinished line that is no longer than this may yet fit one record: its last byte may be the \r of a \r\n. */
export const HELD_BYTES_MAX = LINE_BYTES_LIMIT + 1;
/** As much as a FIFO holds, so that one read empties it. */
const READ_BYTES_MAX = 65536;
/** Records are handed on when this much is collected. Lines of a few bytes grow tenfold in becoming records. */
const OUTPUT_BYTES_MAX = 131072;

const NEWLINE = 10;
const CARRIAGE_RETURN = 13;
const TAG_FULL = 'F'.charCodeAt(0);
const TAG_PARTIAL = 'P'.charCodeAt(0);
const HEADER_TEXT = ' stdout F ';
const STREAM_AT = STAMP_BYTES + 1;
const TAG_AT = STREAM_AT + 'stdout '.length;
const HEADER_BYTES = STAMP_BYTES + HEADER_TEXT.length;

export type StreamName = 'stdout' | 'stderr';

/** Takes bytes[0, used), which are whole records; they are overwritten once it returns. */
export type WriteRecords = (bytes: Buffer, used: number) => void;

export interface RecordEncoder {
  /** Where FIFOs are read into. In front of it there is room for HELD_BYTES_MAX bytes of an unfinished line. */
  readonly readArea: Buffer;
  /**
   * Makes records of `held` (the unfinished line before) and the first `length` bytes of readArea, and returns what
   * is now unfinished: a view into the area, to be copied before the next read. The same bytes give the same
   * records, however they are cut into calls. No record has more than `lineBytesMax` bytes of content.
   */
  readonly encode: (
    stream: StreamName,
    held: Uint8Array,
    length: number,
    lineBytesMax: number,
    write: WriteRecords,
  ) => Uint8Array;
  /** Makes records of a line that never ended: all tagged partial. */
  readonly encodeTail: (stream: StreamName, held: Uint8Array, lineBytesMax: number, write: WriteRecords) => void;
  /** One record of our own words on stderr. */
  readonly note: (text: string) => Buffer;
}

/** One encoder serves all containers of a process: each call begins and ends within one turn. */
export const createRecordEncoder = (clock: StampClock): RecordEncoder => {
  const area = createArea(HELD_BYTES_MAX + READ_BYTES_MAX);
  const readArea = area.bytes.subarray(HELD_BYTES_MAX, HELD_BYTES_MAX + READ_BYTES_MAX);
  const output = createArea(OUTPUT_BYTES_MAX);
  const headerArea = createArea(HEADER_BYTES);
  const header = headerArea.bytes.subarray(0, HEADER_BYTES);
  header.write(HEADER_TEXT, STAMP_BYTES, 'latin1');
  const stamp = createStamp(header, clock);
  let used = 0;

  const begin = (stream: StreamName): void => {
    header.write(stream, STREAM_AT, 'latin1');
    used = 0;
    stamp.take();
  };

  const put = (tag: number, start: number, end: number, write: WriteRecords): void => {
    const contentAt = used + HEADER_BYTES;
    if (contentAt + (end - start) + 1 > OUTPUT_BYTES_MAX) {
      write(output.bytes, used);
      used = 0;
      put(tag, start, end, write);
      return;
    }
    header[TAG_AT] = tag;
    copyBytes(headerArea, 0, HEADER_BYTES, output, used);
    copyBytes(area, start, end, output, contentAt);
    used = contentAt + (end - start);
    output.bytes[used] = NEWLINE;
    used += 1;
    stamp.advance();
  };

  const finish = (write: WriteRecords): void => {
    if (used > 0) write(output.bytes, used);
  };

  /** Puts partial records for as long as more than `keepMax` bytes are left; returns where the rest begins. */
  const putPartial = (start: number, end: number, sizeBytes: number, keepMax: number, write: WriteRecords): number => {
    let at = start;
    for (; end - at > keepMax; at += sizeBytes) put(TAG_PARTIAL, at, at + sizeBytes, write);
    return at;
  };

  const encode: RecordEncoder['encode'] = (stream, held, length, lineBytesMax, write) => {
    begin(stream);
    let at = HELD_BYTES_MAX - held.length;
    area.bytes.set(held, at);
    const end = HELD_BYTES_MAX + length;
    // Ends every search: behind it are the remains of earlier reads.
    area.bytes[end] = NEWLINE;
    for (;;) {
      const newlineAt = findNewline(area, at);
      if (newlineAt >= end) break;
      const contentEnd = newlineAt > at && area.bytes[newlineAt - 1] === CARRIAGE_RETURN ? newlineAt - 1 : newlineAt;
      const isLong = contentEnd - at > lineBytesMax;
      const lastAt = isLong ? putPartial(at, contentEnd, lineBytesMax, lineBytesMax, write) : at;
      put(TAG_FULL, lastAt, contentEnd, write);
      at = newlineAt + 1;
    }
    // One byte more may be the \r of a \r\n.
    at = putPartial(at, end, lineBytesMax, lineBytesMax + 1, write);
    finish(write);
    return area.bytes.subarray(at, end);
  };

  const encodeTail: RecordEncoder['encodeTail'] = (stream, held, lineBytesMax, write) => {
    begin(stream);
    area.bytes.set(held, 0);
    const at = putPartial(0, held.length, lineBytesMax, lineBytesMax, write);
    if (at < held.length) put(TAG_PARTIAL, at, held.length, write);
    finish(write);
  };

  const note: RecordEncoder['note'] = (text) => {
    begin('stderr');
    header[TAG_AT] = TAG_FULL;
    return Buffer.concat([header, Buffer.from(`${text.replaceAll('\n', ' ')}\n`)]);
  };

  return { readArea, encode, encodeTail, note };
};
