/**
 * What belongs to a call that stands elsewhere in a history, so that whoever reads only a part of it shows nothing twice.
 * Looks at records one by one; knows no filters.
 */
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { COMPLETED, type Entry, isTold } from './entries.ts';
import { recordOf } from './names.ts';

/**
 * Whether a record stands beneath its call, which had not ended by then, in place of by itself.
 * @param askedFromSeq  calls from before that are not shown
 */
export const isBeneath = (reader: JournalReader, askedFromSeq: number, record: JournalRecord): boolean => {
  const { seq, call } = record;
  if (isTold(record) || call === null || call < askedFromSeq || recordOf(reader, call) === undefined) return false;
  return reader.page({ types: [COMPLETED], call }, call, seq).records.length === 0;
};

/** Whether an entry of what was read from `firstSeq` on is a part of a call that began before it, and is told there. */
export const isToldEarlier = (reader: JournalReader, askedFromSeq: number, firstSeq: number, entry: Entry): boolean => {
  if (entry.kind === 'event') {
    const { call } = entry.record;
    return call !== null && call < firstSeq && isBeneath(reader, askedFromSeq, entry.record);
  }
  if (entry.kind !== 'call' || entry.received !== null) return false;
  const call = entry.completed?.record.call ?? null;
  return call !== null && call < firstSeq && recordOf(reader, call) !== undefined;
};
