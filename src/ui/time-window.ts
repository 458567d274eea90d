/** The stretch of time that is looked at, and how it moves: zooming, panning, following. Milliseconds since the epoch. Pure. */

export interface TimeWindow {
  readonly fromMs: number;
  /** Later than fromMs. */
  readonly toMs: number;
}

const WIDTH_MIN_MS = 1;
/** How far beside what is recorded one may look, in widths of the window. */
const BESIDE = 0.5;
/** Of the whole, on each side: what lies at its ends is not cut. */
const MARGIN = 0.01;

export const widthOf = ({ fromMs, toMs }: TimeWindow): number => toMs - fromMs;

/** All that is recorded, with a margin. */
export const wholeOf = (firstMs: number, lastMs: number): TimeWindow => {
  const width = Math.max(lastMs - firstMs, 1000);
  return { fromMs: firstMs - width * MARGIN, toMs: lastMs + width * MARGIN };
};

/** No wider than the whole, and not far beside it. */
const within = ({ fromMs, toMs }: TimeWindow, whole: TimeWindow): TimeWindow => {
  const width = Math.min(toMs - fromMs, widthOf(whole));
  const earliest = whole.fromMs - width * BESIDE;
  const latest = whole.toMs + width * BESIDE - width;
  const from = Math.min(Math.max(fromMs, earliest), latest);
  return { fromMs: from, toMs: from + width };
};

const WIDTH_UNSAID_MS = 1000;

/** An end that is infinite is the whole's; beside the whole it is close by. */
export const bounded = ({ fromMs, toMs }: TimeWindow, whole: TimeWindow): TimeWindow => ({
  fromMs: Number.isFinite(fromMs) ? fromMs : Math.min(whole.fromMs, toMs - WIDTH_UNSAID_MS),
  toMs: Number.isFinite(toMs) ? toMs : Math.max(whole.toMs, fromMs + WIDTH_UNSAID_MS),
});

/**
 * @param factor  below 1 shows less of the time, in more detail; what would show more than all of it shows that
 * @param atMs  the moment that stays where it is
 */
export const zoomed = (window: TimeWindow, factor: number, atMs: number, whole: TimeWindow): TimeWindow => {
  const width = Math.max(widthOf(window) * factor, WIDTH_MIN_MS);
  if (factor > 1 && width >= widthOf(whole)) return whole;
  const share = (atMs - window.fromMs) / widthOf(window);
  const fromMs = atMs - share * width;
  return within({ fromMs, toMs: fromMs + width }, whole);
};

/** @param share  of the window's width; negative: back in time */
export const panned = (window: TimeWindow, share: number, whole: TimeWindow): TimeWindow => {
  const byMs = widthOf(window) * share;
  return within({ fromMs: window.fromMs + byMs, toMs: window.toMs + byMs }, whole);
};

/** The same width, with the newest record near its end. */
export const following = (window: TimeWindow, lastMs: number): TimeWindow => {
  const width = widthOf(window);
  const toMs = lastMs + width * 0.05;
  return { fromMs: toMs - width, toMs };
};

/** The same width, with this moment in it: in the middle, unless it is in view already. */
export const showing = (window: TimeWindow, atMs: number): TimeWindow => {
  if (atMs >= window.fromMs && atMs <= window.toMs) return window;
  const half = widthOf(window) / 2;
  return { fromMs: atMs - half, toMs: atMs + half };
};

const PAN_SHARE = 0.15;
const ZOOM_FACTOR = 0.6;

/** What a key or button makes of the window. */
export const moved = (
  how: 'back' | 'forth' | 'in' | 'out' | 'first' | 'newest',
  window: TimeWindow,
  whole: TimeWindow,
  { firstMs, lastMs }: { readonly firstMs: number; readonly lastMs: number },
): TimeWindow => {
  const middleMs = (window.fromMs + window.toMs) / 2;
  switch (how) {
    case 'back':
      return panned(window, -PAN_SHARE, whole);
    case 'forth':
      return panned(window, PAN_SHARE, whole);
    case 'in':
      return zoomed(window, ZOOM_FACTOR, middleMs, whole);
    case 'out':
      return zoomed(window, 1 / ZOOM_FACTOR, middleMs, whole);
    case 'first':
      return showing(window, firstMs);
    case 'newest':
      return showing(window, lastMs);
  }
};
