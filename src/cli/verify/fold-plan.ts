/**
 * How verify folds a journal beside checking it. A small one is folded once it was checked. A large one meanwhile: from snapshot to
 * snapshot, out of the rows that are checked, where the snapshots allow; else as a whole, on a thread of its own.
 *
 *   snapshots near enough ──> from each to the next ──(all the same)──> done
 *                                      └──(a difference, or not all could be folded)──> as a whole, which tells more of it
 */
import type { Lanes } from '../../journal/lanes.ts';
import { type FoldAsked, type FoldedStates, splitAboveRecords } from '../../journal/verify.ts';
import { compareFold, compareFolded, compareFoldElsewhere, foldFromSnapshots } from './fold.ts';
import type { PlaceValues } from '../places.ts';
import { askHolders, foldAndCompare, type Folded, type Holders } from './held-states.ts';

export interface FoldPlan {
  /** What is to be folded of what is checked. */
  readonly asked: FoldAsked | null;
  /** What the journal folds to, compared, given what was folded of that. */
  readonly finish: (folded: FoldedStates | null) => Promise<Folded>;
}

export interface FoldOptions {
  readonly values: PlaceValues;
  readonly rootDir: string;
  readonly path: string;
  readonly headSeq: number;
  readonly lanes: Lanes;
  readonly onFolded: (seq: number) => void;
  /** Ends what is folded on another thread. */
  readonly signal: AbortSignal;
}

/** Who holds what, where it can be folded from snapshot to snapshot; of one that cannot be read the check says why. */
const partsOf = async ({
  values,
  rootDir,
  path,
  headSeq,
}: FoldOptions): Promise<{ readonly holders: Holders; readonly asked: FoldAsked } | null> => {
  try {
    const holders = await askHolders(values, rootDir, path);
    const asked = foldFromSnapshots(holders, headSeq);
    return asked === null ? null : { holders, asked };
  } catch {
    return null;
  }
};

/** Never rejects: what goes wrong is told where the journal is right, and folded. */
export const planFold = async (options: FoldOptions): Promise<FoldPlan> => {
  const { values, rootDir, path, headSeq, lanes, onFolded, signal } = options;
  const fold = (compare: typeof compareFold | typeof compareFoldElsewhere): Promise<Folded> =>
    foldAndCompare(values, rootDir, path, async (...task) => compare(...task, signal), onFolded);
  if (headSeq <= splitAboveRecords) return { asked: null, finish: () => fold(compareFold) };
  const parts = await partsOf(options);
  if (parts === null) {
    const folding = lanes(() => fold(compareFoldElsewhere));
    folding.catch(() => {});
    return { asked: null, finish: () => folding };
  }
  const { asked, holders } = parts;
  const finish = async (folded: FoldedStates | null): Promise<Folded> => {
    const outcome = compareFolded([...holders.snapshots, ...holders.live], folded);
    return outcome === null ? fold(compareFoldElsewhere) : { ...outcome, noDaemon: holders.noDaemon };
  };
  return { asked, finish };
};
