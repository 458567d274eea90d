/** A record's columns as all JSON of commands has them: 64-bit numbers as text, hashes in hex. Pure; the body is the caller's. */
import type { RecordHashes } from '../journal/reader.ts';
import type { JournalRecord } from '../journal/types.ts';
import { utcTime } from './format.ts';

/** null: the record was pruned since it was read. */
const hex = (bytes: Uint8Array | null | undefined): string | null =>
  bytes == null ? null : Buffer.from(bytes).toString('hex');

export const columnsOf = (
  { seq, atNs, monoNs, boot, type, v, stream, cause, call }: JournalRecord,
  hashes: RecordHashes | null,
) => ({
  seq,
  time: utcTime(atNs),
  at: String(atNs),
  mono: String(monoNs),
  boot,
  type,
  v,
  stream,
  cause,
  call,
  bodyHash: hex(hashes?.bodyHash),
  hash: hex(hashes?.hash),
});
