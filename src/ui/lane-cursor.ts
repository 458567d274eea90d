/**
 * Where somebody is on the lanes: the row that is chosen by keys, and the record that keys or a mouse point at. Says both
 * below the picture; draws nothing, and opens nothing.
 */
import { element } from './dom.ts';
import type { LaneIndex } from './lane-index.ts';
import { neighbourOf, recordNear } from './pointing.ts';
import type { Records } from './store.ts';
import type { TimeWindow } from './time-window.ts';
import { recordText, rowText } from './words.ts';

/** What there is, as of now. */
export interface Shown {
  readonly records: Records;
  readonly index: LaneIndex;
  readonly timeZone: string;
}

export interface LaneCursor {
  /** The lanes that have a row now. */
  readonly setRows: (rows: Uint32Array) => void;
  readonly row: () => number;
  /** Its position; null: none. */
  readonly pointed: () => number | null;
  /** The record at a place of the picture, if any. */
  readonly near: (row: number, atMs: number, withinMs: number) => number | null;
  /** Whether it points at another one than before. */
  readonly point: (position: number | null) => boolean;
  readonly choose: (row: number) => void;
  /** Another row, said below the picture; nothing is pointed at then. */
  readonly toRow: (row: number) => void;
  /** The record before or after the one that is pointed at, or else is open, on the chosen row. */
  readonly neighbour: (direction: 1 | -1, open: number | null, window: TimeWindow) => number | null;
}

export const createLaneCursor = (shown: () => Shown): LaneCursor => {
  const note = element('lane-note', HTMLElement);
  let rows: Uint32Array = new Uint32Array();
  let chosenRow = 0;
  let pointed: number | null = null;

  const within = (row: number): number => Math.min(Math.max(row, 0), Math.max(0, rows.length - 1));

  return {
    setRows(now) {
      rows = now;
      chosenRow = within(chosenRow);
    },
    row: () => chosenRow,
    pointed: () => pointed,
    near(row, atMs, withinMs) {
      const lane = rows[row];
      const { records, index } = shown();
      return lane === undefined ? null : recordNear(records, index, lane, atMs, withinMs);
    },
    point(position) {
      if (position === pointed) return false;
      pointed = position;
      const { records, timeZone } = shown();
      if (position !== null) note.textContent = recordText(records, position, timeZone);
      return true;
    },
    choose(row) {
      chosenRow = row;
    },
    toRow(row) {
      chosenRow = within(row);
      const lane = rows[chosenRow];
      note.textContent = lane === undefined ? '' : rowText(shown().records, lane);
      pointed = null;
    },
    neighbour: (direction, open, window) =>
      neighbourOf(shown().index, rows[chosenRow] ?? 0, pointed ?? open, direction, window),
  };
};
