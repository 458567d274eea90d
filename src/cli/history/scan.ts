/**
 * Reads a journal as a history: the entries of a range in order, with read calls between them where they belong, and
 * then, live, whatever is written. In short transactions, with the journal's daemon up or down.
 */
import { NODE_STREAM } from '../../domain/model/records.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord, ReadRow } from '../../journal/types.ts';
import { isDamageMet, unlessDamaged } from '../damage.ts';
import { isNow, type Moment, type Range, seqsOf } from '../time-argument.ts';
import { COMPLETED, createCollector, type Collector, type Entry } from './entries.ts';
import { recordOf, timeOfRecord } from './names.ts';
import type { Selection } from './selection.ts';

export interface ScanOptions {
  readonly reader: JournalReader;
  readonly selection: Selection;
  /** Also what was done on behalf of calls. */
  readonly withEvents: boolean;
  readonly withReads: boolean;
  readonly range: Range;
  /** `news` will be asked for: calls under way come from there, when they have ended. */
  readonly live: boolean;
  /** What came up to this record was shown before; null: nothing was. */
  readonly shownSeq: number | null;
  /** Where what is asked for begins, when the range is only a part of it. */
  readonly askedFromSeq?: number;
  /** So many entries wait for a call before them, and no more. */
  readonly heldMax?: number;
}

/** A session may last for weeks: what came after it began is neither held in memory nor kept from who reads. */
const HELD_MAX = 4096;

/** The entries that a record made whole. */
export interface Step {
  readonly entries: readonly Entry[];
  readonly throughSeq: number;
}

export interface Scan {
  /** What is in the range now. */
  readonly past: () => AsyncGenerator<Entry>;
  /** What was written since `past` or the last call of this. */
  readonly news: () => Entry[];
  /** Instead of `past`: everything comes from `steps`. */
  readonly goLive: () => Promise<void>;
  /** What is there behind the last step, without read calls: those have no number to go on from. */
  readonly steps: () => Generator<Step>;
  /** The last record that was read; what is before the range does not count. */
  readonly readSeq: () => number;
}

interface ReadsSource {
  /** Rows that have not been given yet, up to this moment; without one, all there are. Read while they are asked for. */
  readonly upTo: (atNs: bigint | null) => Iterable<ReadRow>;
}

/** When a moment was: read calls have no numbers. */
const timeOf = (reader: JournalReader, moment: Moment): bigint | null =>
  moment.kind === 'time' ? moment.atNs : timeOfRecord(reader, moment.seq, reader.headSeq());

/** Read calls in the order of their commits, a page at a time. */
const createReads = (reader: JournalReader, { since, until }: Range): ReadsSource => {
  let cursor = 0;
  let buffered: ReadRow[] = [];
  const sinceNs = since === null ? null : timeOf(reader, since);
  // Up to now is up to the end, whatever clock that was written by.
  const untilNs = until === null || isNow(until) ? null : timeOf(reader, until);
  const isWanted = ({ atNs }: ReadRow): boolean =>
    (sinceNs === null || atNs >= sinceNs) && (untilNs === null || atNs <= untilNs);

  const fill = (): boolean => {
    while (buffered.length === 0) {
      const page = reader.readsPage(cursor);
      if (page.next === cursor) return false;
      cursor = page.next;
      buffered = page.rows.filter(isWanted);
    }
    return true;
  };

  return {
    *upTo(atNs) {
      while (fill()) {
        const later = atNs === null ? -1 : buffered.findIndex((row) => row.atNs > atNs);
        yield* buffered.splice(0, later < 0 ? buffered.length : later);
        if (later >= 0) return;
      }
    },
  };
};

/** Whether the last daemon that started before a record had not ended by then. */
export const ranBefore = (reader: JournalReader, seq: number): boolean => {
  for (const place of reader.placesOfStream(NODE_STREAM).toReversed()) {
    const type = place.seq < seq ? recordOf(reader, place.seq)?.type : undefined;
    if (type === 'daemon.started' || type === 'daemon.stopped') return type === 'daemon.started';
  }
  return false;
};

const noReads: ReadsSource = { upTo: () => [] };

const beganNs = (entry: Entry): bigint | null => {
  switch (entry.kind) {
    case 'call':
      return (entry.received ?? entry.completed)?.record.atNs ?? null;
    case 'event':
      return entry.record.atNs;
    case 'read':
      return entry.row.atNs;
    case 'pruned':
      return null;
  }
};

function* readEntries(rows: Iterable<ReadRow>): Generator<Entry> {
  for (const row of rows) yield { kind: 'read', row };
}

/** Live entries in the order of their moments; those without one stay behind what they followed. */
const inOrder = (entries: readonly Entry[], reads: readonly Entry[]): Entry[] => {
  const momentOf = (entry: Entry): bigint => beganNs(entry) ?? 0n;
  const sorted = [...entries, ...reads];
  return reads.length === 0 ? sorted : sorted.sort((a, b) => (momentOf(a) < momentOf(b) ? -1 : 1));
};

/** What became of a call from `fromSeq` on. Nothing is known of what cannot be read. */
const laterOf = (reader: JournalReader, call: number, fromSeq: number, toSeq: number): readonly JournalRecord[] =>
  (unlessDamaged(() => reader.placesOfCall(call)) ?? [])
    .filter(({ seq }) => seq >= fromSeq && seq <= toSeq)
    .flatMap(({ seq }) => unlessDamaged(() => recordOf(reader, seq)) ?? []);

export const createScan = (options: ScanOptions): Scan => {
  const { reader, selection, withEvents, range, heldMax = HELD_MAX } = options;
  const seqs = seqsOf(reader, range);
  const shownSeq = options.shownSeq ?? 0;
  const fromSeq = Math.min(Math.max(seqs.fromSeq, shownSeq + 1), reader.headSeq() + 1);
  const toSeq = Math.max(fromSeq - 1, seqs.toSeq);
  const runs = ranBefore(reader, fromSeq);
  const collector: Collector = createCollector(withEvents, fromSeq, runs, options.askedFromSeq);
  const reads = options.withReads ? createReads(reader, range) : noReads;
  let cursor = toSeq + 1;
  let readSeq = fromSeq - 1;

  const lookedAt = new Set<number>();
  /** A call that was under way when showing ended is begun again from its records; of the others nothing is left to show. */
  const beginAgain = ({ call }: JournalRecord): void => {
    if (call === null || call > shownSeq || call < seqs.fromSeq || lookedAt.has(call)) return;
    lookedAt.add(call);
    const seqsSoFar = [call, ...reader.placesOfCall(call).map(({ seq }) => seq)].filter((seq) => seq <= shownSeq);
    const soFar = [...new Set(seqsSoFar)].flatMap((seq) => recordOf(reader, seq) ?? []);
    if (soFar.some(({ type }) => type === 'call.completed')) return;
    for (const record of soFar) {
      selection.learn(record);
      collector.takeOutside(record);
    }
  };

  const take = (record: JournalRecord): Entry[] => {
    readSeq = record.seq;
    beginAgain(record);
    selection.learn(record);
    return collector.take(record);
  };

  /** Objects that were made before the range. */
  const learnEarlier = async (): Promise<void> => {
    const types = selection.learnsFrom;
    if (fromSeq === 1 || types.length === 0) return;
    for await (const record of reader.read({ toSeq: fromSeq - 1, types })) selection.learn(record);
  };

  /** How the calls that others wait for went on, looked up. */
  const settle = (): Entry[] => {
    const calls = collector.open();
    for (const call of calls) {
      const records = laterOf(reader, call, readSeq + 1, range.until === null ? toSeq : Infinity);
      if (options.live && !records.some(({ type }) => type === COMPLETED)) continue;
      for (const record of records) {
        selection.learn(record);
        collector.takeOutside(record);
      }
    }
    return collector.settle(calls, options.live);
  };

  /** Calls of the range may have ended behind it. */
  const endLater = (): void => {
    for (const call of collector.open())
      for (const record of laterOf(reader, call, toSeq + 1, Infinity)) collector.takeOutside(record);
  };

  function* steps(): Generator<Step> {
    for (let head = reader.headSeq(); cursor <= head; ) {
      const { records, next } = reader.page({}, cursor, head);
      for (const record of records) yield { entries: take(record), throughSeq: record.seq };
      cursor = next;
    }
  }

  function* withReadsBefore(entries: readonly Entry[]): Generator<Entry> {
    for (const entry of entries) {
      const atNs = beganNs(entry);
      if (atNs !== null) yield* readEntries(reads.upTo(atNs));
      yield entry;
    }
  }

  return {
    async *past() {
      await learnEarlier();
      if (fromSeq <= toSeq) {
        try {
          for await (const record of reader.read({ fromSeq, toSeq })) {
            yield* withReadsBefore(take(record));
            if (collector.held() > heldMax) yield* withReadsBefore(settle());
          }
        } catch (thrown) {
          if (isDamageMet(thrown)) yield* withReadsBefore(collector.finish(readSeq));
          throw thrown;
        }
      }
      if (range.until !== null) endLater();
      yield* withReadsBefore(options.live ? collector.goLive(toSeq) : collector.finish(toSeq));
      yield* readEntries(reads.upTo(null));
    },
    news() {
      const entries = [...steps()].flatMap((step) => step.entries);
      return inOrder(entries, [...readEntries(reads.upTo(null))]);
    },
    async goLive() {
      await learnEarlier();
      collector.goLive(fromSeq - 1);
      cursor = fromSeq;
    },
    steps,
    readSeq: () => readSeq,
  };
};
