/** Which lanes have a row in a window of time, and where things are on the picture. Pixels of CSS. Pure. */
import type { Lane } from './frames.ts';
import type { Tone } from './kinds.ts';
import { type LaneIndex, stretchOf } from './lane-index.ts';
import { type TimeWindow, widthOf } from './time-window.ts';

export const ROW_PX = 18;
/** How high things are on a row: the line of what was there, the bar of what ran. */
export const LINE_PX = 4;
export const BAR_PX = 10;
/** Marks, which stick out from the line: their colours do not tell them from it. */
export const MARK_PX: Readonly<Record<Tone, number>> = { step: 8, call: 10, event: 7, wrong: 13 };
const CROWD_PX_MIN = 7;
const CROWD_PX_MAX = 14;

/** So many records in one place, as one mark: the higher, the more. */
export const crowdPx = (count: number): number => Math.min(CROWD_PX_MAX, CROWD_PX_MIN + 1.25 * Math.log2(count));

/** Whether what a lane stands for was there in the window: from its first record until it was removed. */
const wasThere = ({ lives }: LaneIndex, lane: number, { fromMs, toMs }: TimeWindow): boolean => {
  const [firstMs = Number.NaN, lastMs = Number.NaN] = [lives.firstMs[lane], lives.lastMs[lane]];
  return firstMs <= toMs && (lives.isGone[lane] !== 1 || lastMs >= fromMs);
};

/** Lanes with a row, from above. With a filter those alone that have something to show, and the pods they are in. */
export const rowsIn = (
  index: LaneIndex,
  lanes: readonly Lane[],
  window: TimeWindow,
  isFiltered: boolean,
): Uint32Array => {
  if (!isFiltered) return index.order.filter((lane) => wasThere(index, lane, window));
  const chosen = new Set<number>();
  for (const lane of index.order) {
    const [from, to] = stretchOf(index.shown, lane, window.fromMs, window.toMs);
    if (from === to) continue;
    chosen.add(lane);
    const parent = lanes[lane]?.parent;
    if (parent != null) chosen.add(parent);
  }
  return index.order.filter((lane) => chosen.has(lane));
};

/** Where the times of a window are drawn. */
export interface Plot {
  readonly leftPx: number;
  readonly widthPx: number;
}

export const xOf = (atMs: number, window: TimeWindow, { leftPx, widthPx }: Plot): number =>
  leftPx + ((atMs - window.fromMs) / widthOf(window)) * widthPx;

export const timeAt = (xPx: number, window: TimeWindow, { leftPx, widthPx }: Plot): number =>
  window.fromMs + ((xPx - leftPx) / widthPx) * widthOf(window);
