/** A small state to fold: how many records of each type there were, and the last seq. For tests of snapshots. */
import type { StateFold } from '../../src/journal/types.ts';

export interface Sums {
  last: number;
  readonly byType: Record<string, number>;
}

export const sumFold: StateFold<Sums> = {
  evolverVersion: 3,
  initial: () => ({ last: 0, byType: {} }),
  evolve: (state, { seq, type }) => {
    state.last = seq;
    state.byType[type] = (state.byType[type] ?? 0) + 1;
  },
  settledIn: () => new Set(),
  write: (state) => JSON.stringify(state),
  read: (text) => JSON.parse(text) as Sums,
};

/** Not a fold, for whoever names the wrong export. */
export const notAFold = { evolve: 1 };

export const throwingFold: StateFold<Sums> = {
  ...sumFold,
  write: () => {
    throw new Error('this fold cannot write');
  },
};
