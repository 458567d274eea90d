/** Counts of what falls into equal parts of a window: for the histogram, and for the density of a lane. Pure. */
import { lowerBound } from './store.ts';
import { type TimeWindow, widthOf } from './time-window.ts';

/** @param times  in order; only those from `from` to before `to` count */
export const binCounts = (
  times: Float64Array,
  { fromMs, toMs }: TimeWindow,
  bins: number,
  from = 0,
  to = times.length,
): Uint32Array => {
  const counts = new Uint32Array(bins);
  const binMs = widthOf({ fromMs, toMs }) / bins;
  let position = lowerBound(times, fromMs, from, to);
  const last = lowerBound(times, toMs, position, to);
  while (position < last) {
    const bin = Math.min(bins - 1, Math.floor(((times[position] ?? 0) - fromMs) / binMs));
    // What is beyond is found by halving, so a full bin costs no more than one with a few.
    const end = bin === bins - 1 ? last : nextBin(times, fromMs + (bin + 1) * binMs, position, last);
    counts[bin] = end - position;
    position = end;
  }
  return counts;
};

/** As lowerBound, by steps that double: the next bin mostly begins close by. Past `position` in any case. */
const nextBin = (times: Float64Array, wantedMs: number, position: number, last: number): number => {
  let [low, step] = [position + 1, 1];
  while (low + step < last && (times[low + step] ?? 0) < wantedMs) {
    low += step;
    step *= 2;
  }
  return lowerBound(times, wantedMs, low, Math.min(last, low + step));
};
