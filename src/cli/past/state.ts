/**
 * The node as of a moment: folds a journal, with its daemon up or down, to a record from the nearest snapshot before
 * it. For `at`, `diff` and `why`. Reads only, and shows nothing.
 */
import { JOURNAL_PRUNED, parsePruned } from '../../journal/own-records.ts';
import { NODE_STREAM } from '../../domain/model/records.ts';
import type { NodeState } from '../../domain/model/state.ts';
import { type UnknownRecord, whyNewerIn, writerOf } from '../../engine/newer.ts';
import { nodeFoldTelling } from '../../engine/node-fold.ts';
import { foldState } from '../../journal/fold.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { ReadQuery } from '../../journal/types.ts';
import { failure } from '../command.ts';
import { unlessDamaged } from '../damage.ts';
import { counted, shortUtcTime } from '../format.ts';
import { recordOf, timeOfRecord } from '../history/names.ts';
import { allRecords } from './pages.ts';
import { type Moment, seqAt } from '../time-argument.ts';

export interface PastState {
  /** The last record that is in it. */
  readonly seq: number;
  readonly atNs: bigint;
  readonly state: NodeState;
  /** So many of the records up to it are pruned. */
  readonly prunedRecords: number;
  /** What is missing or doubtful in it, as sentences. */
  readonly notes: readonly string[];
}

type Source = Pick<JournalReader, 'headSeq' | 'seqAtTime' | 'page'>;

const PRUNINGS: ReadQuery = { streams: [NODE_STREAM], types: [JOURNAL_PRUNED] };

/**
 * How many records up to `seq` are pruned: what was removed since is missing in a state that is folded without them. What was pruned
 * later than where the journal can be read is not known.
 */
const prunedUpTo = (reader: Source, seq: number): number =>
  (unlessDamaged(() => allRecords(reader, PRUNINGS, reader.headSeq())) ?? allRecords(reader, PRUNINGS, seq))
    .flatMap((record) => parsePruned(record).seqs)
    .reduce((sum, [first, last]) => sum + Math.max(0, Math.min(last, seq) - first + 1), 0);

/** Now, or the newest record, where that was written by a clock that goes ahead of this one. */
const latestNs = (reader: Source, headSeq: number): bigint => {
  const nowNs = BigInt(Date.now()) * 1_000_000n;
  const headNs = unlessDamaged(() => recordOf(reader, headSeq))?.atNs ?? 0n;
  return headNs > nowNs ? headNs : nowNs;
};

/** What is said of a moment before all records, by the first of them, which may be pruned. */
export const nothingBy = (first: { readonly atNs: bigint } | null | undefined): Error =>
  failure(
    `Nothing was recorded by then: the journal begins ${first == null ? 'later' : `at ${shortUtcTime(first.atNs)}`}.`,
  );

export const noRecord = (seq: number, headSeq: number): Error =>
  failure(`There is no record ${seq}: the journal ends with record ${headSeq}.`);

/** The moment that is meant, as a record. Throws where nothing was recorded by then. */
const recordAtMoment = (reader: Source, moment: Moment): number => {
  const headSeq = reader.headSeq();
  if (headSeq === 0) throw failure('Nothing is recorded in the journal yet.');
  if (moment.kind === 'record' && moment.seq > headSeq) throw noRecord(moment.seq, headSeq);
  const seq = seqAt(reader, moment);
  if (seq === 0) throw nothingBy(recordOf(reader, 1));
  if (moment.kind === 'time' && moment.atNs > latestNs(reader, headSeq))
    throw failure(`That time has not come yet: the newest record is ${headSeq}; "now" is the node as it is.`);
  return seq;
};

/** What is shown of a journal that a newer scribe wrote may be wrong, and nobody is to take it for right. */
const newerNotes = (unknown: UnknownRecord | null, state: NodeState): string[] => {
  const why = whyNewerIn(unknown, state);
  if (why === null) return [];
  const what = unknown === null ? 'of this journal may be wrong' : `may be wrong, as of record ${unknown.record.seq}`;
  return [`What is shown ${what}: ${why}`];
};

export const stateAt = (path: string, reader: Source, moment: Moment): PastState => {
  const seq = recordAtMoment(reader, moment);
  let unknown: UnknownRecord | null = null;
  const { state, bad } = foldState(
    path,
    nodeFoldTelling((record, before) => {
      unknown ??= { record, writer: writerOf(before) };
    }),
    seq,
    'checked',
  );
  const pruned = prunedUpTo(reader, seq);
  const atNs =
    moment.kind === 'time' ? moment.atNs : (unlessDamaged(() => timeOfRecord(reader, seq, reader.headSeq())) ?? 0n);
  const notes = [
    ...newerNotes(unknown, state),
    ...(pruned === 0
      ? []
      : [`${counted(pruned, 'record')} of before are pruned: what was removed since is not shown.`]),
    ...(bad.length === 0
      ? []
      : [`${counted(bad.length, 'record')} could not be read, from record ${bad[0]?.seq} on; see scribe verify.`]),
  ];
  return { seq, atNs, state, prunedRecords: pruned, notes };
};
