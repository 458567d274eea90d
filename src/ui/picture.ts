/**
 * The two canvases and what mice do on them. Asks for a scene when it draws, at most once a frame, and tells what is to be
 * shown or opened; decides nothing about it.
 */
import { element } from './dom.ts';
import { onDrag } from './drag.ts';
import { drawHistogram, drawLanes, type Scene } from './draw.ts';
import { type Plot, ROW_PX, timeAt } from './layout.ts';

export interface PictureEvents {
  /** null: there is nothing to draw yet. */
  readonly scene: (plot: Plot) => Scene | null;
  /** Zooms around a moment. */
  readonly onZoom: (factor: number, atMs: number) => void;
  /** Moves by a share of what is in sight. */
  readonly onPan: (share: number) => void;
  readonly onPoint: (row: number, atMs: number, withinMs: number) => void;
  readonly onOpen: (row: number, atMs: number, withinMs: number) => void;
}

export interface Picture {
  /** Draws soon. */
  readonly draw: () => void;
  /** Scrolls so that this row is in sight. */
  readonly showRow: (row: number) => void;
  readonly rowsInSight: () => number;
}

const LABELS_SHARE = 0.22;
const LABELS_PX_MAX = 260;
const ZOOM_PER_WHEEL_PX = 0.002;
const NEAR_PX = 6;

export const createPicture = ({ scene, onZoom, onPan, onPoint, onOpen }: PictureEvents): Picture => {
  const histogram = element('histogram', HTMLCanvasElement);
  const lanes = element('lanes', HTMLElement);
  const canvas = element('lane-canvas', HTMLCanvasElement);
  const space = element('lane-space', HTMLElement);
  let isAsked = false;

  const plotNow = (): Plot => {
    const widthPx = lanes.clientWidth;
    const leftPx = Math.min(LABELS_PX_MAX, Math.round(widthPx * LABELS_SHARE));
    return { leftPx, widthPx: Math.max(1, widthPx - leftPx) };
  };

  const drawNow = (): void => {
    isAsked = false;
    const shown = scene(plotNow());
    if (shown === null) return;
    const heightPx = lanes.clientHeight;
    const rowsPx = `${Math.max(0, shown.rows.length * ROW_PX - heightPx)}px`;
    if (space.style.height !== rowsPx) space.style.height = rowsPx;
    if (canvas.style.height !== `${heightPx}px`) canvas.style.height = `${heightPx}px`;
    histogram.style.width = `${lanes.clientWidth}px`;
    drawHistogram(histogram, histogram.clientHeight, shown);
    drawLanes(canvas, heightPx, lanes.scrollTop, shown);
  };

  const draw = (): void => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(drawNow);
  };

  /** What is under the mouse. */
  const placeOf = ({ clientX, clientY }: MouseEvent): readonly [row: number, atMs: number, withinMs: number] | null => {
    const plot = plotNow();
    const shown = scene(plot);
    const box = lanes.getBoundingClientRect();
    const row = Math.floor((clientY - box.top + lanes.scrollTop) / ROW_PX);
    if (shown === null || row < 0 || row >= shown.rows.length) return null;
    const atMs = timeAt(clientX - box.left, shown.window, plot);
    return [row, atMs, timeAt(clientX - box.left + NEAR_PX, shown.window, plot) - atMs];
  };

  const momentOf = ({ clientX }: MouseEvent): number | null => {
    const plot = plotNow();
    const shown = scene(plot);
    return shown === null ? null : timeAt(clientX - lanes.getBoundingClientRect().left, shown.window, plot);
  };

  const zoomByWheel = (event: WheelEvent): void => {
    event.preventDefault();
    const atMs = momentOf(event);
    if (atMs !== null) onZoom(Math.exp(event.deltaY * ZOOM_PER_WHEEL_PX), atMs);
  };

  const panByWheel = (event: WheelEvent, byPx: number): void => {
    event.preventDefault();
    onPan(byPx / plotNow().widthPx);
  };

  const onWheel = (event: WheelEvent): void => {
    if (event.ctrlKey) zoomByWheel(event);
    else if (event.shiftKey && event.deltaX === 0) panByWheel(event, event.deltaY);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) panByWheel(event, event.deltaX);
    else if (event.currentTarget === histogram) zoomByWheel(event);
  };

  for (const target of [histogram, lanes]) target.addEventListener('wheel', onWheel, { passive: false });
  const panBy = (movedPx: number): void => onPan(-movedPx / plotNow().widthPx);
  const withPlace = (then: PictureEvents['onOpen']) => (event: PointerEvent) => {
    const place = placeOf(event);
    if (place !== null) then(...place);
  };
  onDrag(histogram, { onMove: panBy });
  // On lanes, dragging moves those, too.
  onDrag(lanes, {
    onMove: (xPx, yPx) => {
      lanes.scrollTop -= yPx;
      panBy(xPx);
    },
    onClick: withPlace(onOpen),
    onHover: withPlace(onPoint),
  });
  lanes.addEventListener('scroll', draw);
  new ResizeObserver(draw).observe(lanes);

  return {
    draw,
    showRow(row) {
      const [topPx, heightPx] = [row * ROW_PX, lanes.clientHeight];
      if (topPx < lanes.scrollTop) lanes.scrollTop = topPx;
      else if (topPx + ROW_PX > lanes.scrollTop + heightPx) lanes.scrollTop = topPx + ROW_PX - heightPx;
    },
    rowsInSight: () => Math.max(1, Math.floor(lanes.clientHeight / ROW_PX) - 1),
  };
};
