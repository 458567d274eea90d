/**
 * Checks a page of the chain in one go, as fast as it can: computes the hashes of all its records and compares them with
 * those that are stored. Says only whether every column is as it was written; what is wrong is chain-check.ts's to find.
 */
import { type Db, isCorruption } from './connect.ts';
import { createChain, HASH_BYTES } from './encoding.ts';
import { createRowEncoder, type RawRecord, recordColumns } from './raw-record.ts';

/** What of a page the check of the chain goes on with. */
export interface SoundPage {
  /** One for each record. */
  readonly rows: readonly RawRecord[];
  /** The records of a type that was asked for. */
  readonly told: readonly { readonly seq: number; readonly type: string; readonly body: string }[];
  /** Of a record of the page, in hex, until the next page is asked for. */
  readonly hashOf: (seq: number) => string;
  /** Of all of them, and where in it the body_hash of one begins. */
  readonly hashes: Buffer;
  readonly bodyHashAt: (seq: number) => number;
}

/**
 * What SQLite may have stored in a column: JavaScript's numbers pass over a double that is nearly the same. A sum with a
 * double in it is one; a text or blob in place of a number shows in the row.
 */
const isWhole = ['at', 'mono', '(boot + type + v + stream + coalesce(cause, 1) + coalesce(call, 1))']
  .map((value) => `typeof(${value}) = 'integer'`)
  .join(' AND ');

/** What is compared are both, one behind the other. */
const areHashes = [
  ...['body_hash', 'hash'].map((column) => `typeof(${column}) = 'blob'`),
  `length(body_hash) = ${HASH_BYTES}`,
].join(' AND ');

/** body_hash and hash. */
const ROW_BYTES = 2 * HASH_BYTES;

interface Page {
  readonly rows: readonly RawRecord[];
  /** Of all rows, those of one behind those of the other. */
  readonly hashes: Buffer;
}

/** @param isTold  by its type, whether a record is told */
export const createSoundPages = (db: Db, names: ReadonlyMap<number, string>, isTold: (type: string) => boolean) => {
  const select = db
    .prepare<[fromSeq: number, toSeq: number, count: number], RawRecord>(
      `SELECT ${recordColumns} FROM records WHERE seq >= ? AND seq <= ? AND ${isWhole} ORDER BY seq LIMIT ?`,
    )
    .raw();
  // All hashes of a page as one blob: a value of its own for each takes half as long again as reading the rest.
  const selectHashes = db
    .prepare<[fromSeq: number, toSeq: number], Buffer | null>(
      `SELECT CAST(group_concat(CAST(both AS TEXT), '') AS BLOB) FROM
         (SELECT body_hash || hash AS both FROM records WHERE seq >= ? AND seq <= ? AND ${areHashes} ORDER BY seq)`,
    )
    .pluck();
  const encodingOf = createRowEncoder((id) => names.get(id));
  // Used for every page: what is taken anew for each, others would notice when it is cleared up.
  let computed = Buffer.alloc(0);

  /** null: not all can be read, or something else than a record is there. */
  const read = (fromSeq: number, toSeq: number): Page | null => {
    const count = toSeq - fromSeq + 1;
    try {
      const rows = select.all(fromSeq, toSeq, count);
      const hashes = selectHashes.get(fromSeq, toSeq) ?? null;
      return rows.length === count && hashes?.length === count * ROW_BYTES ? { rows, hashes } : null;
    } catch (thrown) {
      if (!isCorruption(thrown)) throw thrown;
      return null;
    }
  };

  /** null: something in these records is not as it was written, or one is pruned, missing or cannot be read. */
  return (fromSeq: number, toSeq: number, previousHash: string): SoundPage | null => {
    const page = read(fromSeq, toSeq);
    if (page === null) return null;
    const { rows, hashes } = page;
    if (computed.length < hashes.length) computed = Buffer.alloc(hashes.length);
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
    if (hashes.compare(computed, 0, hashes.length) !== 0) return null;
    return {
      rows,
      told,
      hashOf: (seq) =>
        computed.toString('hex', (seq - fromSeq) * ROW_BYTES + HASH_BYTES, (seq - fromSeq + 1) * ROW_BYTES),
      hashes: computed,
      bodyHashAt: (seq) => (seq - fromSeq) * ROW_BYTES,
    };
  };
};
