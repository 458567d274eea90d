/** Which record is meant by a place on a lane, and which comes before or after one. Pure. */
import { kindOf, type Kind } from './kinds.ts';
import { type LaneIndex, stretchOf } from './lane-index.ts';
import type { Records } from './store.ts';

/** Of records that lie together, the one that tells most is meant. */
const rankOf = (kind: Kind): number => {
  switch (kind) {
    case 'trouble':
    case 'failed exit':
    case 'failed call':
      return 0;
    case 'exit':
    case 'event':
    case 'call':
    case 'call under way':
      return 1;
    case 'begin':
    case 'end':
    case 'removal':
      return 2;
    case 'step':
      return 3;
  }
};

/** Records that are looked at: under a few pixels there may be a hundred thousand. */
const LOOKED_AT_MAX = 2000;

/** The position of the record that is meant; null: nothing is there. */
export const recordNear = (
  { kinds }: Pick<Records, 'kinds'>,
  index: LaneIndex,
  lane: number,
  atMs: number,
  withinMs: number,
): number | null => {
  for (const by of [index.wrong, index.shown]) {
    const [from, to] = stretchOf(by, lane, atMs - withinMs, atMs + withinMs);
    let best: { readonly position: number; readonly rank: number; readonly away: number } | null = null;
    for (let at = from; at < Math.min(to, from + LOOKED_AT_MAX); at += 1) {
      const position = by.positions[at] ?? 0;
      const rank = rankOf(kindOf(kinds[position] ?? 0));
      const away = Math.abs((by.times[at] ?? 0) - atMs);
      if (best === null || rank < best.rank || (rank === best.rank && away < best.away))
        best = { position, rank, away };
    }
    if (best !== null) return best.position;
  }
  return null;
};

/** The neighbour of a record on its lane; without one, the first in the window, or the last one before its end. */
export const neighbourOf = (
  index: LaneIndex,
  lane: number,
  position: number | null,
  direction: 1 | -1,
  window: { readonly fromMs: number; readonly toMs: number },
): number | null => {
  const { starts, positions } = index.shown;
  const [start, end] = [starts[lane] ?? 0, starts[lane + 1] ?? 0];
  const here = position === null ? -1 : positions.subarray(start, end).indexOf(position);
  if (here >= 0)
    return start + here + direction < start || start + here + direction >= end
      ? null
      : (positions[start + here + direction] ?? null);
  const [from, to] = stretchOf(index.shown, lane, window.fromMs, window.toMs);
  const at = direction === 1 ? from : to - 1;
  return at >= start && at < end ? (positions[at] ?? null) : null;
};
