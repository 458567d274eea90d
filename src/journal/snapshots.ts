/**
 * Taking a snapshot (C14): a thread of its own folds the state from the journal, the hash is compared with that of
 * the live state, and only then it is written. So a snapshot never carries a mistake of the live state over a
 * restart, and the fold is proven against it every time.
 */
import { startNativeThread } from '../platform/native-thread.ts';
import { sha256 } from './encoding.ts';
import { type KeptSnapshot, keptApart } from './snapshot-table.ts';
import type { SqliteJournal } from './sqlite-journal.ts';
import type { FoldModule } from './types.ts';

export interface FoldTask extends FoldModule {
  readonly path: string;
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
  const { worker } = startNativeThread(new URL('./fold-worker.ts', import.meta.url), task, { name: 'scribe fold' });
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
 * The first place on the way to `headSeq` where a snapshot is missing, so that a past state would be a long fold away:
 * pruning drops those before it, and other evolvers cannot use the old ones. As far apart as they are kept, or what is
 * folded for it would be dropped at once. null: none is missing.
 */
export const missingSnapshot = (kept: readonly KeptSnapshot[], headSeq: number): number | null => {
  const apart = keptApart(Math.max(0, ...kept.map(({ sizeBytes }) => sizeBytes)));
  for (let seq = 0; seq + 2 * apart <= headSeq; ) {
    const next = kept.findLast((one) => one.seq > seq && one.seq <= seq + apart);
    if (next === undefined) return seq + apart;
    seq = next.seq;
  }
  return null;
};
