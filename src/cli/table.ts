/**
 * Tables for people, written as they grow: the first rows are held back until their widths are known, those after
 * them are written a few at a time, and none keeps a reader waiting. No cell is cut: a sentence may be read to its end.
 */
import { styleText } from 'node:util';
import { printable } from './format.ts';
import { type Output, write } from './io.ts';

/** Rows that the widths are taken from. */
const HELD_MAX = 200;
/** Rows that are written together from then on. */
const BATCH_ROWS = 50;
const GAP = '  ';

export type Style = 'plain' | 'bad' | 'doubtful' | 'faint' | 'head';

const FORMATS = { bad: 'red', doubtful: 'yellow', faint: 'dim', head: 'bold' } as const;

/** Colours only where a terminal shows them and NO_COLOR is not set. */
const styled = (output: Output, style: Style, text: string): string =>
  style === 'plain' ? text : styleText(FORMATS[style], text, { stream: output });

export interface Column {
  readonly title: string;
  readonly widthMax: number;
}

export interface Table {
  readonly add: (cells: readonly string[], style?: Style) => Promise<void>;
  /** Writes what is held back: nothing more comes soon. */
  readonly flush: () => Promise<void>;
}

interface Row {
  readonly cells: readonly string[];
  readonly style: Style;
}

/** @param holdMs  after so long the rows that are there are written, and later ones widen the columns; null: never */
export const createTable = (
  output: Output,
  columns: readonly Column[],
  holdMs: (() => number) | null = null,
): Table => {
  let held: Row[] = [{ cells: columns.map(({ title }) => title), style: 'head' }];
  let widths: readonly number[] | null = null;
  /** The first rows were written before there were enough to tell the widths. */
  let isEarly = false;
  let timer: NodeJS.Timeout | null = null;

  const widthOf = (index: number, widthMax: number): number =>
    Math.min(widthMax, Math.max(...held.map(({ cells }) => cells[index]?.length ?? 0)));

  const lineOf = ({ cells, style }: Row): string => {
    const line = cells.map((cell, index) => (index === columns.length - 1 ? cell : cell.padEnd(widths?.[index] ?? 0)));
    return `${styled(output, style, line.join(GAP).trimEnd())}\n`;
  };

  const flush = async (): Promise<void> => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
    if (widths === null || isEarly)
      widths = columns.map(({ widthMax }, index) => Math.max(widths?.[index] ?? 0, widthOf(index, widthMax)));
    const rows = held;
    held = [];
    if (rows.length > 0) await write(output, rows.map(lineOf).join(''));
  };

  /** Whoever ends in between is not kept. */
  const flushSoon = (afterMs: number): NodeJS.Timeout =>
    setTimeout(() => {
      isEarly ||= widths === null;
      void flush();
    }, afterMs).unref();

  return {
    flush,
    async add(cells, style = 'plain') {
      held.push({ cells: cells.map(printable), style });
      if (holdMs !== null) timer ??= flushSoon(holdMs());
      if (held.length >= (widths === null ? HELD_MAX : BATCH_ROWS)) await flush();
    },
  };
};
