/**
 * Checks a page of the chain in one go, as fast as it can: computes the hashes of all its records and compares them with
 * those that are stored. Says only whether every column is as it was written; what is wrong is chain-check.ts's to find.
 */
import type { Db } from './connect.ts';
import { chainHashHex, encodedBytesMax, encodeHalved, HASH_BYTES, sha256Hex } from './encoding.ts';
import { type RawRecord, recordColumns } from './raw-record.ts';

/** What of a record the check of the chain goes on with. */
export interface SoundRecord {
  readonly seq: number;
  readonly type: string;
  readonly body: string;
  /** In hex. */
  readonly hash: string;
}

type Row = readonly [...RawRecord, hashes: string];

/**
 * What SQLite may have stored in a column: JavaScript's numbers pass over a double that is nearly the same. A sum with a
 * double in it is one; a text or blob in place of a number shows in the row.
 */
const isWhole = [
  ...['at', 'mono', '(boot + type + v + stream + coalesce(cause, 1) + coalesce(call, 1))'].map(
    (value) => `typeof(${value}) = 'integer'`,
  ),
  ...['body_hash', 'hash'].map((column) => `typeof(${column}) = 'blob'`),
].join(' AND ');

const hexChars = 2 * HASH_BYTES;
const versionMax = 0xffff_ffff;
const isVersion = (v: unknown): boolean => typeof v === 'number' && v >= 1 && v <= versionMax;
const isReference = (seq: unknown): boolean => seq === null || (typeof seq === 'number' && seq > 0);

const isText = (text: unknown): text is string => typeof text === 'string';

export const createSoundPages = (db: Db, names: ReadonlyMap<number, string>) => {
  const select = db
    .prepare<[number, number], Row>(
      `SELECT ${recordColumns}, hex(body_hash || hash) FROM records
         WHERE seq >= ? AND seq <= ? AND ${isWhole} ORDER BY seq`,
    )
    .raw();
  let buffer = Buffer.allocUnsafe(16 * 1024);

  /** null: not all that there was written there. */
  const check = (row: Row, previousHash: string): SoundRecord | null => {
    const [seq, atHigh, atLow, monoHigh, monoLow, bootId, typeId, v, streamId, cause, call, body, hashes] = row;
    const [boot, type] = [names.get(bootId), names.get(typeId)];
    const stream = typeof streamId === 'number' ? names.get(streamId) : streamId;
    if (!isText(boot) || !isText(type) || !isText(stream) || !isText(body)) return null;
    if (!isVersion(v) || !isReference(cause) || !isReference(call)) return null;
    const stored = hashes.toLowerCase();
    const [bodyHash, hash] = [stored.slice(0, hexChars), stored.slice(hexChars)];
    const record = { seq, atHigh, atLow, monoHigh, monoLow, boot, type, v, stream, cause, call, body };
    const bytesMax = encodedBytesMax(record);
    if (bytesMax > buffer.length) buffer = Buffer.allocUnsafe(2 * bytesMax);
    if (sha256Hex(buffer.subarray(0, encodeHalved(record, buffer, 0))) !== bodyHash) return null;
    if (chainHashHex(previousHash, seq, bodyHash) !== hash) return null;
    return { seq, type, body, hash };
  };

  /** null: something in these records is not as it was written, or one is pruned or missing. */
  return (fromSeq: number, toSeq: number, previousHash: string): SoundRecord[] | null => {
    const rows = select.all(fromSeq, toSeq);
    if (rows.length !== toSeq - fromSeq + 1) return null;
    const sound: SoundRecord[] = [];
    let previous = previousHash;
    for (const row of rows) {
      const record = check(row, previous);
      if (record === null) return null;
      sound.push(record);
      previous = record.hash;
    }
    return sound;
  };
};
