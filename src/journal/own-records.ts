/**
 * The two types of record that mean something to the journal itself: `reads.closed` (a read segment ended, with its
 * root) and `journal.pruned` (what loses its content in the very transaction that commits this record). Makes and
 * parses their bodies; whoever numbers records appends them.
 */
import { JournalError } from './errors.ts';
import { packRanges, unpackRanges } from './ranges.ts';
import type { JournalRecord, OwnRecord, SealedSegment, SeqRange } from './types.ts';

export const OWN_STREAM = 'node';
export const READS_CLOSED = 'reads.closed';
export const JOURNAL_PRUNED = 'journal.pruned';

/** What a `journal.pruned` record takes away; seqs ascend. `reason` names the rule of the retention policy. */
export interface Pruning {
  readonly reason: string;
  readonly seqs: readonly SeqRange[];
  readonly segments: readonly number[];
}

export const isOwnType = (type: string): boolean => type === READS_CLOSED || type === JOURNAL_PRUNED;

export const readsClosedRecord = (sealed: SealedSegment): OwnRecord => ({
  type: READS_CLOSED,
  v: 1,
  stream: OWN_STREAM,
  body: JSON.stringify({
    segment: sealed.segment,
    count: sealed.count,
    dropped: sealed.dropped,
    fromNs: String(sealed.fromNs),
    toNs: String(sealed.toNs),
    root: Buffer.from(sealed.root).toString('hex'),
  }),
});

export const prunedRecord = (pruning: Pruning): OwnRecord => ({
  type: JOURNAL_PRUNED,
  v: 1,
  stream: OWN_STREAM,
  body: JSON.stringify({ reason: pruning.reason, seqs: packRanges(pruning.seqs), segments: pruning.segments }),
});

const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
const isDecimal = (value: unknown): value is string => typeof value === 'string' && /^\d{1,19}$/.test(value);

const parseObject = (record: Pick<JournalRecord, 'seq' | 'type' | 'body'>): Partial<Record<string, unknown>> => {
  try {
    const parsed: unknown = JSON.parse(record.body);
    if (typeof parsed === 'object' && parsed !== null) return parsed;
  } catch {
    // Falls through to the one message below.
  }
  throw malformed(record);
};

const malformed = (record: Pick<JournalRecord, 'seq' | 'type'>): JournalError =>
  new JournalError('BadRecord', `The journal refuses record ${record.seq}: its body is no ${record.type}.`);

/** The segment a `reads.closed` record closes; throws BadRecord for a malformed body. */
export const parseReadsClosed = (record: Pick<JournalRecord, 'seq' | 'type' | 'body'>): SealedSegment => {
  const { segment, count, dropped, fromNs, toNs, root } = parseObject(record);
  if (!isCount(segment) || !isCount(count) || !isCount(dropped) || !isDecimal(fromNs) || !isDecimal(toNs)) {
    throw malformed(record);
  }
  if (typeof root !== 'string' || !/^[0-9a-f]{64}$/.test(root)) throw malformed(record);
  return { segment, count, dropped, fromNs: BigInt(fromNs), toNs: BigInt(toNs), root: Buffer.from(root, 'hex') };
};

/** Unpacked ranges, when every one is before `seq`; null for anything else. */
const rangesBefore = (seq: number, packed: unknown): SeqRange[] | null => {
  if (!Array.isArray(packed) || packed.length % 2 !== 0 || !packed.every(isCount)) return null;
  const ranges = unpackRanges(packed);
  const good = ranges.every(([first, last]) => first >= 1 && first <= last && last < seq);
  return good ? ranges : null;
};

/** What a `journal.pruned` record prunes; throws BadRecord for a malformed body or a range that is not before it. */
export const parsePruned = (record: Pick<JournalRecord, 'seq' | 'type' | 'body'>): Pruning => {
  const { reason, seqs, segments } = parseObject(record);
  const ranges = rangesBefore(record.seq, seqs);
  if (typeof reason !== 'string' || ranges === null || !Array.isArray(segments) || !segments.every(isCount)) {
    throw malformed(record);
  }
  return { reason, seqs: ranges, segments };
};

/** Throws BadRecord when a record of the journal's own is malformed; any other record passes. */
export const checkOwnRecord = (record: JournalRecord): void => {
  if (record.type === READS_CLOSED) parseReadsClosed(record);
  if (record.type === JOURNAL_PRUNED) parsePruned(record);
};
