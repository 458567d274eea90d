/** Whose states a journal is folded for: those of its snapshots, and of the daemon where it runs. Reads and asks; judges nothing. */
import type { StateReply } from '../../wire/scribe/v1/daemon.ts';
import { type Answer, askDaemon, socketOfRoot } from '../daemon.ts';
import { type Compared, type FoldOutcome, type Held, snapshotsOf } from '../fold.ts';
import type { PlaceValues } from '../places.ts';

/** Somebody's state, and who holds it. */
export interface Holder extends Held {
  readonly who: 'snapshot' | 'daemon' | 'decisions';
}

export interface Folded {
  readonly compared: readonly Compared<Holder>[];
  readonly whole: Held;
  readonly doubts: readonly string[];
  /** Why the daemon was not asked, or did not answer; null when its state was compared. */
  readonly noDaemon: string | null;
}

const liveStates = ({ seq, stateHash, decidedFromHash }: StateReply): Holder[] => {
  const shown: Holder = { who: 'daemon', seq: Number(seq), stateHash };
  return decidedFromHash === '' ? [shown] : [shown, { ...shown, who: 'decisions', stateHash: decidedFromHash }];
};

/** How the fold is made: on this thread, or beside what is checked meanwhile. */
export type CompareFold = (
  path: string,
  held: readonly Holder[],
  onProgress: (seq: number) => void,
) => Promise<FoldOutcome<Holder>>;

const foldOnce = async (
  path: string,
  answer: Answer,
  compare: CompareFold,
  onProgress: (seq: number) => void,
): Promise<Folded> => {
  const snapshots = snapshotsOf(path).map((held): Holder => ({ ...held, who: 'snapshot' }));
  const { state } = answer;
  const live = state === null ? [] : liveStates(state);
  return { ...(await compare(path, [...snapshots, ...live], onProgress)), noDaemon: answer.why };
};

/**
 * What was pruned between asking and folding can't be told from damage: only a difference that is there twice, with
 * everybody asked anew, is one.
 */
export const foldAndCompare = async (
  values: PlaceValues,
  rootDir: string,
  path: string,
  compare: CompareFold,
  onProgress: (seq: number) => void,
): Promise<Folded> => {
  const socketPath = await socketOfRoot(values, path);
  const once = async (): Promise<Folded> => foldOnce(path, await askDaemon(socketPath, rootDir), compare, onProgress);
  const folded = await once();
  return folded.compared.every(({ isSame }) => isSame) ? folded : once();
};
