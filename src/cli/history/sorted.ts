/**
 * Histories of which anything told on behalf of a call may say that it is shown: of chosen objects, which the index on streams
 * finds, and of filters of ends and words. Windows are looked at from the end that is shown first. What began in a window is
 * shown before the next is looked at; calls that go on behind it, which later windows might mark, are looked at one by one.
 * Where there is much of it, everything is read in order instead.
 *
 *   makings ──learn──> streams ──index──┐
 *   window of records ──marks───────────┴──> numbers of calls and events, sorted ──> entries; then the next window
 */
import type { SuspectCalls } from '../../journal/calls.ts';
import type { Mark, MarkRule } from '../../journal/marks.ts';
import type { Window, WindowSearch } from '../../journal/search-windows.ts';
import { seqsOf } from '../time-argument.ts';
import { COMPLETED, type Entry, knownAs, RECEIVED } from './entries.ts';
import { entryOf, type Found, type MarkedOptions } from './marked-entries.ts';
import { recordOf } from './names.ts';
import { learnMakings, learnOf } from './makings.ts';
import { thingsRules } from './plan.ts';
import { readOn } from './read-on.ts';
import { pastFromItsEnd } from './reverse.ts';
import { type Order, windowsOf } from './windows.ts';

const WINDOW_MAX = 65_536;
/** Of indexes alone more is looked at before others have their turn: some 20 ms. */
const INDEX_WINDOW_MAX = 2 * WINDOW_MAX;
/** Of no more streams, and no more records of these, all is looked up at once. */
const FEW_STREAMS = 50;
const FEW_RECORDS = 10_000;
/** Looked at first: where much is found in so few, nothing is gained by looking on. */
const PROBED_RECORDS = 8_192;
/** Where more calls may pass everything is read in order: each costs as much as so many records. */
const RECORDS_PER_CANDIDATE = 20;

/** Numbers of what may be shown and began in a stretch, each once. */
const createFound = (stretch: Window) => {
  const found = new Map<number, boolean>();
  let { fromSeq, toSeq } = stretch;
  const note = (seq: number, isCall: boolean): void => {
    if (seq >= fromSeq && seq <= toSeq) found.set(seq, isCall);
  };
  return {
    take: ({ seq, call, type }: Mark): void => {
      if (type === null) return;
      if (call !== null || type === RECEIVED) note(call ?? seq, true);
      if (type !== RECEIVED && type !== COMPLETED) note(seq, false);
    },
    takeCall: (call: number): void => note(call, true),
    count: (): number => found.size,
    isAnyUpTo: (lastSeq: number): boolean => found.keys().some((seq) => seq <= lastSeq),
    /** Gives away those of a stretch at one of its ends, in order; what is told of that stretch later is not noted. */
    release: (part: Window): Found[] => {
      const released = [...found].filter(([seq]) => seq >= part.fromSeq && seq <= part.toSeq).sort(([a], [b]) => a - b);
      for (const [seq] of released) found.delete(seq);
      if (part.fromSeq <= fromSeq) fromSeq = part.toSeq + 1;
      else toSeq = part.fromSeq - 1;
      return released.map(([seq, isCall]) => ({ seq, isCall }));
    },
  };
};

type AllFound = ReturnType<typeof createFound>;

type Pruned = Extract<Entry, { kind: 'pruned' }>;

/** Pruned records, in order, as the stretches that they make. */
const stretchesOf = (pruned: readonly Mark[]): Pruned[] => {
  const stretches: { -readonly [K in keyof Pruned]: Pruned[K] }[] = [];
  for (const { seq } of pruned) {
    const last = stretches.at(-1);
    if (last?.toSeq === seq - 1) last.toSeq = seq;
    else stretches.push({ kind: 'pruned', fromSeq: seq, toSeq: seq });
  }
  return stretches;
};

/**
 * What was found, with the stretches that are pruned between.
 * @param whole  the range of the whole history
 */
function* shown(
  options: MarkedOptions,
  whole: Window,
  found: readonly Found[],
  prunedMarks: readonly Mark[],
  isReversed: boolean,
): Generator<Entry> {
  const inOrder = <T>(list: readonly T[]): T[] => (isReversed ? list.toReversed() : [...list]);
  const pruned = inOrder(stretchesOf(prunedMarks));
  const isBefore = (a: number, b: number): boolean => (isReversed ? a > b : a < b);
  for (const one of inOrder(found)) {
    const later = pruned.findIndex(({ fromSeq }) => !isBefore(fromSeq, one.seq));
    yield* pruned.splice(0, later < 0 ? pruned.length : later);
    const entry = entryOf(options, whole, one);
    if (entry !== null) yield entry;
  }
  yield* pruned;
}

/** Whether so much of what was looked at is to be shown that reading all of it in order is faster. */
const isMuch = (count: number, looked: number): boolean =>
  looked >= PROBED_RECORDS && count * RECORDS_PER_CANDIDATE > looked;

const isPruned = ({ type }: Mark): boolean => type === null;

/** Whether a call may be marked by more than its request, and so by what is told behind it. */
const markLater = (rules: readonly MarkRule[]): boolean =>
  rules.some(({ types }) => types === null || types.some((type) => type !== RECEIVED));

/** What rules mark: forwards, calls may be marked in windows that have not been looked at. */
export async function* sortedOf(
  options: MarkedOptions,
  rules: readonly MarkRule[],
  order: Order,
): AsyncGenerator<Entry> {
  const { reader } = options;
  const { isReversed } = order;
  const whole = seqsOf(reader, options.range);
  const all = createFound(whole);
  const isMarkedLater = markLater(rules);
  const takeGoingOn = (part: Window): void => {
    if (isMarkedLater) for (const { call } of reader.callsOfFew(0, part)) all.takeCall(call);
  };
  // How they ended is told behind the range.
  if (options.range.until !== null) takeGoingOn(whole);
  const pruned: Mark[] = [];
  const windows = [...windowsOf(whole, order, WINDOW_MAX)];
  let [looked, released, firstSeq] = [0, 0, whole.fromSeq];
  for await (const { fromSeq, toSeq, found: marks } of reader.markedWindows(rules, windows).windows()) {
    for (const mark of marks) all.take(mark);
    pruned.push(...marks.filter(isPruned));
    looked += toSeq - fromSeq + 1;
    if (isMuch(all.count() + released, looked)) {
      yield* readOn(options, isReversed ? toSeq : firstSeq, isReversed);
      return;
    }
    const part: Window = { fromSeq: isReversed ? fromSeq : firstSeq, toSeq };
    if (!isReversed) {
      if (!all.isAnyUpTo(toSeq)) continue;
      takeGoingOn(part);
      firstSeq = toSeq + 1;
    }
    const found = all.release(part);
    released += found.length;
    yield* shown(options, whole, found, pruned.splice(0), isReversed);
  }
  yield* shown(options, whole, all.release(whole), pruned, isReversed);
}

/** That it began, and that it ended. */
const BARE_RECORDS = 2;

interface FoundIn extends Window {
  readonly found: readonly Found[];
}

/**
 * What the chosen objects have to do with. Calls that did something to one have told so on its stream; of the others, those
 * that told of themselves alone, requests are looked at. Which image a call names its request says alone.
 */
async function* soughtThings(options: MarkedOptions, order: Order): AsyncGenerator<Entry> {
  const { reader, selection } = options;
  const { isReversed } = order;
  const { fromSeq, toSeq } = seqsOf(reader, options.range);
  const whole: Window = { fromSeq, toSeq };
  const windows = [...windowsOf(whole, order, INDEX_WINDOW_MAX)];
  const isOneThing = (selection.wanted.pod ?? selection.wanted.container ?? null) !== null;
  const seenToSeq = isOneThing ? toSeq : null;
  const ahead = reader.suspectWindows(BARE_RECORDS, windows, seenToSeq);
  // What is chosen is learnt meanwhile.
  ahead.beginAhead();
  try {
    const naming = new Set(learnMakings(reader, selection, toSeq));
    const sought: Sought = { naming, streams: new Set(selection.streams()), rules: thingsRules(selection) };
    let [looked, count] = [0, 0];
    const streams = [...sought.streams];
    const isFew = streams.length <= FEW_STREAMS && reader.countOfStreams(streams, fromSeq, toSeq) <= FEW_RECORDS;
    if (!isFew && isOneThing) ahead.end();
    const search = isFew || !isOneThing ? ahead : reader.suspectWindows(BARE_RECORDS, windows, null);
    const stretches = isFew ? fewThings(options, whole, sought, search) : manyThings(options, sought, search);
    for await (const { found, ...window } of stretches) {
      looked += window.toSeq - window.fromSeq + 1;
      count += found.length;
      if (isMuch(count, looked)) {
        yield* readOn(options, isReversed ? window.toSeq : window.fromSeq, isReversed);
        return;
      }
      yield* shown(options, whole, found, [], isReversed);
    }
  } finally {
    ahead.end();
  }
  // Of no object, so that it does not matter where they come: how many they are is what is asked.
  for (const [first, last] of reader.prunedRanges(fromSeq, toSeq))
    yield { kind: 'pruned', fromSeq: first, toSeq: last };
}

/** All that streams tell is looked up at once; then windows tell of other calls. */
async function* fewThings(
  options: MarkedOptions,
  whole: Window,
  sought: Sought,
  search: WindowSearch<SuspectCalls>,
): AsyncGenerator<FoundIn> {
  const all = createFound(whole);
  for (const mark of options.reader.markedOf([...sought.streams], whole.fromSeq, whole.toSeq)) all.take(mark);
  for await (const { found: suspects, ...window } of search.windows()) {
    takeSuspects(options, window, suspects, sought, all);
    yield { ...window, found: all.release(window) };
  }
}

/** Calls that go on behind a window are looked at one by one, so that nothing later adds to what began in it. */
async function* manyThings(
  options: MarkedOptions,
  sought: Sought,
  search: WindowSearch<SuspectCalls>,
): AsyncGenerator<FoundIn> {
  for await (const { found: suspects, ...window } of search.windows()) {
    const all = createFound(window);
    takeSuspects(options, window, suspects, sought, all);
    // Behind the others: what is told meanwhile is told behind the range, or on one of these.
    for (const mark of options.reader.markedOf([...sought.streams], window.fromSeq, window.toSeq)) all.take(mark);
    yield { ...window, found: all.release(window) };
  }
}

/** False where it is a request that names another image. */
const mayNameImage = ({ reader, selection }: MarkedOptions, { seq, type }: Mark): boolean => {
  const record = type === RECEIVED ? recordOf(reader, seq) : undefined;
  const received = record === undefined ? null : knownAs(RECEIVED, record);
  return received === null || selection.namesImage(received.event.body.request);
};

interface Sought {
  readonly streams: ReadonlySet<string>;
  /** Calls that may have named a chosen image. */
  readonly naming: ReadonlySet<number>;
  readonly rules: readonly MarkRule[];
}

/** Calls that began in a window and have to do with what is chosen, though its streams may not tell so. */
const takeSuspects = (
  options: MarkedOptions,
  { fromSeq, toSeq }: Window,
  { few, withAsides }: SuspectCalls,
  { streams, naming, rules }: Sought,
  all: AllFound,
): void => {
  const { reader, selection } = options;
  const suspects = new Set([...few.map(({ call }) => call), ...withAsides]);
  for (const call of naming) if (call >= fromSeq && call <= toSeq) suspects.add(call);
  for (const { call, goesOn } of few)
    if (goesOn && reader.placesOfCall(call).some(({ stream }) => streams.has(stream))) all.takeCall(call);
  const asked = reader.markedOfCalls(rules, [...suspects]);
  // Of an image that no record tells of requests alone are asked for: to read that is a fifth of reading all of a call.
  const isByRequest = streams.size === 0 && selection.wanted.image != null;
  for (const mark of isByRequest ? asked.filter((one) => mayNameImage(options, one)) : asked) all.take(mark);
};

/** What is chosen of a stretch at the end that is shown first, learnt of no more than that. */
const probedCount = ({ reader, selection, range }: MarkedOptions, isReversed: boolean, probed: Window): number => {
  if (isReversed) learnOf(reader, selection)(reader.streamsIn(probed.fromSeq, probed.toSeq));
  else
    for (const record of reader.page({ types: selection.learnsFrom }, probed.fromSeq, probed.toSeq).records)
      selection.learn(record);
  const found = createFound(seqsOf(reader, range));
  for (const mark of reader.markedOf(selection.streams() ?? [], probed.fromSeq, probed.toSeq)) found.take(mark);
  return found.count();
};

/** The same; but much that is chosen shows in the first records already, which is known at once. */
export async function* sortedOfThings(options: MarkedOptions, order: Order): AsyncGenerator<Entry> {
  const { isReversed } = order;
  const whole = seqsOf(options.reader, options.range);
  const [probed] = windowsOf(whole, { isReversed, windowMin: PROBED_RECORDS }, PROBED_RECORDS);
  const isLong = whole.toSeq - whole.fromSeq + 1 >= PROBED_RECORDS;
  if (probed === undefined || !isLong || !isMuch(probedCount(options, isReversed, probed), PROBED_RECORDS))
    yield* soughtThings(options, order);
  else if (isReversed) yield* pastFromItsEnd(options);
  else yield* readOn(options, whole.fromSeq, isReversed);
}
