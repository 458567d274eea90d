/**
 * What can be replayed, read: a journal, wherever it lies and whether or not its daemon runs, or a golden journal, a text.
 * Says where replaying can begin (behind what was pruned) and how many decisions there are to check. Changes nothing.
 */
import type { Sequenced } from '../../domain/model/records.ts';
import { initialState, type NodeState } from '../../domain/model/state.ts';
import { INPUT_TYPES, isInput } from '../../domain/turn/redecide.ts';
import { readState } from '../../domain/turn/snapshot.ts';
import { fromJournalRecord } from '../../engine/codec.ts';
import { nodeFold } from '../../engine/node-fold.ts';
import { foldState } from '../../journal/fold.ts';
import { openReader } from '../../journal/open.ts';
import { isOwnType, JOURNAL_PRUNED, parsePruned } from '../../journal/own-records.ts';
import { readableCopy } from '../../journal/readable-copy.ts';
import { readAhead } from '../../journal/read-ahead.ts';
import type { JournalReader } from '../../journal/reader.ts';
import { uncovered } from '../../journal/ranges.ts';
import type { JournalRecord, SeqRange } from '../../journal/types.ts';
import { failure } from '../command.ts';
import { unlessDamaged, WHY_NO_FURTHER } from '../damage.ts';
import type { CrashReport } from '../../daemon/crash-report.ts';
import { whyNewer, type Writer, writerIn } from '../../engine/newer.ts';
import { allRecords } from '../past/pages.ts';
import { readGolden } from './golden-text.ts';

/** Where replaying begins: after record `seq`, whose state is known from a snapshot or from folding what is left. */
export interface Start {
  readonly seq: number;
  readonly from: 'first' | 'snapshot' | 'fold';
  /** Makes the state anew each time. */
  readonly state: () => NodeState;
}

export interface Source {
  /** As it was named. */
  readonly name: string;
  /** It was named by this report of a crash. */
  readonly crash?: CrashReport;
  readonly headSeq: number;
  readonly start: Start;
  /** Decisions that are journaled from `fromSeq` to `toSeq`, counted without replaying. */
  readonly journaled: (fromSeq: number, toSeq: number) => number;
  /** Records from `fromSeq` on to the end of the turn that record `toSeq` is of, the journal's own aside. */
  readonly records: (fromSeq: number, toSeq: number, told: ReadTold) => Iterable<Sequenced>;
  /** null: it is pruned, cannot be read, or is the journal's own. */
  readonly record: (seq: number) => Sequenced | null;
  readonly seqAtTime: (tNs: bigint) => number;
  /** Why what was read is not all of one moment; null: it is. */
  readonly changed: () => string | null;
  readonly close: () => void;
}

/**
 * Told of records that can't be read. They are passed over, but for one that a newer scribe wrote, or that SQLite cannot read: with it
 * reading ends, and `endsAt` is the last record in front of it.
 */
export type Unreadable = (seq: number, why: string, endsAt?: number) => void;

/** What reading records goes by, besides them. */
export interface ReadTold {
  readonly unreadable: Unreadable;
  /** The daemon that wrote the first of them; null: its start is among them. */
  readonly writer: Writer | null;
}

export const journalSource = (name: string, file: string): Source => {
  const { path, release } = readableCopy(file);
  // What was pruned is looked for from its end.
  void readAhead(path, 'end');
  const reader = openReader(path);
  const headSeq = reader.headSeq();
  const pruned = reader.lastPrunedSeq(headSeq);
  const start = startOf(path, reader, pruned);
  return {
    name,
    headSeq,
    start,
    journaled: (fromSeq, toSeq) => reader.countOf(INPUT_TYPES, fromSeq, toSeq),
    records: (fromSeq, toSeq, told) => wholeTurns(recordsFrom(reader, fromSeq, headSeq), toSeq, told),
    record: (seq) => recordIn(recordsFrom(reader, seq, seq)),
    seqAtTime: reader.seqAtTime,
    changed: () =>
      reader.lastPrunedSeq(headSeq) === pruned ? null : 'it was pruned while it was read; replay it once more',
    close() {
      reader.close();
      release();
    },
  };
};

export const goldenSource = (name: string, text: string): Source => {
  const records = goldenRecords(name, text);
  const within = (fromSeq: number, toSeq: number): JournalRecord[] =>
    records.filter(({ seq }) => seq >= fromSeq && seq <= toSeq);
  return {
    name,
    headSeq: records.at(-1)?.seq ?? 0,
    start: FIRST,
    journaled: (fromSeq, toSeq) => within(fromSeq, toSeq).filter(({ type }) => INPUT_TYPES.includes(type)).length,
    records: (fromSeq, toSeq, told) => wholeTurns(within(fromSeq, Number.POSITIVE_INFINITY), toSeq, told),
    record: (seq) => recordIn(records.filter((record) => record.seq === seq)),
    // One less than the first record that is later.
    seqAtTime: (tNs) => (records.find(({ atNs }) => atNs > tNs)?.seq ?? Number.POSITIVE_INFINITY) - 1,
    changed: () => null,
    close: () => undefined,
  };
};

const goldenRecords = (name: string, text: string): JournalRecord[] => {
  try {
    return readGolden(text);
  } catch (error) {
    throw failure(`${name} is neither a journal nor a golden journal (a record a line, as JSON).`, error);
  }
};

const FIRST: Start = { seq: 0, from: 'first', state: initialState };

/** Behind the last record that was pruned all are there; the oldest snapshot from there on leaves the most to check. */
const startOf = (path: string, reader: JournalReader, pruned: number): Start => {
  if (pruned === 0) return FIRST;
  let oldest: Start | null = null;
  for (let through = Number.MAX_SAFE_INTEGER; ; ) {
    const snapshot = reader.newestSnapshot(nodeFold.evolverVersion, through);
    if (snapshot === null || snapshot.seq < pruned) break;
    oldest = { seq: snapshot.seq, from: 'snapshot', state: () => readState(snapshot.state) };
    through = snapshot.seq - 1;
  }
  if (oldest !== null) return oldest;
  const seq = lastPruning(reader);
  return { seq, from: 'fold', state: () => foldState(path, nodeFold, seq, 'checked').state };
};

/** When this was recorded, all that was pruned was over: what is left folds to the state of that moment. */
const lastPruning = (reader: JournalReader): number => {
  const prunings = unlessDamaged(() => allRecords(reader, { types: [JOURNAL_PRUNED] }, reader.headSeq()));
  return prunings === null ? lastKnownPruning(reader) : (prunings.at(-1)?.seq ?? 0);
};

/**
 * The same in front of damage, where what is pruned there is pruned by what can be read: what a later pruning took may have been
 * there then. Throws a sentence otherwise.
 */
const lastKnownPruning = (reader: JournalReader): number => {
  const cover: SeqRange[] = [];
  const pruned: SeqRange[] = [];
  let [last, next] = [0, 1];
  for (const record of recordsFrom(reader, 1, reader.headSeq())) {
    const seq = 'damagedFrom' in record ? record.damagedFrom : record.seq;
    if (seq > next) pruned.push([next, seq - 1]);
    next = seq + 1;
    if ('damagedFrom' in record || record.type !== JOURNAL_PRUNED) continue;
    last = seq;
    cover.push(...prunedRangesBy(record));
  }
  if (last === 0 || uncovered(pruned, cover).length > 0) throw failure(noStart(next - 1));
  return last;
};

/** None, where it is not as it was written: then what it took is covered by nothing. */
const prunedRangesBy = (record: JournalRecord): readonly SeqRange[] => {
  try {
    return parsePruned(record).seqs;
  } catch {
    return [];
  }
};

const noStart = (seq: number): string =>
  `There is nowhere to begin: a part of the journal is pruned, its records of that cannot be read from record ${seq} on, and it has no snapshot that serves. ${WHY_NO_FURTHER}`;

/** From this record on nothing can be read. */
interface Damage {
  readonly damagedFrom: number;
}

function* recordsFrom(reader: JournalReader, fromSeq: number, headSeq: number): Generator<JournalRecord | Damage> {
  for (let cursor = fromSeq; cursor <= headSeq; ) {
    const page = unlessDamaged(() => reader.page({}, cursor, headSeq));
    if (page === null) {
      yield { damagedFrom: cursor };
      return;
    }
    yield* page.records;
    cursor = page.next;
  }
}

/**
 * A record that this scribe does not know is the end: nobody could judge what was decided in its sight. So is damage, with the turn
 * before it, of which more may have been recorded.
 */
function* wholeTurns(
  records: Iterable<JournalRecord | Damage>,
  toSeq: number,
  { unreadable, ...told }: ReadTold,
): Generator<Sequenced> {
  let turn: Sequenced[] = [];
  let { writer } = told;
  for (const record of records) {
    if ('damagedFrom' in record) return unreadable(record.damagedFrom, WHY_NO_FURTHER, record.damagedFrom - 1);
    if (isOwnType(record.type)) continue;
    writer = writerIn(record) ?? writer;
    const newer = whyNewer(record, writer);
    if (newer !== null) {
      // What follows from an input stands behind it, up to the next one.
      if (INPUT_TYPES.includes(record.type)) yield* turn;
      unreadable(record.seq, newer, record.seq - 1);
      return;
    }
    const sequenced = readRecord(record, unreadable);
    if (sequenced === null) continue;
    if (isInput(sequenced)) {
      yield* turn;
      turn = [];
      if (sequenced.seq > toSeq) return;
    }
    turn.push(sequenced);
  }
  yield* turn;
}

const recordIn = (records: Iterable<JournalRecord | Damage>): Sequenced | null => {
  for (const record of records)
    if (!('damagedFrom' in record) && !isOwnType(record.type)) return readRecord(record, () => undefined);
  return null;
};

/** null: it cannot be read. */
const readRecord = (record: JournalRecord, unreadable: Unreadable): Sequenced | null => {
  try {
    return fromJournalRecord(record);
  } catch (error) {
    unreadable(record.seq, (error as Error).message);
    return null;
  }
};
