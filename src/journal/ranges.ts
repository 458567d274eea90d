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

/** Ascending ranges as [skipped, count, skipped, count, …]: a prune record stays for ever, so it is kept short. */
export const packRanges = (ranges: readonly SeqRange[]): number[] => {
  let next = 0;
  return ranges.flatMap(([first, last]) => {
    const pair = [first - next, last - first + 1];
    next = last + 1;
    return pair;
  });
};

export const unpackRanges = (packed: readonly number[]): SeqRange[] => {
  const ranges: SeqRange[] = [];
  let next = 0;
  for (let at = 0; at + 1 < packed.length; at += 2) {
    const first = next + (packed[at] ?? 0);
    next = first + (packed[at + 1] ?? 0);
    ranges.push([first, next - 1]);
  }
  return ranges;
};

/** The parts of `ranges` that none of `cover` holds. Neither need be sorted. */
export const uncovered = (ranges: readonly SeqRange[], cover: readonly SeqRange[]): SeqRange[] => {
  const sorted = cover.toSorted(([a], [b]) => a - b);
  const bare: [number, number][] = [];
  let at = 0;
  let coveredTo = 0;
  for (const [first, last] of ranges.toSorted(([a], [b]) => a - b)) {
    let from = first;
    while (from <= last) {
      // Of all that starts at or before `from`, what reaches furthest.
      for (let next = sorted[at]; next !== undefined && next[0] <= from; next = sorted[++at]) {
        coveredTo = Math.max(coveredTo, next[1]);
      }
      if (coveredTo >= from) {
        from = coveredTo + 1;
        continue;
      }
      const to = Math.min(last, (sorted[at]?.[0] ?? last + 1) - 1);
      bare.push([from, to]);
      from = to + 1;
    }
  }
  return bare;
};
