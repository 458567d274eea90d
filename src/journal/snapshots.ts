/**
 * Taking a snapshot (C14): a thread of its own folds the state from the journal, the hash is compared with that of
 * the live state, and only then it is written. So a snapshot never carries a mistake of the live state over a
 * restart, and the fold is proven against it every time.
 */
import { Worker } from 'node:worker_threads';
import { sha256 } from './encoding.ts';
import { KEPT_EVERY_RECORDS } from './snapshot-table.ts';
import type { SqliteJournal } from './sqlite-journal.ts';

export interface FoldTask {
  readonly path: string;
  /** URL of the module that exports the StateFold, and the name it has there. */
  readonly moduleUrl: string;
  readonly exportName: string;
  readonly seq: number;
}

export interface FoldAnswer {
  readonly evolverVersion: number;
  readonly state: Uint8Array<ArrayBuffer>;
  readonly stateHash: string;
}

export interface TakenSnapshot {
  readonly seq: number;
  readonly sizeBytes: number;
  readonly stateHash: string;
  /** False when the live state is another one than the journal gives: the snapshot was not written. */
  readonly matches: boolean;
}

/** Hash of a written state, as a snapshot's is compared: SHA-256 in hex. */
export const hashOfState = (text: string): string => sha256(Buffer.from(text)).toString('hex');

const foldElsewhere = async (task: FoldTask): Promise<FoldAnswer> => {
  const { promise, resolve, reject } = Promise.withResolvers<FoldAnswer>();
  const worker = new Worker(new URL('./fold-worker.ts', import.meta.url), { name: 'scribe fold', workerData: task });
  worker.once('message', resolve);
  worker.once('error', reject);
  worker.once('exit', (code) => reject(new Error(`The folding thread ended with code ${code}.`)));
  return promise;
};

/**
 * Folds the state at `task.seq`, which must be durable, and writes it as a snapshot if `liveHash` is its hash (null:
 * nothing to compare with). Rejects when the fold fails or the journal does.
 */
export const takeSnapshot = async (
  journal: SqliteJournal,
  task: FoldTask,
  liveHash: string | null,
): Promise<TakenSnapshot> => {
  const { evolverVersion, state, stateHash } = await foldElsewhere(task);
  const matches = liveHash === null || liveHash === stateHash;
  const sizeBytes = state.byteLength;
  if (matches) await journal.writeSnapshotBytes(task.seq, evolverVersion, state);
  return { seq: task.seq, sizeBytes, stateHash, matches };
};

/**
 * Where a snapshot is missing on the way to `headSeq`, so that a past state would be a long fold away: pruning drops
 * those before it, and other evolvers cannot use the old ones. In order: each is then folded from the one before.
 */
export const missingSnapshots = (presentSeqs: readonly number[], headSeq: number): number[] => {
  const missing: number[] = [];
  for (let seq = KEPT_EVERY_RECORDS; seq + KEPT_EVERY_RECORDS <= headSeq; seq += KEPT_EVERY_RECORDS) {
    const isNear = presentSeqs.some((present) => present > seq - KEPT_EVERY_RECORDS && present <= seq);
    if (!isNear) missing.push(seq);
  }
  return missing;
};
