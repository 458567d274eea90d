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
import { type Note, originOf, signNote } from './notes.ts';
import { createSnapshotTable } from './snapshot-table.ts';
import { createTreeBuilder } from './tree-table.ts';
import type { SealedSegment } from './types.ts';
import type { AppendMessage } from './writer-messages.ts';

/** A checkpoint is kept in the journal this often; more often one is beside it, see writer.ts. */
const checkpointEveryRecords = 1000;

/** Nodes of the tree wait for the next commit; of an old journal, where none may come, they are no more than this. */
const treeNodesWaitingMax = 256;

export interface Batches {
  readonly end: () => ChainEnd;
  readonly commit: (messages: readonly AppendMessage[]) => void;
  /** Signs the end of the chain and keeps that in the journal, in a transaction of its own, unless it is there. */
  readonly checkpoint: () => void;
  /** Signs the end of the chain for whoever keeps it elsewhere; null while there is nothing to sign. */
  readonly signedEnd: () => Checkpoint | null;
  /** The tree as far as it is built, signed; null while it is empty. */
  readonly signedTree: () => Note | null;
  /** Takes at most so many records into the tree; returns whether there may be more. */
  readonly growTree: (recordsMax: number) => boolean;
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
  const tree = createTreeBuilder(db);
  const firstHash = db.prepare<[], Buffer>('SELECT body_hash FROM records WHERE seq = 1').pluck();
  let signedSeq = readNewestCheckpoint(db)?.seq ?? 0;

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
    return signCheckpoint(key, seq, hash, atMaxNs);
  };

  /** Within the caller's transaction. */
  const insertSigned = (): number => {
    const { seq, hash, atMaxNs, signature } = sign();
    insertCheckpoint.run(seq, hash, atMaxNs, signature);
    return seq;
  };

  return {
    end: records.end,
    commit: (messages) => {
      const made = transaction(() => {
        for (const message of messages) {
          records.append(asBuffer(message.records), actOnOwn);
          if (message.reads !== null) reads.append(message.reads);
        }
        tree.flush();
        return records.end().seq - signedSeq >= checkpointEveryRecords ? insertSigned() : signedSeq;
      });
      signedSeq = made;
    },
    checkpoint: () => {
      if (tree.waiting() > 0) transaction(tree.flush);
      if (records.end().seq > signedSeq) signedSeq = transaction(insertSigned);
    },
    signedEnd: () => (records.end().seq === 0 ? null : sign()),
    signedTree: () => {
      const first = firstHash.get();
      if (first === undefined || tree.size() === 0) return null;
      return signNote(key, { origin: originOf(first), size: tree.size(), root: tree.root() });
    },
    growTree: (recordsMax) => {
      const isMore = tree.advance(recordsMax);
      if (tree.waiting() >= treeNodesWaitingMax) transaction(tree.flush);
      return isMore;
    },
    seal: reads.seal,
    writeSnapshot: (seq, evolverVersion, state) =>
      transaction(() => guarded(() => snapshots.write(seq, evolverVersion, state))),
  };
};
