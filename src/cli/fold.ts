/**
 * Compares what the journal folds to, from record 1 on, with what others hold: its snapshots and the live state of the
 * daemon. Equal means byte for byte: the hashes are of the whole state as it is written.
 */
import { Worker } from 'node:worker_threads';
import type { NodeState } from '../domain/model/state.ts';
import { writeState } from '../domain/turn/snapshot.ts';
import { nodeFold } from '../engine/node-fold.ts';
import { foldAll } from '../journal/fold.ts';
import { openReader } from '../journal/open.ts';
import { hashOfState } from '../journal/snapshots.ts';

/** A state that somebody holds, after the record with this seq. */
export interface Held {
  readonly seq: number;
  /** SHA-256, in hex, of the written state. */
  readonly stateHash: string;
}

export interface Compared<H extends Held = Held> {
  readonly held: H;
  readonly foldedHash: string;
  readonly isSame: boolean;
}

/** States of the snapshots that the evolvers of this scribe wrote, newest first. */
export const snapshotsOf = (path: string): Held[] => {
  const reader = openReader(path);
  try {
    const held: Held[] = [];
    for (let through = Number.MAX_SAFE_INTEGER; ; ) {
      const snapshot = reader.newestSnapshot(nodeFold.evolverVersion, through);
      if (snapshot === null) return held;
      held.push({ seq: snapshot.seq, stateHash: hashOfState(snapshot.state) });
      through = snapshot.seq - 1;
    }
  } finally {
    reader.close();
  }
};

export interface FoldOutcome<H extends Held> {
  readonly compared: readonly Compared<H>[];
  /** What all of it folds to. */
  readonly whole: Held;
  /** What shows that it is not all that was written here, and nobody has acknowledged. */
  readonly doubts: readonly string[];
}

/** Folds everything once, and looks at the state on the way. Runs on the calling thread. */
export const compareFold = <H extends Held>(
  path: string,
  held: readonly H[],
  onProgress: (seq: number) => void,
): FoldOutcome<H> => {
  const inOrder = held.toSorted((a, b) => a.seq - b.seq);
  const hashes: string[] = [];
  const atStop = (state: NodeState): void => void hashes.push(hashOfState(writeState(state)));
  const { state, seq } = foldAll(path, nodeFold, { stops: inOrder.map((one) => one.seq), atStop, onProgress });
  const compared = inOrder.map((one, index): Compared<H> => {
    const foldedHash = hashes[index] ?? '';
    return { held: one, foldedHash, isSame: foldedHash === one.stateHash };
  });
  const doubts = (state.journalDoubts ?? []).map(({ what }) => what);
  return { compared, whole: { seq, stateHash: hashOfState(writeState(state)) }, doubts };
};

export interface FoldTask {
  readonly path: string;
  readonly held: readonly Held[];
}

/** Words on the way, and at the end the answer. */
export type FromFoldWorker =
  | { readonly kind: 'progress'; readonly seq: number }
  | { readonly kind: 'folded'; readonly outcome: FoldOutcome<Held> };

/** The same on a thread of its own, until the signal: worth its start where there is much to fold. */
export const compareFoldElsewhere = async <H extends Held>(
  path: string,
  held: readonly H[],
  onProgress: (seq: number) => void,
  signal: AbortSignal,
): Promise<FoldOutcome<H>> => {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<FoldOutcome<Held>>();
  const task: FoldTask = { path, held };
  const worker = new Worker(new URL('./fold-worker.ts', import.meta.url), { workerData: task });
  worker.on('message', (message: FromFoldWorker) => {
    if (message.kind === 'progress') onProgress(message.seq);
    else resolve(message.outcome);
  });
  worker.once('error', reject);
  worker.once('exit', (code) => reject(new Error(`The folding thread ended with code ${code}.`)));
  signal.addEventListener('abort', () => void worker.terminate());
  // What came back are copies of what was handed over.
  return (await promise) as FoldOutcome<H>;
};
