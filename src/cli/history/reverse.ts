/**
 * A history from its end: a window of records at a time, each read forwards and given backwards, so that no more than a
 * window is held. The first are small: who asks for the last twenty waits for no more than these. A call stands where it began, with all that was done on its behalf, as in the history forwards.
 */
import type { JournalReader } from '../../journal/reader.ts';
import { seqsOf } from '../time-argument.ts';
import { isToldEarlier } from './beneath.ts';
import type { Entry } from './entries.ts';
import { learnOf } from './makings.ts';
import { createScan, type ScanOptions } from './scan.ts';
import type { Selection } from './selection.ts';

const WINDOW_RECORDS_MAX = 4096;
/** How much smaller the first window is; each is twice the one before. */
const FIRST_IS_SMALLER = 32;

/** Has the selection learn what it has to know of an entry; nothing of what was made elsewhere. */
const learnerOf = (reader: JournalReader, selection: Selection): ((entry: Entry) => void) => {
  const learn = selection.learnsFrom.length === 0 ? () => undefined : learnOf(reader, selection);
  return (entry) => {
    if (entry.kind === 'event') learn([entry.record.stream]);
    if (entry.kind !== 'call') return;
    learn(entry.streams);
    // What it asked for may never have come to be.
    if (entry.received !== null) selection.learn(entry.received.record);
  };
};

export async function* pastFromItsEnd(
  { reader, selection, withEvents, range }: Pick<ScanOptions, 'reader' | 'selection' | 'withEvents' | 'range'>,
  windowRecordsMax = WINDOW_RECORDS_MAX,
): AsyncGenerator<Entry> {
  const { fromSeq, toSeq } = seqsOf(reader, range);
  const learn = learnerOf(reader, selection);
  // Of a window nothing is learnt before what it tells of was.
  const learned = { ...selection, learnsFrom: [], learn: () => undefined };
  let windowRecords = Math.ceil(windowRecordsMax / FIRST_IS_SMALLER);
  for (let last = toSeq; last >= fromSeq; ) {
    const first = Math.max(fromSeq, last - windowRecords + 1);
    const window = { since: { kind: 'record', seq: first }, until: { kind: 'record', seq: last } } as const;
    const rest = { withEvents, withReads: false, live: false, shownSeq: null, askedFromSeq: fromSeq };
    const entries = await Array.fromAsync(createScan({ reader, selection: learned, range: window, ...rest }).past());
    for (const entry of entries) learn(entry);
    for (const entry of entries.toReversed())
      if (first === fromSeq || !isToldEarlier(reader, fromSeq, first, entry)) yield entry;
    last = first - 1;
    windowRecords = Math.min(2 * windowRecords, windowRecordsMax);
  }
}
