/**
 * Checks a page of the chain in one go, as fast as it can: computes the hashes of all its records and compares them with
 * those that are stored. Says only whether every column is as it was written; what is wrong is chain-check.ts's to find.
 */
import { type Db, isCorruption } from './connect.ts';
import { createChain, HASH_BYTES } from './encoding.ts';
import { createRowEncoder, type RawRecord, recordColumns } from './raw-record.ts';

/** What of a page the check of the chain goes on with. */
export interface SoundPage {
  readonly records: number;
  /** The records of a type that was asked for. */
  readonly told: readonly { readonly seq: number; readonly type: string; readonly body: string }[];
  /** Of a record of the page, in hex, until the next page is asked for. */
  readonly hashOf: (seq: number) => string;
  /** The same of its body_hash, as bytes. */
  readonly bodyHashOf: (seq: number) => Uint8Array;
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
  // What is compared are both, one behind the other.
  `length(body_hash) = ${HASH_BYTES}`,
].join(' AND ');

/** body_hash and hash. */
const ROW_BYTES = 2 * HASH_BYTES;

/** @param isTold  by its type, whether a record is told */
export const createSoundPages = (db: Db, names: ReadonlyMap<number, string>, isTold: (type: string) => boolean) => {
  const select = db
    .prepare<[fromSeq: number, toSeq: number, count: number], Row>(
      `SELECT ${recordColumns}, hex(body_hash || hash) FROM records
         WHERE seq >= ? AND seq <= ? AND ${isWhole} ORDER BY seq LIMIT ?`,
    )
    .raw();
  const encodingOf = createRowEncoder((id) => names.get(id));
  // Used for every page: what is taken anew for each, others would notice when it is cleared up.
  let [stored, computed]: readonly [Buffer, Buffer] = [Buffer.alloc(0), Buffer.alloc(0)];

  /** None where one of them cannot be read. */
  const rowsOf = (fromSeq: number, toSeq: number): readonly Row[] => {
    try {
      return select.all(fromSeq, toSeq, toSeq - fromSeq + 1);
    } catch (thrown) {
      if (!isCorruption(thrown)) throw thrown;
      return [];
    }
  };

  /** null: something in these records is not as it was written, or one is pruned, missing or cannot be read. */
  return (fromSeq: number, toSeq: number, previousHash: string): SoundPage | null => {
    const rows = rowsOf(fromSeq, toSeq);
    if (rows.length !== toSeq - fromSeq + 1) return null;
    const bytes = rows.length * ROW_BYTES;
    if (stored.length < bytes) [stored, computed] = [Buffer.alloc(bytes), Buffer.alloc(bytes)];
    // Compared all at once: a text or a Buffer for each hash would take longer than hashing.
    const storedBytes = stored.write(rows.map((row) => row[12]).join(''), 'hex');
    const chain = createChain(Buffer.from(previousHash, 'hex'));
    const told: { seq: number; type: string; body: string }[] = [];
    let at = 0;
    for (const row of rows) {
      const encoding = encodingOf(row);
      if (encoding === null) return null;
      const [seq, , , , , , typeId, , , , , body] = row;
      chain.link(seq, encoding);
      computed.set(chain.bodyHash, at);
      computed.set(chain.hash, at + HASH_BYTES);
      at += ROW_BYTES;
      const type = names.get(typeId);
      if (type !== undefined && isTold(type)) told.push({ seq, type, body });
    }
    if (storedBytes !== bytes || stored.compare(computed, 0, bytes, 0, bytes) !== 0) return null;
    return {
      records: rows.length,
      told,
      hashOf: (seq) =>
        computed.toString('hex', (seq - fromSeq) * ROW_BYTES + HASH_BYTES, (seq - fromSeq + 1) * ROW_BYTES),
      bodyHashOf: (seq) => computed.subarray((seq - fromSeq) * ROW_BYTES, (seq - fromSeq) * ROW_BYTES + HASH_BYTES),
    };
  };
};
