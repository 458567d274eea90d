/**
 * From the journal's records to entries of a history: a call with its beginning, its end and what happened on its
 * behalf is one; an exit, or anything else that came from outside, is one; so is a stretch of pruned records.
 * Entries come in the order in which they began, so one that is ready waits for the calls before it; live, a call comes
 * when it has ended. Pure: knows neither where records come from nor how entries are shown.
 */
import { madeBy, subjectsOf } from '../../domain/call/catalogue.ts';
import { fromJournalRecord } from '../../engine/codec.ts';
import {
  type DomainRecord,
  imageStream,
  type RecordType,
  type Sequenced,
  subjectOf,
} from '../../domain/model/records.ts';
import type { JournalRecord, ReadRow } from '../../journal/types.ts';

/** A record as it stands in the journal, and what it means. */
export interface Known<T extends RecordType = RecordType> {
  readonly record: JournalRecord;
  readonly event: Sequenced<Extract<DomainRecord, { type: T }>>;
}

export interface CallEntry {
  readonly kind: 'call';
  /** null when it is pruned, and only the end of the call is left. */
  readonly received: Known<'call.received'> | null;
  /** null while it is under way. */
  completed: Known<'call.completed'> | null;
  /** What was recorded on its behalf, when that is asked for. */
  readonly events: JournalRecord[];
  /** Streams of the objects it is about. */
  readonly streams: Set<string>;
}

export interface EventEntry {
  readonly kind: 'event';
  readonly record: JournalRecord;
  /** Of the start of a daemon: the one before wrote nothing at its end. */
  readonly afterKill?: boolean;
}

export interface PrunedEntry {
  readonly kind: 'pruned';
  readonly fromSeq: number;
  readonly toSeq: number;
}

export interface ReadEntry {
  readonly kind: 'read';
  readonly row: ReadRow;
}

export type Entry = CallEntry | EventEntry | PrunedEntry | ReadEntry;

export interface Collector {
  /** Takes the next record and gives the entries that are ready. */
  readonly take: (record: JournalRecord) => Entry[];
  /** Takes a record from outside the range, to see how a call of the range went on, or had begun. */
  readonly takeOutside: (record: JournalRecord) => void;
  /** seqs of calls without an end. */
  readonly open: () => number[];
  /** How many entries are held back. */
  readonly held: () => number;
  /**
   * Waits no longer for calls whose records were taken from outside, ahead of their turn; those come again and are passed
   * over. `comeLater`: calls without an end, of which nothing was taken then, come when they have one.
   */
  readonly settle: (calls: readonly number[], comeLater: boolean) => Entry[];
  /** Everything that is still held back, and the stretch up to `toSeq` if that is pruned. */
  readonly finish: (toSeq: number) => Entry[];
  /** As finish, but calls under way are kept; from here on a call comes when it has ended. */
  readonly goLive: (toSeq: number) => Entry[];
}

export const RECEIVED = 'call.received';
export const COMPLETED = 'call.completed';

/** What happens by itself and is always shown. A pod's pause task ends on the pod's stream. */
export const TOLD: ReadonlySet<string> = new Set<RecordType>([
  'daemon.started',
  'daemon.stopped',
  'network.configured',
  'nri.plugin.registered',
  'nri.plugin.closed',
  'container.exited',
  'container.lost',
  'sandbox.lost',
  'task.oomed',
  'content.damaged',
  'logkeeper.started',
  'logkeeper.ended',
  'turn.failed',
  'journal.doubted',
  'disk.filled',
  'disk.freed',
  'content.collected',
]);

/** Whether it is shown by itself, not beneath the call that it belongs to. */
export const isTold = ({ type, stream }: JournalRecord): boolean =>
  TOLD.has(type) || (type === 'task.exited' && subjectOf(stream).kind === 'sandbox');

/** null for a record that says something else than its type, or nothing that can be read: no scribe wrote that. */
export const knownAs = <T extends RecordType>(type: T, record: JournalRecord): Known<T> | null => {
  if (record.type !== type) return null;
  const event = readableEvent(record);
  return event === null ? null : { record, event: event as Known<T>['event'] };
};

/** null for a record that says nothing that can be read: it is pruned, of the journal's own, or no scribe wrote that. */
export const readableEvent = (record: JournalRecord): ReturnType<typeof fromJournalRecord> => {
  try {
    return fromJournalRecord(record);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
};

/** Objects that an answer names: a call may have joined another that made them. */
export const streamsOfAnswer = ({ event: { body } }: Known<'call.completed'>): string[] => {
  const { id, imageRefs = [] } = body.response ?? {};
  const images = imageRefs.map(imageStream);
  const made = id === undefined ? null : madeBy(body.method, id);
  return made === null ? images : [made];
};

const entryOf = (received: Known<'call.received'>): CallEntry => {
  const streams = new Set(subjectsOf(received.event.body.request));
  return { kind: 'call', received, completed: null, events: [], streams };
};

/** What is told by itself is told in its turn, though its call was taken ahead. */
const isTakenAhead = (record: JournalRecord, taken: ReadonlyMap<number, number>): boolean =>
  record.call !== null && record.seq <= (taken.get(record.call) ?? 0) && !isTold(record);

/** @param taken  calls of which nothing more is waited for */
const isWhole = (entry: Entry, taken: ReadonlyMap<number, number>): boolean =>
  entry.kind !== 'call' || entry.completed !== null || entry.received === null || taken.has(entry.received.record.seq);

/**
 * @param withEvents  also what was done on behalf of calls, and everything else
 * @param runsAlready  a daemon had started before the range, and none ended after it
 * @param askedFromSeq  calls from this record on are asked for; of those of which only the end is there that is shown
 */
export const createCollector = (
  withEvents: boolean,
  fromSeq: number,
  runsAlready = false,
  askedFromSeq = fromSeq,
): Collector => {
  let runs = runsAlready;
  const open = new Map<number, CallEntry>();
  /** Calls whose records were taken ahead, and up to which: nothing more is waited for. */
  const takenThrough = new Map<number, number>();
  let queue: Entry[] = [];
  let expectedSeq = fromSeq;
  let live = false;

  const isReady = (entry: Entry): boolean => isWhole(entry, takenThrough);

  const ready = (): Entry[] => {
    const held = queue.findIndex((entry) => !isReady(entry));
    return queue.splice(0, held < 0 ? queue.length : held);
  };

  const noteGap = (beforeSeq: number): void => {
    if (beforeSeq > expectedSeq) queue.push({ kind: 'pruned', fromSeq: expectedSeq, toSeq: beforeSeq - 1 });
    expectedSeq = Math.max(expectedSeq, beforeSeq);
  };

  /** false: it cannot be read. */
  const begin = (record: JournalRecord): boolean => {
    const received = knownAs(RECEIVED, record);
    if (received === null) return false;
    const entry = entryOf(received);
    open.set(record.seq, entry);
    if (!live) queue.push(entry);
    return true;
  };

  const end = (record: JournalRecord, beyond: boolean): boolean => {
    const completed = knownAs(COMPLETED, record);
    if (completed === null) return false;
    const known = record.call === null ? undefined : open.get(record.call);
    // Of a call from before the range only the end is in it, and that call is not asked for; a pruned one is.
    const isPruned = record.call !== null && record.call >= askedFromSeq && !beyond;
    if (known === undefined && !isPruned) return true;
    const entry = known ?? { kind: 'call', received: null, completed, events: [], streams: new Set<string>() };
    entry.completed = completed;
    for (const stream of streamsOfAnswer(completed)) entry.streams.add(stream);
    if (record.call !== null) open.delete(record.call);
    if (record.call !== null && beyond) takenThrough.set(record.call, record.seq);
    if (live || known === undefined) queue.push(entry);
    return true;
  };

  const happen = (record: JournalRecord): void => {
    const call = record.call === null ? undefined : open.get(record.call);
    if (call !== undefined && subjectOf(record.stream).kind !== 'call') call.streams.add(record.stream);
    if (isTold(record)) queue.push({ kind: 'event', record, afterKill: record.type === 'daemon.started' && runs });
    if (record.type === 'daemon.started' || record.type === 'daemon.stopped') runs = record.type === 'daemon.started';
    if (isTold(record)) return;
    if (withEvents && call !== undefined) call.events.push(record);
    else if (withEvents) queue.push({ kind: 'event', record });
  };

  const accept = (record: JournalRecord): void => {
    if (isTakenAhead(record, takenThrough)) return;
    if (record.type !== RECEIVED && record.type !== COMPLETED) return happen(record);
    const isRead = record.type === RECEIVED ? begin(record) : end(record, false);
    if (!isRead) queue.push({ kind: 'event', record });
  };

  return {
    take(record) {
      noteGap(record.seq);
      expectedSeq = record.seq + 1;
      accept(record);
      return ready();
    },
    takeOutside(record) {
      const call = record.call === null ? undefined : open.get(record.call);
      if (record.type === RECEIVED) return void begin(record);
      if (record.type === COMPLETED) return void end(record, true);
      if (call === undefined) return;
      if (subjectOf(record.stream).kind !== 'call') call.streams.add(record.stream);
      if (withEvents && !isTold(record)) call.events.push(record);
    },
    open: () => [...open.keys()],
    held: () => queue.length,
    settle(calls, comeLater) {
      for (const seq of calls) {
        const entry = open.get(seq);
        if (entry === undefined) continue;
        if (comeLater) queue = queue.filter((one) => one !== entry);
        else {
          takenThrough.set(seq, Number.POSITIVE_INFINITY);
          open.delete(seq);
        }
      }
      return ready();
    },
    finish(toSeq) {
      noteGap(toSeq + 1);
      return queue.splice(0);
    },
    goLive(toSeq) {
      noteGap(toSeq + 1);
      live = true;
      const rest = queue.filter(isReady);
      queue = [];
      return rest;
    },
  };
};
