/**
 * A history of what a filter lets through, without reading all the rest: SQLite looks which calls and events may pass (never
 * leaving one out), and only those are read and looked at as usual. They come in the order in which they began, as a scan
 * gives them. Where much passes that is slower than reading everything in order, which then goes on from there.
 *
 *   window of records ──marks──> begun, ended, marked ──> calls in order, none before an earlier one may pass
 *                                                          │
 *                                         records of each, by the index on call ──> entry
 */
import { callMethods } from '../../domain/call/catalogue.ts';
import type { BodyTest, Mark, MarkRule } from '../../journal/search.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { type Range, seqsOf } from '../time-argument.ts';
import { COMPLETED, createCollector, type Entry, RECEIVED, TOLD } from './entries.ts';
import type { Filter } from './filter.ts';
import { recordOf } from './names.ts';
import { createScan, ranBefore, type ScanOptions } from './scan.ts';

const WINDOW_MIN = 8_192;
const WINDOW_MAX = 131_072;
/** A window in which more calls may pass is read in order, and all after it: each costs as much as so many records. */
const RECORDS_PER_CANDIDATE = 20;

const told = [...TOLD, 'task.exited'];
const EXECS = callMethods.filter((method) => method.startsWith('Exec'));

const jsonText = (text: string): string => JSON.stringify(text).slice(1, -1);

const named = (names: readonly string[]): readonly BodyTest[] =>
  names.flatMap((name) =>
    ['method', 'rpc'].map((key): BodyTest => ({ kind: 'holdsInAnyCase', text: `"${key}":"${jsonText(name)}"` })),
  );

/** What the request of a call that passes must hold; null: nothing that can be told from it. */
const requestTests = ({
  methods,
  callerUid,
  executable,
  execOnly,
}: Pick<Filter, 'methods' | 'callerUid' | 'executable' | 'execOnly'>): readonly (readonly BodyTest[])[] | null => {
  const tests: (readonly BodyTest[])[] = [
    // What costs least comes first.
    ...(callerUid === null ? [] : [[{ kind: 'holds' as const, text: `"uid":${callerUid}` }]]),
    ...(executable === null ? [] : [[{ kind: 'holds' as const, text: jsonText(executable) }]]),
    ...(methods.length === 0 ? [] : [named(methods)]),
    ...(execOnly ? [named(EXECS)] : []),
  ];
  return tests.length === 0 ? null : tests;
};

const FAILED: readonly BodyTest[] = [
  { kind: 'isNotZero', path: '$.code' },
  { kind: 'isNotZero', path: '$.response.exitCode' },
];

interface Plan {
  readonly rules: readonly MarkRule[];
  /** A call may turn out to pass when it ends, and is to be shown where it began. */
  readonly waitsForEnds: boolean;
}

/** null: nothing in SQL tells what passes. */
const planOf = ({ failedOnly, code, text, plugin, ...filter }: Filter, withEvents: boolean): Plan | null => {
  if (plugin !== null) return null;
  const request = requestTests(filter);
  if (request !== null) {
    // Of a call whose beginning is pruned the end tells the method, and nothing of who called.
    const isOfCaller = filter.callerUid !== null || filter.executable !== null;
    const methods = isOfCaller ? [] : [...filter.methods, ...(filter.execOnly ? EXECS : [])];
    const ends: MarkRule[] = methods.length === 0 ? [] : [{ types: [COMPLETED], allOf: [named(methods)] }];
    return { rules: [{ types: [RECEIVED], allOf: request }, ...ends], waitsForEnds: false };
  }
  const calls: MarkRule = { types: [RECEIVED, COMPLETED], allOf: null };
  if (code !== null) {
    const tests = [[{ kind: 'is', path: '$.code', number: code }]] as const;
    return { rules: [calls, { types: [COMPLETED], allOf: tests }], waitsForEnds: true };
  }
  if (failedOnly)
    return {
      rules: [
        calls,
        { types: [COMPLETED], allOf: [FAILED] },
        { types: told.filter((type) => type !== 'container.exited'), allOf: [] },
        { types: ['container.exited'], allOf: [[{ kind: 'isNotZero', path: '$.exitStatus' }]] },
      ],
      waitsForEnds: true,
    };
  // Beneath a call any record may hold it; and SQLite knows the cases of ASCII alone.
  if (text === null || withEvents || /[^\x20-\x7e]/.test(text)) return null;
  const holds = [[{ kind: 'holdsInAnyCase', text }]] as const;
  return { rules: [calls, { types: [RECEIVED, COMPLETED, ...told], allOf: holds }], waitsForEnds: true };
};

/** What may pass, by the seq at which it began, in order; held back while an earlier call may still come to be of it. */
const createQueue = (fromSeq: number, waitsForEnds: boolean) => {
  const open = new Set<number>();
  let waiting: { readonly seq: number; readonly isCall: boolean }[] = [];
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

/** Stretches of pruned records, as entries. */
const prunedIn = (marks: readonly Mark[]): Entry[] => {
  const stretches: { kind: 'pruned'; fromSeq: number; toSeq: number }[] = [];
  for (const { seq, type } of marks) {
    if (type !== null) continue;
    const last = stretches.at(-1);
    if (last?.toSeq === seq - 1) last.toSeq = seq;
    else stretches.push({ kind: 'pruned', fromSeq: seq, toSeq: seq });
  }
  return stretches;
};

type Options = Pick<ScanOptions, 'reader' | 'selection' | 'withEvents' | 'range'>;

const entryOf = ({ reader, withEvents, range }: Options, seq: number, isCall: boolean, toSeq: number): Entry[] => {
  if (!isCall) {
    const record = recordOf(reader, seq);
    const isStart = record?.type === 'daemon.started';
    return record === undefined ? [] : [{ kind: 'event', record, afterKill: isStart && ranBefore(reader, seq) }];
  }
  const collector = createCollector(withEvents, seq);
  const records = reader.placesOfCall(seq).flatMap((place): readonly JournalRecord[] => {
    const isSeen = place.seq <= toSeq || range.until !== null;
    const record = isSeen ? recordOf(reader, place.seq) : undefined;
    return record === undefined ? [] : [record];
  });
  const entries = [...records.flatMap((record) => collector.take(record)), ...collector.finish(seq)];
  return entries.filter(({ kind }) => kind === 'call');
};

/** Goes on from a record by reading everything; calls that began before it have been looked at. */
async function* scanned(options: Options, range: Range, firstSeq: number, askedFromSeq: number): AsyncGenerator<Entry> {
  const rest = { withReads: false, live: false, shownSeq: null, askedFromSeq };
  const since = { kind: 'record', seq: firstSeq } as const;
  for await (const entry of createScan({ ...options, ...rest, range: { ...range, since } }).past()) {
    const call = entry.kind === 'call' && entry.received === null ? (entry.completed?.record.call ?? null) : null;
    const isKnown = call !== null && call < firstSeq && recordOf(options.reader, call) !== undefined;
    if (!isKnown) yield entry;
  }
}

/**
 * The entries of a range that a filter may let through, or null where only reading everything tells. Everything that has no
 * filter of objects; whoever asks looks at each entry by the filter itself.
 */
export const candidatesOf = (
  options: Options,
  filter: Filter,
  windowMin = WINDOW_MIN,
): AsyncGenerator<Entry> | null => {
  const plan = planOf(filter, options.withEvents);
  return plan === null ? null : candidates(options, plan, windowMin);
};

async function* candidates(options: Options, { rules, waitsForEnds }: Plan, windowMin: number): AsyncGenerator<Entry> {
  const { reader, range } = options;
  const { fromSeq, toSeq } = seqsOf(reader, range);
  const queue = createQueue(fromSeq, waitsForEnds);
  let window = windowMin;
  for (let first = fromSeq; first <= toSeq; first += window, window = Math.min(2 * window, WINDOW_MAX)) {
    const last = Math.min(toSeq, first + window - 1);
    const marks = reader.marked(rules, first, last);
    const count = marks.filter(({ isMarked }) => isMarked).length;
    if (count * RECORDS_PER_CANDIDATE > last - first + 1) {
      yield* entriesOf(options, queue, toSeq, true);
      yield* scanned(options, range, first, fromSeq);
      return;
    }
    yield* prunedIn(marks);
    for (const mark of marks) queue.take(mark);
    yield* entriesOf(options, queue, toSeq, false);
  }
  yield* entriesOf(options, queue, toSeq, true);
}

function* entriesOf(
  options: Options,
  queue: ReturnType<typeof createQueue>,
  toSeq: number,
  isEnd: boolean,
): Generator<Entry> {
  for (const { seq, isCall } of queue.ready(isEnd)) yield* entryOf(options, seq, isCall, toSeq);
}
