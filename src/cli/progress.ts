/** Lines on a terminal that are drawn over each other while something long goes on. Silent where nobody watches. */
import type { Output } from './io.ts';

const DRAW_EVERY_MS = 100;
const CLEAR_LINE = '\r\x1b[2K';
const UP = '\x1b[1A';
const COLUMNS_DEFAULT = 80;
const ROWS_DEFAULT = 24;

export interface Progress {
  /** Draws these lines in place of the last ones, unless that was a moment ago. */
  readonly draw: (lines: () => readonly string[]) => void;
  /** Takes the lines away. What is drawn next is something else, and is drawn at once. */
  readonly clear: () => void;
  /** Draws the last state, which stays. */
  readonly keep: (lines: readonly string[]) => void;
}

const silent: Progress = { draw: () => {}, clear: () => {}, keep: () => {} };

export const createProgress = (output: Output, nowMs: () => number = () => performance.now()): Progress => {
  if (output.isTTY !== true) return silent;
  let drawnLines = 0;
  let drawnAtMs = Number.NEGATIVE_INFINITY;

  const erase = (): string => {
    const text = drawnLines === 0 ? '' : CLEAR_LINE + (UP + CLEAR_LINE).repeat(drawnLines - 1);
    drawnLines = 0;
    return text;
  };

  return {
    draw(lines) {
      const now = nowMs();
      if (now - drawnAtMs < DRAW_EVERY_MS) return;
      drawnAtMs = now;
      const { columns = COLUMNS_DEFAULT, rows = ROWS_DEFAULT } = output;
      // A line that wraps, or scrolls away, could not be drawn over.
      const fitting = lines()
        .slice(1 - rows)
        .map((line) => line.slice(0, columns - 1));
      const erased = erase();
      drawnLines = fitting.length;
      output.write(erased + fitting.join('\n'));
    },
    clear() {
      drawnAtMs = Number.NEGATIVE_INFINITY;
      const erased = erase();
      if (erased !== '') output.write(erased);
    },
    keep(lines) {
      output.write(erase() + lines.map((line) => `${line}\n`).join(''));
    },
  };
};
