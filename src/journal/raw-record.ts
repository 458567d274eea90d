/** A row of the table of records, as SQLite gives it. */

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
