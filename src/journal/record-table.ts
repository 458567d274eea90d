/**
 * Writing records: the chain's next link per row, and what pruning leaves of a row. Runs in the writer's thread,
 * always within the writer's transaction. Must not decide what is pruned: a `journal.pruned` record says so.
 */
import type { Db } from './connect.ts';
import { createChain, decodeFrame, GENESIS, type RecordFrame } from './encoding.ts';
import type { NameWriter } from './names.ts';
import { JOURNAL_PRUNED, READS_CLOSED } from './own-records.ts';
import { isInlineStream } from './streams.ts';
import type { SeqRange } from './types.ts';

export interface ChainEnd {
  readonly seq: number;
  readonly hash: Uint8Array;
  /** Greatest `at` so far. */
  readonly atMaxNs: bigint;
}

export interface RecordTable {
  readonly end: () => ChainEnd;
  /** Inserts the encoded records; `each` sees every one right after its row is in. */
  readonly append: (frames: Buffer, each: (frame: RecordFrame) => void) => void;
  /** Empties these rows, the journal's own records aside. The guard must be up. */
  readonly prune: (ranges: readonly SeqRange[]) => void;
}

const columns = 'seq, at, mono, boot, type, v, stream, cause, call, body_hash, hash, body';

interface Kept {
  readonly seq: number;
  readonly body_hash: Buffer;
}

interface EndRow {
  readonly seq: bigint;
  readonly hash: Buffer;
}

/** The end of the chain as it is on disk. */
const readChainEnd = (db: Db): ChainEnd => {
  const last = db.prepare<[], EndRow>('SELECT seq, hash FROM records ORDER BY seq DESC LIMIT 1').safeIntegers().get();
  const atMax = db
    .prepare<[], bigint | null>(
      `SELECT max(at) FROM (
         SELECT at FROM records WHERE seq > (SELECT coalesce(max(seq), 0) FROM checkpoints)
         UNION ALL SELECT max(at_max) FROM checkpoints)`,
    )
    .pluck()
    .safeIntegers()
    .get();
  return { seq: Number(last?.seq ?? 0n), hash: last?.hash ?? GENESIS, atMaxNs: atMax ?? 0n };
};

export const createRecordTable = (db: Db, names: NameWriter): RecordTable => {
  const statement = (stream: string) =>
    db.prepare(`INSERT INTO records (${columns}) VALUES (?, ?, ?, ?, ?, ?, ${stream}, ?, ?, ?, ?, CAST(? AS TEXT))`);
  // A bound number is a double to SQLite, and this column keeps what it is given.
  const insertNamed = statement('CAST(? AS INTEGER)');
  const insertInline = statement('?');
  const start = readChainEnd(db);
  const chain = createChain(start.hash);
  let { seq: lastSeq, atMaxNs } = start;

  const ownTypes = `SELECT id FROM names WHERE name IN ('${READS_CLOSED}', '${JOURNAL_PRUNED}')`;
  const prunable = `seq BETWEEN ? AND ? AND at IS NOT NULL AND type NOT IN (${ownTypes})`;
  const streamsOf = db
    .prepare<[number, number], number>(
      `SELECT DISTINCT stream FROM records WHERE typeof(stream) = 'integer' AND ${prunable}`,
    )
    .pluck();
  const kept = db.prepare<[number, number], Kept>(`SELECT seq, body_hash FROM records WHERE ${prunable}`);
  const remove = db.prepare(`DELETE FROM records WHERE ${prunable}`);
  const putBack = db.prepare('INSERT INTO records (seq, body_hash) VALUES (?, ?)');
  const isUsed = db
    .prepare<[number], number>(`SELECT 1 FROM records WHERE typeof(stream) = 'integer' AND stream = ? LIMIT 1`)
    .pluck();

  const insert = (frame: RecordFrame): void => {
    chain.link(frame.seq, frame.bytes);
    const inline = isInlineStream(frame.stream);
    (inline ? insertInline : insertNamed).run(
      frame.seq,
      frame.atNs,
      frame.monoNs,
      names.idOf(frame.boot),
      names.idOf(frame.type),
      frame.v,
      inline ? frame.stream : names.idOf(frame.stream),
      frame.cause,
      frame.call,
      chain.bodyHash,
      chain.hash,
      frame.body,
    );
    lastSeq = frame.seq;
    if (frame.atNs > atMaxNs) atMaxNs = frame.atNs;
  };

  return {
    end: () => ({ seq: lastSeq, hash: new Uint8Array(chain.hash), atMaxNs }),
    append: (frames, each) => {
      for (let at = 0; at < frames.length; ) {
        const frame = decodeFrame(frames, at);
        insert(frame);
        each(frame);
        at += frame.bytes.length;
      }
    },
    prune: (ranges) => {
      const streams = new Set(ranges.flatMap(([first, last]) => streamsOf.all(first, last)));
      const rows = ranges.flatMap(([first, last]) => kept.all(first, last));
      // All at once out and then back in: in between, pages that have become empty are given back.
      for (const [first, last] of ranges) remove.run(first, last);
      for (const { seq, body_hash } of rows) putBack.run(seq, body_hash);
      for (const stream of streams) if (isUsed.get(stream) === undefined) names.forget(stream);
    },
  };
};
