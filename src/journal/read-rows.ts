/**
 * The compact bytes of read calls: a chunk is rows one after another, each a few variable-length numbers and two
 * short texts (docs/journal-format.md). Frozen with format v1. Must never throw for what a caller sent: texts are
 * cut, numbers are clamped; decoding throws JournalError Corrupt for bytes that are no chunk.
 */
import { JournalError } from './errors.ts';
import type { ReadRow } from './types.ts';

/** A caller must not be able to fill the journal with a long filter. */
const textCharsMax = 200;

/** At least as many bytes as one encoded row takes. */
export const READ_ROW_BYTES_MAX = 8 + 4 * 8 + 2 * (2 + 3 * textCharsMax);

const uint53Max = Number.MAX_SAFE_INTEGER;

const writeVarint = (target: Buffer, value: number, at: number): number => {
  let rest = value > 0 && value <= uint53Max ? Math.trunc(value) : 0;
  let end = at;
  while (rest >= 0x80) {
    target[end++] = (rest % 0x80) + 0x80;
    rest = Math.floor(rest / 0x80);
  }
  target[end++] = rest;
  return end;
};

const writeText = (target: Buffer, text: string, at: number): number => {
  const cut = text.length > textCharsMax ? text.slice(0, textCharsMax) : text;
  const bytes = Buffer.byteLength(cut);
  const start = writeVarint(target, bytes, at);
  return start + target.write(cut, start);
};

/** Writes a row at `at` and returns where it ends. The target must have READ_ROW_BYTES_MAX left. */
export const encodeReadRow = (row: ReadRow, target: Buffer, at: number): number => {
  let end = target.writeBigInt64BE(BigInt.asIntN(64, row.atNs), at);
  end = writeVarint(target, Number(row.durationNs), end);
  end = writeVarint(target, row.code, end);
  end = writeVarint(target, row.callerPid, end);
  end = writeVarint(target, row.callerUid, end);
  end = writeText(target, row.method, end);
  return writeText(target, row.subject, end);
};

/** The rows of a chunk, in order. */
export const decodeReadRows = (chunk: Uint8Array): ReadRow[] => {
  const bytes = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
  const rows: ReadRow[] = [];
  let at = 0;
  const bad = (): never => {
    throw new JournalError('Corrupt', `A chunk of read calls ends within a row, at byte ${at} of ${bytes.length}.`);
  };
  const varint = (): number => {
    let value = 0;
    for (let scale = 1; ; scale *= 0x80) {
      const byte = bytes[at++] ?? bad();
      value += (byte % 0x80) * scale;
      if (byte < 0x80) return value;
      if (value > uint53Max) bad();
    }
  };
  const text = (): string => {
    const length = varint();
    if (at + length > bytes.length) bad();
    at += length;
    return bytes.toString('utf8', at - length, at);
  };
  while (at < bytes.length) {
    if (at + 8 > bytes.length) bad();
    const atNs = bytes.readBigInt64BE(at);
    at += 8;
    const [duration, code, callerPid, callerUid] = [varint(), varint(), varint(), varint()];
    rows.push({ atNs, method: text(), code, durationNs: BigInt(duration), callerPid, callerUid, subject: text() });
  }
  return rows;
};
