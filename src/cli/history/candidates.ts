/**
 * A history of what a filter lets through, without reading all the rest: SQLite looks which calls and events may pass (never
 * leaving one out), and only those are read and looked at as usual. They come in the order in which they began, as a scan
 * gives them. Where much passes that is slower than reading everything in order, which then goes on from there.
 *
 *   window of records ──marks──> begun, ended, marked ──> calls in order, none before an earlier one may pass
 *                                                          │
 *                                         records of each, by the index on call ──> entry
 */
import type { Mark } from '../../journal/marks.ts';
import type { Window } from '../../journal/search-windows.ts';
import { seqsOf } from '../time-argument.ts';
import { COMPLETED, type Entry, RECEIVED } from './entries.ts';
import type { Filter } from './filter.ts';
import { entriesOf, type Found, type MarkedOptions, prunedIn, RECORDS_PER_CANDIDATE } from './marked-entries.ts';
import { filterPlan, type Plan } from './plan.ts';
import { readOn } from './read-on.ts';
import { sortedOf, sortedOfThings } from './sorted.ts';
import { windowsOf } from './windows.ts';

const WINDOW_MIN = 8_192;
const WINDOW_MAX = 131_072;

/** What may pass, by the seq at which it began, in order; held back while an earlier call may still come to be of it. */
const createQueue = (fromSeq: number, waitsForEnds: boolean) => {
  const open = new Set<number>();
  let waiting: Found[] = [];
  const marked = new Set<number>();

  const mark = (seq: number, isCall: boolean): void => {
    if (seq < fromSeq || marked.has(seq)) return;
    marked.add(seq);
    waiting.push({ seq, isCall });
  };

  return {
    take: ({ seq, call, type, isMarked }: Mark): void => {
      if (type !== RECEIVED && type !== COMPLETED) return isMarked ? mark(seq, false) : undefined;
      if (waitsForEnds && type === RECEIVED) open.add(seq);
      if (type === COMPLETED && call !== null) open.delete(call);
      if (isMarked) mark(call ?? seq, true);
    },
    waiting: (): number => waiting.length,
    /** Those that nothing comes before any more; at the end all, with the calls that have not ended. */
    ready: (isEnd: boolean) => {
      const [first = Number.POSITIVE_INFINITY] = isEnd ? [] : open;
      if (isEnd) for (const seq of open) mark(seq, true);
      const sorted = waiting.sort((a, b) => a.seq - b.seq);
      const count = sorted.findIndex(({ seq }) => seq > first);
      waiting = count < 0 ? [] : sorted.slice(count);
      return count < 0 ? sorted : sorted.slice(0, count);
    },
  };
};

export interface CandidateOptions {
  /** The newest first. */
  readonly isReversed?: boolean;
  readonly windowMin?: number;
}

/**
 * The entries of a range that a filter may let through, or null where only reading everything tells; whoever asks looks at
 * each entry by filter and selection itself.
 */
export const candidatesOf = (
  options: MarkedOptions,
  filter: Filter,
  { isReversed = false, windowMin = WINDOW_MIN }: CandidateOptions = {},
): AsyncGenerator<Entry> | null => {
  if (options.selection.streams() !== null) return sortedOfThings(options, { isReversed, windowMin });
  const plan = filterPlan(filter, options.withEvents, options.range.until !== null);
  if (plan === null) return null;
  return isReversed || plan.order === 'sorted'
    ? sortedOf(options, plan.rules, { isReversed, windowMin })
    : candidates(options, plan, windowMin);
};

async function* candidates(options: MarkedOptions, { rules, order }: Plan, windowMin: number): AsyncGenerator<Entry> {
  const { reader } = options;
  const asked = seqsOf(reader, options.range);
  const queue = createQueue(asked.fromSeq, order === 'afterEnds');
  const windows = [...windowsOf(asked, { isReversed: false, windowMin }, WINDOW_MAX)];
  for await (const { fromSeq: first, toSeq: last, marks } of reader.markedWindows(rules, windows)) {
    const count = marks.filter(({ isMarked }) => isMarked).length;
    if (count * RECORDS_PER_CANDIDATE > last - first + 1) {
      yield* ready(options, queue, asked, true);
      yield* readOn(options, first, false);
      return;
    }
    yield* prunedIn(marks);
    for (const mark of marks) queue.take(mark);
    yield* ready(options, queue, asked, false);
  }
  yield* ready(options, queue, asked, true);
}

function* ready(
  options: MarkedOptions,
  queue: ReturnType<typeof createQueue>,
  asked: Window,
  isEnd: boolean,
): Generator<Entry> {
  for (const found of queue.ready(isEnd)) yield* entriesOf(options, asked, found);
}
