/** Whose states a journal is folded for: those of its snapshots, and of the daemon where it runs. Reads and asks; judges nothing. */
import type { StateReply } from '../../wire/scribe/v1/daemon.ts';
import { askDaemon, socketOfRoot } from '../daemon.ts';
import type { StateAt } from '../../journal/fold-part.ts';
import { type FoldOutcome, snapshotsOf } from './fold.ts';
import type { PlaceValues } from '../places.ts';

/** Somebody's state, and who holds it. */
export interface Holder extends StateAt {
  readonly who: 'snapshot' | 'daemon' | 'decisions';
}

export interface Holders {
  readonly snapshots: readonly Holder[];
  readonly live: readonly Holder[];
  /** Why the daemon was not asked, or did not answer; null when its state is among them. */
  readonly noDaemon: string | null;
}

export interface Folded extends FoldOutcome<Holder>, Pick<Holders, 'noDaemon'> {}

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

/** Who holds a state now. */
export const askHolders = async (values: PlaceValues, rootDir: string, path: string): Promise<Holders> => {
  const { state, why } = await askDaemon(await socketOfRoot(values, path), rootDir);
  const snapshots = snapshotsOf(path).map((held): Holder => ({ ...held, who: 'snapshot' }));
  return { snapshots, live: state === null ? [] : liveStates(state), noDaemon: why };
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
  const once = async (): Promise<Folded> => {
    const { snapshots, live, noDaemon } = await askHolders(values, rootDir, path);
    return { ...(await compare(path, [...snapshots, ...live], onProgress)), noDaemon };
  };
  const folded = await once();
  return folded.compared.every(({ isSame }) => isSame) ? folded : once();
};
