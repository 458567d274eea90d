/**
 * What one commit holds: every append that waited, as one transaction, with the chain's links, the effects of the
 * journal's own records and a checkpoint when one is due. Runs in the writer's thread. Any error out of here means
 * that the disk no longer does what it is asked, and ends the writer (C7).
 */
import type { KeyObject } from 'node:crypto';
import { type Checkpoint, readNewestCheckpoint, signCheckpoint } from './checkpoints.ts';
import type { Db } from './connect.ts';
import type { RecordFrame } from './encoding.ts';
import { createNameWriter } from './names.ts';
import { JOURNAL_PRUNED, parsePruned, parseReadsClosed, READS_CLOSED } from './own-records.ts';
import { createReadTable } from './read-table.ts';
import { type ChainEnd, createRecordTable } from './record-table.ts';
import { createSnapshotTable } from './snapshot-table.ts';
import type { SealedSegment } from './types.ts';
import type { AppendMessage } from './writer-messages.ts';

/** A checkpoint is signed at least this often in records; by time, the writer asks for one. */
const checkpointEveryRecords = 1000;

export interface Batches {
  readonly end: () => ChainEnd;
  readonly commit: (messages: readonly AppendMessage[]) => void;
  /** Signs the end of the chain in a transaction of its own, unless it is signed. */
  readonly checkpoint: () => void;
  readonly newestCheckpoint: () => Checkpoint | null;
  readonly seal: () => SealedSegment[];
  readonly writeSnapshot: (seq: number, evolverVersion: number, state: Uint8Array) => void;
}

const asBuffer = ({ buffer, byteOffset, byteLength }: Uint8Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

export const createBatches = (db: Db, key: KeyObject): Batches => {
  const begin = db.prepare('BEGIN IMMEDIATE');
  const commit = db.prepare('COMMIT');
  const rollback = db.prepare('ROLLBACK');
  const raiseGuard = db.prepare('INSERT INTO pruning (active) VALUES (1)');
  const dropGuard = db.prepare('DELETE FROM pruning');
  const insertCheckpoint = db.prepare('INSERT INTO checkpoints (seq, hash, at_max, signature) VALUES (?, ?, ?, ?)');
  const records = createRecordTable(db, createNameWriter(db));
  const reads = createReadTable(db);
  const snapshots = createSnapshotTable(db);
  let signed = readNewestCheckpoint(db);

  const transaction = <T>(work: () => T): T => {
    begin.run();
    try {
      const result = work();
      commit.run();
      return result;
    } catch (thrown) {
      if (db.inTransaction) rollback.run();
      throw thrown;
    }
  };

  const guarded = (work: () => void): void => {
    raiseGuard.run();
    work();
    dropGuard.run();
  };

  const actOnOwn = ({ type, seq, body }: RecordFrame): void => {
    if (type === READS_CLOSED) {
      reads.close(parseReadsClosed({ seq, type, body: Buffer.from(body).toString() }).segment, seq);
    } else if (type === JOURNAL_PRUNED) {
      const pruning = parsePruned({ seq, type, body: Buffer.from(body).toString() });
      guarded(() => {
        records.prune(pruning.seqs);
        snapshots.dropBefore(Math.max(0, ...pruning.seqs.map(([, last]) => last)));
        pruning.segments.forEach(reads.drop);
      });
    }
  };

  const sign = (): Checkpoint => {
    const { seq, hash, atMaxNs } = records.end();
    const checkpoint = signCheckpoint(key, seq, hash, atMaxNs);
    insertCheckpoint.run(seq, hash, atMaxNs, checkpoint.signature);
    return checkpoint;
  };

  return {
    end: records.end,
    commit: (messages) => {
      const made = transaction(() => {
        for (const message of messages) {
          records.append(asBuffer(message.records), actOnOwn);
          if (message.reads !== null) reads.append(message.reads);
        }
        return records.end().seq - (signed?.seq ?? 0) >= checkpointEveryRecords ? sign() : null;
      });
      signed = made ?? signed;
    },
    checkpoint: () => {
      if (records.end().seq > (signed?.seq ?? 0)) signed = transaction(sign);
    },
    newestCheckpoint: () => signed,
    seal: reads.seal,
    writeSnapshot: (seq, evolverVersion, state) =>
      transaction(() => guarded(() => snapshots.write(seq, evolverVersion, state))),
  };
};
