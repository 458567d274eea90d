/**
 * A history from its end: a window of records at a time, each read forwards and given backwards, so that no more than a
 * window is held. A call stands where it began, with all that was done on its behalf, as in the history forwards.
 */
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { seqsOf } from '../time-argument.ts';
import { type Entry, isTold } from './entries.ts';
import { recordOf } from './names.ts';
import { createScan, type ScanOptions } from './scan.ts';

const WINDOW_RECORDS = 4096;

/** Whether a record stands beneath a call of an earlier window: that call had not ended yet. */
const isBeneathEarlier = (reader: JournalReader, fromSeq: number, { seq, call }: JournalRecord): boolean => {
  if (call === null || call >= fromSeq || recordOf(reader, call) === undefined) return false;
  const { records } = reader.page({ types: ['call.completed'], call }, call, seq);
  return records.length === 0;
};

/** Whether an entry of a window is a part of a call that began in an earlier one, and is told there. */
const isToldEarlier = (reader: JournalReader, fromSeq: number, entry: Entry): boolean => {
  if (entry.kind === 'event') return !isTold(entry.record) && isBeneathEarlier(reader, fromSeq, entry.record);
  if (entry.kind !== 'call' || entry.received !== null) return false;
  const call = entry.completed?.record.call ?? null;
  return call !== null && call < fromSeq && recordOf(reader, call) !== undefined;
};

export async function* pastFromItsEnd(
  { reader, selection, withEvents, range }: Pick<ScanOptions, 'reader' | 'selection' | 'withEvents' | 'range'>,
  windowRecords = WINDOW_RECORDS,
): AsyncGenerator<Entry> {
  const { fromSeq, toSeq } = seqsOf(reader, range);
  const types = selection.learnsFrom;
  if (types.length > 0) for await (const record of reader.read({ toSeq, types })) selection.learn(record);
  const learned = { ...selection, learnsFrom: [] };
  for (let last = toSeq; last >= fromSeq; last -= windowRecords) {
    const first = Math.max(fromSeq, last - windowRecords + 1);
    const window = { since: { kind: 'record', seq: first }, until: { kind: 'record', seq: last } } as const;
    const rest = { withEvents, withReads: false, live: false, shownSeq: null, askedFromSeq: fromSeq };
    const entries = await Array.fromAsync(createScan({ reader, selection: learned, range: window, ...rest }).past());
    for (const entry of entries.toReversed())
      if (first === fromSeq || !isToldEarlier(reader, first, entry)) yield entry;
  }
}
