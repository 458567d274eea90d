/**
 * Rows of the table of records, as SQLite gives them, and records of them. A reader that shows or explains a journal checks
 * each row that it makes a record of, and takes nothing for what was written that is not: that a body is JSON says little.
 */
import { hash } from 'node:crypto';
import { createReusedTarget, encodedBytesMax, type EncodedText, encodeHalved, encodeText } from './encoding.ts';
import { type NameReader, remember } from './names.ts';
import type { JournalRecord } from './types.ts';

/** Columns of a whole record; 64-bit times come as two halves, which JavaScript's numbers hold exactly. */
export const recordColumns =
  'seq, at >> 32, at & 4294967295, mono >> 32, mono & 4294967295, boot, type, v, stream, cause, call, body';

/** A row of recordColumns, in raw mode. */
export type RawRecord = readonly [
  seq: number,
  atHigh: number,
  atLow: number,
  monoHigh: number,
  monoLow: number,
  boot: number,
  type: number,
  v: number,
  stream: number | string,
  cause: number | null,
  call: number | null,
  body: string,
];

/** The body of a record that does not give its body_hash, for whoever checks: no JSON, and so nothing to anybody. */
const NOT_AS_WRITTEN = 'not as written';

export const isAsWritten = ({ body }: Pick<JournalRecord, 'body'>): boolean => body !== NOT_AS_WRITTEN;

/** checked: 2 microseconds more a record. The daemon has checked what it folds; verify does so by pages. */
export type Reading = 'checked' | 'unchecked';

/** A row of what a reading selects: body_hash is behind the columns of a record where it is checked. */
export type RawRow = readonly [...RawRecord, bodyHash?: string];

export interface RecordRows {
  /** What to select for `decode`. */
  readonly columns: string;
  readonly decode: (row: RawRow) => JournalRecord;
}

const versionMax = 0xffff_ffff;
export const isVersion = (v: unknown): boolean => typeof v === 'number' && v >= 1 && v <= versionMax;
const isReference = (seq: unknown): boolean => seq === null || (typeof seq === 'number' && seq > 0);
const isText = (text: unknown): text is string => typeof text === 'string';

/** Names as encodings have them, by their ids: they are on nearly every record. */
const encodedNames = (nameOf: (id: number) => string | undefined): ((id: number) => EncodedText | undefined) => {
  const known = new Map<number, EncodedText>();
  return (id) => {
    const found = known.get(id);
    if (found !== undefined) return found;
    const name = nameOf(id);
    if (!isText(name)) return undefined;
    return remember(known, id, encodeText(name));
  };
};

/**
 * Writes what body_hash is taken over, into the same buffer each time; null: no record can have been stored like this.
 */
export const createRowEncoder = (nameOf: (id: number) => string | undefined): ((row: RawRow) => Buffer | null) => {
  const textOf = encodedNames(nameOf);
  const target = createReusedTarget();
  return ([seq, atHigh, atLow, monoHigh, monoLow, bootId, typeId, v, streamId, cause, call, body]) => {
    const [boot, type] = [textOf(bootId), textOf(typeId)];
    const stream = typeof streamId === 'number' ? textOf(streamId) : isText(streamId) ? streamId : undefined;
    if (boot === undefined || type === undefined || stream === undefined || !isText(body)) return null;
    if (!isVersion(v) || !isReference(cause) || !isReference(call)) return null;
    const record = { seq, atHigh, atLow, monoHigh, monoLow, boot, type, v, stream, cause, call, body };
    return target.first(encodeHalved(record, target.withRoomFor(encodedBytesMax(record)), 0));
  };
};

const halves = new DataView(new ArrayBuffer(8));

/** Made at once: shifting and adding makes three on the way, and a journal has millions. */
const bigOf = (high: number, low: number): bigint => {
  halves.setInt32(0, high);
  halves.setUint32(4, low);
  return halves.getBigInt64(0);
};

type Names = Pick<NameReader, 'nameOf'>;

/** A name that is missing reads as '?': verify finds it, reading goes on (C20). */
const nameOrMark = (names: Names, id: number): string => names.nameOf(id) ?? '?';

export const streamName = (names: Names, stream: number | string): string =>
  typeof stream === 'number' ? nameOrMark(names, stream) : stream;

const decoded = (
  names: Names,
  [seq, atHigh, atLow, monoHigh, monoLow, boot, type, v, stream, cause, call, body]: RawRow,
): JournalRecord => ({
  seq,
  atNs: bigOf(atHigh, atLow),
  monoNs: bigOf(monoHigh, monoLow),
  boot: nameOrMark(names, boot),
  type: nameOrMark(names, type),
  v,
  stream: streamName(names, stream),
  cause,
  call,
  body,
});

/** Makes records of raw rows. */
export const createRecordRows = (names: Names, reading: Reading): RecordRows => {
  if (reading === 'unchecked') return { columns: recordColumns, decode: (row) => decoded(names, row) };
  const encodingOf = createRowEncoder((id) => names.nameOf(id));
  return {
    columns: `${recordColumns}, lower(hex(body_hash))`,
    decode: (row) => {
      const encoding = encodingOf(row);
      const isWhole = encoding !== null && hash('sha256', encoding, 'hex') === row[12];
      return isWhole ? decoded(names, row) : { ...decoded(names, row), body: NOT_AS_WRITTEN };
    },
  };
};
