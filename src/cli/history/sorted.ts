/**
 * Histories that are looked for as a whole before any of it is shown, in order or from the end: of chosen objects, which the
 * index on streams finds, and of filters that anything told on behalf of a call may pass. Where there is much of it,
 * everything is read in order instead.
 *
 *   makings ──learn──> streams ──index──┐
 *   windows of records ──marks──────────┴──> numbers of calls and events, sorted ──> entries
 */
import type { Mark, MarkRule } from '../../journal/marks.ts';
import type { SearchHelper, Window } from '../../journal/search-windows.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { seqsOf } from '../time-argument.ts';
import { COMPLETED, type Entry, isTold, RECEIVED } from './entries.ts';
import { entryOf, type MarkedOptions, prunedIn, RECORDS_PER_CANDIDATE } from './marked-entries.ts';
import { recordOf } from './names.ts';
import { learnMakings } from './makings.ts';
import { thingsRules } from './plan.ts';
import { pastFromItsEnd } from './reverse.ts';
import { createScan } from './scan.ts';

const WINDOW_RECORDS = 65_536;
/** Looked at first: where much is found in so few, nothing is gained by looking on. */
const PROBED_RECORDS = 8_192;

interface Found {
  readonly seq: number;
  readonly isCall: boolean;
}

/** Numbers of what may be shown, each once, and the stretches that are pruned. */
const createFound = (fromSeq: number) => {
  const found = new Map<number, boolean>();
  const pruned: Mark[] = [];
  const note = (seq: number, isCall: boolean): void => {
    if (seq >= fromSeq) found.set(seq, isCall);
  };
  return {
    take: (mark: Mark): void => {
      const { seq, call, type, isMarked } = mark;
      if (type === null) pruned.push(mark);
      if (!isMarked) return;
      if (call !== null || type === RECEIVED) note(call ?? seq, true);
      if (type !== RECEIVED && type !== COMPLETED) note(seq, false);
    },
    count: (): number => found.size,
    pruned: (): Entry[] => prunedIn(pruned.toSorted((a, b) => a.seq - b.seq)),
    sorted: (): Found[] => [...found].map(([seq, isCall]) => ({ seq, isCall })).sort((a, b) => a.seq - b.seq),
  };
};

type FoundSet = ReturnType<typeof createFound>;

/** Whether a record stands beneath its call, which had not ended by then, in place of by itself. */
const isBeneath = ({ reader }: MarkedOptions, fromSeq: number, { seq, call }: JournalRecord): boolean => {
  if (call === null || call < fromSeq || recordOf(reader, call) === undefined) return false;
  return reader.page({ types: [COMPLETED], call }, call, seq).records.length === 0;
};

/** Nothing, where it is shown beneath its call, or is not asked for. */
const entriesOf = (options: MarkedOptions, fromSeq: number, toSeq: number, { seq, isCall }: Found): Entry[] =>
  entryOf(options, seq, isCall, toSeq).filter((entry) => {
    if (entry.kind !== 'event' || isTold(entry.record)) return true;
    return options.withEvents && !isBeneath(options, fromSeq, entry.record);
  });

const seqOf = (entry: Entry): number => (entry.kind === 'pruned' ? entry.fromSeq : 0);

function* shown(options: MarkedOptions, all: FoundSet, isReversed: boolean): Generator<Entry> {
  const { fromSeq, toSeq } = seqsOf(options.reader, options.range);
  const inOrder = <T>(list: T[]): T[] => (isReversed ? list.reverse() : list);
  const pruned = inOrder(all.pruned());
  const isBefore = (a: number, b: number): boolean => (isReversed ? a > b : a < b);
  for (const found of inOrder(all.sorted())) {
    const later = pruned.findIndex((entry) => !isBefore(seqOf(entry), found.seq));
    yield* pruned.splice(0, later < 0 ? pruned.length : later);
    yield* entriesOf(options, fromSeq, toSeq, found);
  }
  yield* pruned;
}

/** Everything, in order or from the end. */
const readAll = (options: MarkedOptions, isReversed: boolean): AsyncGenerator<Entry> =>
  isReversed
    ? pastFromItsEnd(options)
    : createScan({ ...options, withReads: false, live: false, shownSeq: null }).past();

/** Of a range, from the end that is shown first. */
function* windowsOf(fromSeq: number, toSeq: number, isReversed: boolean): Generator<Window> {
  for (let done = 0, size = PROBED_RECORDS; fromSeq + done <= toSeq; done += size, size = WINDOW_RECORDS) {
    const count = Math.min(size, toSeq - fromSeq - done + 1);
    const first = isReversed ? toSeq - done - count + 1 : fromSeq + done;
    yield { fromSeq: first, toSeq: first + count - 1 };
  }
}

/** What rules mark, and what these streams tell of. */
export async function* sortedOf(
  options: MarkedOptions,
  rules: readonly MarkRule[],
  streams: readonly string[],
  isReversed: boolean,
  helper: SearchHelper | null = null,
): AsyncGenerator<Entry> {
  const { reader } = options;
  const { fromSeq, toSeq } = seqsOf(reader, options.range);
  const all = createFound(fromSeq);
  let looked = 0;
  const windows = [...windowsOf(fromSeq, toSeq, isReversed)];
  for await (const { fromSeq: first, toSeq: last, marks } of reader.markedWindows(rules, windows, helper)) {
    for (const mark of marks) all.take(mark);
    for (const mark of reader.markedOf(streams, first, last)) all.take(mark);
    looked += last - first + 1;
    if (looked >= PROBED_RECORDS && all.count() * RECORDS_PER_CANDIDATE > looked) {
      yield* readAll(options, isReversed);
      return;
    }
  }
  yield* shown(options, all, isReversed);
}

/** What the chosen objects have to do with. */
export async function* sortedOfThings(options: MarkedOptions, isReversed: boolean): AsyncGenerator<Entry> {
  const { reader, selection } = options;
  const { fromSeq, toSeq } = seqsOf(reader, options.range);
  const streams = (): readonly string[] => selection.streams() ?? [];
  // Much that is chosen shows in the first records already, which is known at once.
  const probedSeq = fromSeq + PROBED_RECORDS - 1;
  if (!isReversed && probedSeq <= toSeq) {
    for (const record of reader.page({ types: selection.learnsFrom }, fromSeq, probedSeq).records)
      selection.learn(record);
    const probed = createFound(fromSeq);
    for (const mark of reader.markedOf(streams(), fromSeq, probedSeq)) probed.take(mark);
    if (probed.count() * RECORDS_PER_CANDIDATE > PROBED_RECORDS) {
      yield* readAll(options, isReversed);
      return;
    }
  }
  const helper = reader.helpSearch(toSeq - fromSeq + 1);
  learnMakings(reader, selection, toSeq);
  yield* sortedOf(options, thingsRules(selection), streams(), isReversed, helper);
}
