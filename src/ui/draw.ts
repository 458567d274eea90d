/**
 * Draws the two pictures on their canvases: the histogram with the time axis, and the lanes that are in sight. A lane has
 * a thin line for as long as its thing was there, a bar while it ran, and marks: as high as there are many where they lie
 * close, each by itself where there is room. Reads the index, changes nothing.
 */
import { binCounts } from './bins.ts';
import { kindOf, type Tone, TONES, toneOf } from './kinds.ts';
import { type LaneIndex, stretchOf } from './lane-index.ts';
import { BAR_PX, crowdPx, LINE_PX, MARK_PX, type Plot, ROW_PX, xOf } from './layout.ts';
import type { Palette } from './palette.ts';
import type { Records } from './store.ts';
import { ticksOf } from './ticks.ts';
import type { TimeWindow } from './time-window.ts';

export interface Scene {
  readonly records: Records;
  readonly index: LaneIndex;
  readonly window: TimeWindow;
  readonly plot: Plot;
  readonly palette: Palette;
  readonly timeZone: string;
  /** Lanes with a row, from above. */
  readonly rows: Uint32Array;
  /** The row that keys act on, and the record that is open or pointed at. */
  readonly chosenRow: number;
  readonly chosenPosition: number | null;
}

const BIN_PX = 2;
const AXIS_PX = 18;
const LABEL_PX_PER_TICK = 110;
const FONT = '12px system-ui, sans-serif';
/** With so few records in sight on a lane, each is drawn by itself. */
const SINGLE_MAX = 300;

/** Sets the canvas to its size on the screen, and gives a context in pixels of CSS. */
const cleared = (canvas: HTMLCanvasElement, widthPx: number, heightPx: number): CanvasRenderingContext2D | null => {
  const scale = devicePixelRatio;
  const [width, height] = [Math.round(widthPx * scale), Math.round(heightPx * scale)];
  const size = canvas;
  if (size.width !== width || size.height !== height) {
    size.width = width;
    size.height = height;
  }
  const context = canvas.getContext('2d');
  context?.setTransform(scale, 0, 0, scale, 0, 0);
  context?.clearRect(0, 0, widthPx, heightPx);
  return context;
};

/** From below: what is most, and least telling, at the bottom. */
const STACK: readonly Tone[] = TONES.toReversed();

const drawAxis = (
  context: CanvasRenderingContext2D,
  { window, plot, palette, timeZone }: Scene,
  topPx: number,
): void => {
  context.font = FONT;
  context.textBaseline = 'top';
  for (const { atMs, label } of ticksOf(window, plot.widthPx / LABEL_PX_PER_TICK, timeZone)) {
    const x = xOf(atMs, window, plot);
    context.fillStyle = palette.line;
    context.fillRect(x, 0, 1, topPx + AXIS_PX);
    context.fillStyle = palette.faint;
    const isWhole = x + 3 + context.measureText(label).width <= plot.leftPx + plot.widthPx;
    if (isWhole) context.fillText(label, x + 3, topPx + 3);
  }
};

export const drawHistogram = (canvas: HTMLCanvasElement, heightPx: number, scene: Scene): void => {
  const { index, window, plot, palette } = scene;
  const context = cleared(canvas, plot.leftPx + plot.widthPx, heightPx);
  if (context === null) return;
  const roomPx = heightPx - AXIS_PX - 2;
  drawAxis(context, scene, roomPx + 2);
  const bins = Math.max(1, Math.floor(plot.widthPx / BIN_PX));
  const counts = STACK.map((tone) => ({ tone, counts: binCounts(index.tones[tone], window, bins) }));
  let most = 1;
  for (let bin = 0; bin < bins; bin += 1) {
    let sum = 0;
    for (const { counts: ofTone } of counts) sum += ofTone[bin] ?? 0;
    most = Math.max(most, sum);
  }
  const heights = new Float64Array(bins);
  for (const { tone, counts: ofTone } of counts) {
    context.fillStyle = palette.tones[tone];
    for (let bin = 0; bin < bins; bin += 1) {
      const count = ofTone[bin] ?? 0;
      if (count === 0) continue;
      // What went wrong is seen, however rare it is.
      const height = Math.max((count / most) * roomPx, tone === 'wrong' ? 2 : 0.5);
      const below = heights[bin] ?? 0;
      context.fillRect(plot.leftPx + bin * BIN_PX, roomPx - below - height, BIN_PX, height);
      heights[bin] = below + height;
    }
  }
  context.fillStyle = palette.faint;
  context.fillText(`up to ${most.toLocaleString('en-US')}`, 4, 4);
};

const drawLife = (context: CanvasRenderingContext2D, scene: Scene, lane: number, topPx: number): void => {
  const { index, window, plot, palette } = scene;
  const { firstMs, lastMs, beganMs, endedMs, isGone, isBad } = index.lives;
  const [first = Number.NaN, last = Number.NaN] = [firstMs[lane], lastMs[lane]];
  const [began = Number.NaN, ended = Number.NaN] = [beganMs[lane], endedMs[lane]];
  const rightPx = plot.leftPx + plot.widthPx;
  const clip = (x: number): number => Math.min(Math.max(x, plot.leftPx), rightPx);
  const bar = (fromMs: number, toMs: number, colour: string, heightPx: number): void => {
    if (toMs < window.fromMs || fromMs > window.toMs) return;
    const from = clip(xOf(fromMs, window, plot));
    const to = Math.max(clip(xOf(toMs, window, plot)), from + 1);
    context.fillStyle = colour;
    context.fillRect(from, topPx + (ROW_PX - heightPx) / 2, to - from, heightPx);
  };
  const newestMs = Math.max(scene.records.times[scene.records.count - 1] ?? 0, last);
  if (!Number.isNaN(first)) bar(first, isGone[lane] === 1 ? last : newestMs, palette.life, LINE_PX);
  if (!Number.isNaN(began)) {
    const until = Number.isNaN(ended) ? newestMs : ended;
    // Its border tells it from the paper, and marks stand out from what is inside.
    bar(began, until, palette.life, BAR_PX);
    bar(began, until, palette.runs, BAR_PX - 2);
  }
  if (isBad[lane] === 1) bar(ended, ended, palette.tones.wrong, ROW_PX - 2);
};

/** Marks of one lane where they are too many to be told apart: the higher, the more. */
const drawDensity = (context: CanvasRenderingContext2D, scene: Scene, lane: number, topPx: number): void => {
  const { index, window, plot, palette } = scene;
  const bins = Math.max(1, Math.floor(plot.widthPx / BIN_PX));
  for (const [by, colour] of [
    [index.shown, palette.tones.call],
    [index.wrong, palette.tones.wrong],
  ] as const) {
    const [from, to] = stretchOf(by, lane, window.fromMs, window.toMs);
    if (from === to) continue;
    const counts = binCounts(by.times, window, bins, from, to);
    context.fillStyle = colour;
    for (let bin = 0; bin < bins; bin += 1) {
      const count = counts[bin] ?? 0;
      if (count === 0) continue;
      const height = crowdPx(count);
      context.fillRect(plot.leftPx + bin * BIN_PX, topPx + (ROW_PX - height) / 2, BIN_PX, height);
    }
  }
};

/** A mark has a shape besides its colour: not everybody sees colours. */
const drawMark = (context: CanvasRenderingContext2D, tone: Tone, x: number, topPx: number): void => {
  const middle = topPx + ROW_PX / 2;
  const heightPx = MARK_PX[tone];
  switch (tone) {
    case 'step':
      context.fillRect(x - 0.5, middle - heightPx / 2, 1, heightPx);
      return;
    case 'call':
      context.fillRect(x - 1, middle - heightPx / 2, 2, heightPx);
      return;
    case 'event':
      context.beginPath();
      context.arc(x, middle, heightPx / 2, 0, 2 * Math.PI);
      context.fill();
      return;
    case 'wrong':
      context.beginPath();
      context.moveTo(x - 5, topPx + 2);
      context.lineTo(x + 5, topPx + 2);
      context.lineTo(x, topPx + 2 + heightPx);
      context.fill();
  }
};

const drawMarks = (context: CanvasRenderingContext2D, scene: Scene, lane: number, topPx: number): void => {
  const { records, index, window, plot, palette } = scene;
  const [from, to] = stretchOf(index.shown, lane, window.fromMs, window.toMs);
  if (to - from > SINGLE_MAX) return drawDensity(context, scene, lane, topPx);
  for (const drawn of STACK) {
    context.fillStyle = palette.tones[drawn];
    for (let at = from; at < to; at += 1) {
      const tone = toneOf(kindOf(records.kinds[index.shown.positions[at] ?? 0] ?? 0));
      if (tone === drawn) drawMark(context, tone, xOf(index.shown.times[at] ?? 0, window, plot), topPx);
    }
  }
};

const drawLabel = (context: CanvasRenderingContext2D, scene: Scene, lane: number, topPx: number): void => {
  const { records, palette, plot } = scene;
  const { kind, label, parent } = records.lanes[lane] ?? { kind: 'node', label: '', parent: null };
  context.fillStyle = kind === 'container' ? palette.faint : palette.ink;
  const leftPx = parent === null ? 6 : 20;
  context.save();
  context.beginPath();
  context.rect(0, topPx, plot.leftPx - 6, ROW_PX);
  context.clip();
  context.fillText(label, leftPx, topPx + 2);
  context.restore();
};

const CHOSEN_EDGE_PX = 3;

/** @param scrolledPx  how much of the rows is above the canvas */
export const drawLanes = (canvas: HTMLCanvasElement, heightPx: number, scrolledPx: number, scene: Scene): void => {
  const { rows, plot, palette, chosenRow, chosenPosition, records, window } = scene;
  const context = cleared(canvas, plot.leftPx + plot.widthPx, heightPx);
  if (context === null) return;
  context.font = FONT;
  context.textBaseline = 'top';
  const first = Math.floor(scrolledPx / ROW_PX);
  const last = Math.min(rows.length, Math.ceil((scrolledPx + heightPx) / ROW_PX));
  for (let row = first; row < last; row += 1) {
    const lane = rows[row] ?? 0;
    const topPx = row * ROW_PX - scrolledPx;
    if (row === chosenRow) {
      context.fillStyle = palette.chosen;
      context.fillRect(0, topPx, plot.leftPx + plot.widthPx, ROW_PX);
      // The row's colour alone is too faint to tell which one it is.
      context.fillStyle = palette.ink;
      context.fillRect(0, topPx, CHOSEN_EDGE_PX, ROW_PX);
    }
    drawLife(context, scene, lane, topPx);
    drawMarks(context, scene, lane, topPx);
    drawLabel(context, scene, lane, topPx);
  }
  if (chosenPosition === null) return;
  const x = xOf(records.times[chosenPosition] ?? 0, window, plot);
  if (x < plot.leftPx) return;
  context.fillStyle = palette.ink;
  context.fillRect(x - 0.5, 0, 1, heightPx);
};
