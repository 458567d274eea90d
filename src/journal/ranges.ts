/** Sequence numbers as inclusive ranges: how pruning names records briefly, and how verifying remembers them. */
import type { SeqRange } from './types.ts';

/** Ascending seqs as as few ranges as possible. */
export const rangesOfSeqs = (seqs: readonly number[]): SeqRange[] => {
  const ranges: [number, number][] = [];
  for (const seq of seqs) {
    const last = ranges.at(-1);
    if (last !== undefined && last[1] === seq - 1) last[1] = seq;
    else ranges.push([seq, seq]);
  }
  return ranges;
};
