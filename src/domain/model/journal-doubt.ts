/**
 * A journal that is not all that was written here: what is doubted, and the end of the doubt. While there is any, the
 * creations that the journal says were under way are left as they are, and no content is deleted: what it says may be
 * long past, and what it does not know may be running.
 */
import type { Sequenced } from './records.ts';
import type { JournalDoubt } from './notes.ts';
import { rulesOf } from './rules.ts';
import type { NodeState } from './state.ts';

export const isDoubted = ({ journalDoubts = [] }: Pick<NodeState, 'journalDoubts'>): boolean =>
  journalDoubts.length > 0;

/** Whether creations of an earlier life go on only when they are asked for. */
export const leavesCreationsAlone = (state: NodeState): boolean => isDoubted(state) && rulesOf(state) >= 11;

/** Whether it is written down, or was before somebody acknowledged it. One without a head is told only when it begins. */
export const isKnownDoubt = (
  { journalDoubts = [], acknowledgedHeads = [] }: Pick<NodeState, 'journalDoubts' | 'acknowledgedHeads'>,
  { head }: JournalDoubt,
): boolean =>
  head !== undefined &&
  [...acknowledgedHeads, ...journalDoubts.flatMap((known) => known.head?.digest ?? [])].includes(head.digest);

/** Whether there may be more than the journal says: it is doubted, or `found` has a doubt that is not in it yet. */
export const mayLackRecords = (
  state: Pick<NodeState, 'journalDoubts' | 'acknowledgedHeads'>,
  found: readonly JournalDoubt[],
): boolean => isDoubted(state) || found.some((doubt) => !isKnownDoubt(state, doubt));

export function evolveDoubts(state: NodeState, record: Sequenced): void {
  const { journalDoubts = [], acknowledgedHeads = [] } = state;
  if (record.type === 'journal.doubted') state.journalDoubts = [...journalDoubts, record.body];
  if (record.type === 'journal.acknowledged') {
    state.acknowledgedHeads = [...acknowledgedHeads, ...journalDoubts.flatMap(({ head }) => head?.digest ?? [])];
    state.journalDoubts = undefined;
  }
}
