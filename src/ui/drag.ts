/** What a mouse, pen or finger does on an element: drags it, clicks on it, or only lies over it. */

export interface DragEvents {
  /** Since the last time. */
  readonly onMove: (xPx: number, yPx: number) => void;
  readonly onClick?: (event: PointerEvent) => void;
  readonly onHover?: (event: PointerEvent) => void;
}

/** Who moved less has clicked. */
const CLICK_PX = 4;

export const onDrag = (target: HTMLElement, { onMove, onClick, onHover }: DragEvents): void => {
  let held: { readonly x: number; readonly y: number; lastX: number; lastY: number } | null = null;
  target.addEventListener('pointerdown', ({ button, offsetX, clientX: x, clientY: y, pointerId }) => {
    // The scroll bar is the browser's.
    if (button !== 0 || offsetX > target.clientWidth) return;
    held = { x, y, lastX: x, lastY: y };
    target.setPointerCapture(pointerId);
  });
  target.addEventListener('pointermove', (event) => {
    if (held === null) {
      onHover?.(event);
      return;
    }
    const { clientX, clientY } = event;
    onMove(clientX - held.lastX, clientY - held.lastY);
    held.lastX = clientX;
    held.lastY = clientY;
  });
  target.addEventListener('pointerup', (event) => {
    if (held !== null && Math.hypot(event.clientX - held.x, event.clientY - held.y) < CLICK_PX) onClick?.(event);
    held = null;
  });
  target.addEventListener('pointercancel', () => {
    held = null;
  });
};
