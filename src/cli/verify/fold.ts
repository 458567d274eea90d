/**
 * Compares what the journal folds to, from record 1 on, with what others hold: its snapshots and the live state of the
 * daemon. Equal means byte for byte: the hashes are of the whole state as it is written. Where each snapshot leads to the next,
 * folding from one to the other says the same, since the first of them is folded to from record 1.
 */
import type { NodeState } from '../../domain/model/state.ts';
import { readState, writeState } from '../../domain/turn/snapshot.ts';
import { nodeFold, nodeFoldModule } from '../../engine/node-fold.ts';
import { foldAll } from '../../journal/fold.ts';
import type { StateAt } from '../../journal/fold-part.ts';
import { openReader } from '../../journal/open.ts';
import { hashOfState } from '../../journal/snapshots.ts';
import type { FoldAsked, FoldedStates } from '../../journal/verify.ts';
import { startNativeThread } from '../../platform/native-thread.ts';

export interface Compared<H extends StateAt = StateAt> {
  readonly held: H;
  readonly foldedHash: string;
  readonly isSame: boolean;
}

/** States of the snapshots that the evolvers of this scribe wrote, newest first. */
export const snapshotsOf = (path: string): StateAt[] => {
  const reader = openReader(path);
  try {
    const held: StateAt[] = [];
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

export interface FoldOutcome<H extends StateAt> {
  readonly compared: readonly Compared<H>[];
  /** What all of it folds to. */
  readonly whole: StateAt;
  /** What shows that it is not all that was written here, and nobody has acknowledged. */
  readonly doubts: readonly string[];
}

const outcomeOf = <H extends StateAt>(
  held: readonly H[],
  states: readonly StateAt[],
  last: NodeState,
  whole: StateAt,
): FoldOutcome<H> => {
  const hashes = new Map(states.map(({ seq, stateHash }) => [seq, stateHash]));
  const compared = inOrder(held).map((one): Compared<H> => {
    const foldedHash = hashes.get(one.seq) ?? '';
    return { held: one, foldedHash, isSame: foldedHash === one.stateHash };
  });
  return { compared, whole, doubts: (last.journalDoubts ?? []).map(({ what }) => what) };
};

const inOrder = <H extends StateAt>(held: readonly H[]): H[] => held.toSorted((a, b) => a.seq - b.seq);

/** Folds everything once, and looks at the state on the way. Runs on the calling thread. */
export const compareFold = <H extends StateAt>(
  path: string,
  held: readonly H[],
  onProgress: (seq: number) => void,
): FoldOutcome<H> => {
  const states: StateAt[] = [];
  const atStop = (state: NodeState, seq: number): void =>
    void states.push({ seq, stateHash: hashOfState(writeState(state)) });
  const stops = inOrder(held).map((one) => one.seq);
  const { state, seq } = foldAll(path, nodeFold, { stops, atStop, onProgress });
  return outcomeOf(held, states, state, { seq, stateHash: hashOfState(writeState(state)) });
};

/** Of the journal, what may lie between two snapshots: more, and some threads would have nothing to do. */
const PART_MAX = 1 / 4;

/**
 * How a journal can be folded out of the rows that are checked of it, from snapshot to snapshot; null: they lie too far apart,
 * so that it is better folded as a whole, beside the check.
 */
export const foldFromSnapshots = (
  { snapshots, live }: { readonly snapshots: readonly StateAt[]; readonly live: readonly StateAt[] },
  headSeq: number,
): FoldAsked | null => {
  const seqsOf = (held: readonly StateAt[]): number[] => inOrder(held).map(({ seq }) => seq);
  const seqs = seqsOf(snapshots);
  const isNear = [...seqs, headSeq].every((seq, index) => seq - (seqs[index - 1] ?? 0) <= headSeq * PART_MAX);
  return isNear ? { module: nodeFoldModule, snapshots: seqs, others: seqsOf(live) } : null;
};

/** What was folded from snapshot to snapshot, compared; null: not all is the same, or was folded, which the whole fold tells more of. */
export const compareFolded = <H extends StateAt>(
  held: readonly H[],
  folded: FoldedStates | null,
): FoldOutcome<H> | null => {
  const whole = folded?.states.at(-1);
  if (folded === null || whole === undefined) return null;
  const outcome = outcomeOf(held, folded.states, readState(folded.state), whole);
  return outcome.compared.every(({ isSame }) => isSame) ? outcome : null;
};

export interface FoldTask {
  readonly path: string;
  readonly held: readonly StateAt[];
}

/** Words on the way, and at the end the answer. */
export type FromFoldWorker =
  | { readonly kind: 'progress'; readonly seq: number }
  | { readonly kind: 'folded'; readonly outcome: FoldOutcome<StateAt> };

/** The same on a thread of its own, until the signal: worth its start where there is much to fold. */
export const compareFoldElsewhere = async <H extends StateAt>(
  path: string,
  held: readonly H[],
  onProgress: (seq: number) => void,
  signal: AbortSignal,
): Promise<FoldOutcome<H>> => {
  signal.throwIfAborted();
  const { promise, resolve, reject } = Promise.withResolvers<FoldOutcome<StateAt>>();
  const task: FoldTask = { path, held };
  const { worker, end } = startNativeThread(new URL('./fold-worker.ts', import.meta.url), task);
  worker.on('message', (message: FromFoldWorker) => {
    if (message.kind === 'progress') onProgress(message.seq);
    else resolve(message.outcome);
  });
  worker.once('error', reject);
  worker.once('exit', (code) => reject(new Error(`The folding thread ended with code ${code}.`)));
  signal.addEventListener('abort', () => void end());
  // What came back are copies of what was handed over.
  return (await promise) as FoldOutcome<H>;
};
