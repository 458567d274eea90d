/**
 * Histories that are looked for as a whole before any of it is shown, in order or from the end: of chosen objects, which the
 * index on streams finds, and of filters that anything told on behalf of a call may pass. Where there is much of it,
 * everything is read in order instead.
 *
 *   makings ──learn──> streams ──index──┐
 *   windows of records ──marks──────────┴──> numbers of calls and events, sorted ──> entries
 */
import type { Mark, MarkRule } from '../../journal/marks.ts';
import type { MarkedWindow, Window } from '../../journal/search-windows.ts';
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
    takeCall: (call: number): void => note(call, true),
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

/** Whether so much of what was looked at is to be shown that reading all of it in order is faster. */
const isMuch = (all: FoundSet, looked: number): boolean =>
  looked >= PROBED_RECORDS && all.count() * RECORDS_PER_CANDIDATE > looked;

/** What rules mark. */
export async function* sortedOf(
  options: MarkedOptions,
  rules: readonly MarkRule[],
  isReversed: boolean,
): AsyncGenerator<Entry> {
  const { reader } = options;
  const { fromSeq, toSeq } = seqsOf(reader, options.range);
  const all = createFound(fromSeq);
  const windows = [...windowsOf(fromSeq, toSeq, isReversed)];
  let looked = 0;
  for await (const { fromSeq: first, toSeq: last, marks } of reader.markedWindows(rules, windows)) {
    for (const mark of marks) all.take(mark);
    looked += last - first + 1;
    if (isMuch(all, looked)) {
      yield* readAll(options, isReversed);
      return;
    }
  }
  yield* shown(options, all, isReversed);
}

/** What is told on a call's own stream of how it goes. Of what it does, the streams of objects tell. */
const ASIDES: readonly MarkRule[] = [{ types: null, except: [RECEIVED, COMPLETED], allOf: [[{ kind: 'isOfCall' }]] }];
/** That it began, and that it ended. */
const BARE_RECORDS = 2;

async function* resumed(
  first: Promise<IteratorResult<MarkedWindow, void>>,
  rest: AsyncGenerator<MarkedWindow, void>,
): AsyncGenerator<MarkedWindow> {
  try {
    const begun = await first;
    if (begun.done !== true) yield begun.value;
    yield* rest;
  } finally {
    // Ends the other thread, where nobody asked on.
    await rest.return();
  }
}

/**
 * What the chosen objects have to do with. Calls that did something to one have told so on its stream; of the others, those
 * that told of themselves alone, requests are looked at. Which image a call names its request says alone, so of chosen
 * images all requests are.
 */
async function* soughtThings(options: MarkedOptions, isReversed: boolean): AsyncGenerator<Entry> {
  const { reader, selection } = options;
  const { fromSeq, toSeq } = seqsOf(reader, options.range);
  const helper = reader.helpSearch(toSeq - fromSeq + 1);
  const isOfImage = selection.wanted.image != null;
  if (isOfImage) learnMakings(reader, selection, toSeq);
  const windows = [...windowsOf(fromSeq, toSeq, isReversed)];
  const search = reader.markedWindows(isOfImage ? thingsRules(selection) : ASIDES, windows, helper);
  // Goes on with another thread meanwhile.
  const first = search.next();
  if (!isOfImage) learnMakings(reader, selection, toSeq);
  const streams = selection.streams() ?? [];
  const all = createFound(fromSeq);
  // Before streams are looked at: what is told meanwhile is told behind the range, or on one of them.
  const few = reader.callsOfFew(BARE_RECORDS, fromSeq, toSeq);
  const suspects = new Set(few.map(({ call }) => call));
  for (const { call, goesOn } of few)
    if (goesOn && reader.placesOfCall(call).some(({ stream }) => streams.includes(stream))) all.takeCall(call);
  let looked = 0;
  for await (const window of resumed(first, search)) {
    for (const mark of window.marks) {
      if (mark.type === null) all.take(mark);
      else suspects.add(mark.call ?? mark.seq);
    }
    for (const mark of reader.markedOf(streams, window.fromSeq, window.toSeq)) all.take(mark);
    looked += window.toSeq - window.fromSeq + 1;
    if (isMuch(all, looked)) {
      yield* readAll(options, isReversed);
      return;
    }
  }
  for (const mark of reader.markedOfCalls(thingsRules(selection), [...suspects])) all.take(mark);
  yield* shown(options, all, isReversed);
}

/** The same; but much that is chosen shows in the first records already, which is known at once. */
export async function* sortedOfThings(options: MarkedOptions, isReversed: boolean): AsyncGenerator<Entry> {
  const { reader, selection } = options;
  const { fromSeq, toSeq } = seqsOf(reader, options.range);
  const probedSeq = fromSeq + PROBED_RECORDS - 1;
  if (!isReversed && probedSeq <= toSeq) {
    for (const record of reader.page({ types: selection.learnsFrom }, fromSeq, probedSeq).records)
      selection.learn(record);
    const probed = createFound(fromSeq);
    for (const mark of reader.markedOf(selection.streams() ?? [], fromSeq, probedSeq)) probed.take(mark);
    if (isMuch(probed, PROBED_RECORDS)) {
      yield* readAll(options, isReversed);
      return;
    }
  }
  yield* soughtThings(options, isReversed);
}
