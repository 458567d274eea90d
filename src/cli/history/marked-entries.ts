/** From what a search has marked to entries of a history: each is read by its number, with all that belongs to it. */
import type { Window } from '../../journal/search-windows.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { isBeneath } from './beneath.ts';
import { createCollector, type Entry, isTold, RECEIVED } from './entries.ts';
import { recordOf } from './names.ts';
import { ranBefore, type ScanOptions } from './scan.ts';

export type MarkedOptions = Pick<ScanOptions, 'reader' | 'selection' | 'withEvents' | 'range'>;

/** What may be shown: a call, or what happened by itself, by the number of the record that it began with. */
export interface Found {
  readonly seq: number;
  readonly isCall: boolean;
}

const eventOf = (options: MarkedOptions, fromSeq: number, seq: number): Entry | null => {
  const { reader, withEvents } = options;
  const record = recordOf(reader, seq);
  if (record === undefined) return null;
  if (!isTold(record) && (!withEvents || isBeneath(reader, fromSeq, record))) return null;
  return { kind: 'event', record, afterKill: record.type === 'daemon.started' && ranBefore(reader, seq) };
};

/** The call that began with a record, with what belongs to it up to another, or to its end where the range has one. */
export const callOf = ({ reader, selection, withEvents, range }: MarkedOptions, seq: number, toSeq: number) => {
  const collector = createCollector(withEvents, seq);
  const records = reader.placesOfCall(seq).flatMap((place): readonly JournalRecord[] => {
    const isSeen = place.seq <= toSeq || range.until !== null;
    const record = isSeen ? recordOf(reader, place.seq) : undefined;
    return record === undefined ? [] : [record];
  });
  // It may ask for something that never came to be: then no other record tells what that was to be called.
  for (const record of records) if (record.type === RECEIVED) selection.learn(record);
  const entries = [...records.flatMap((record) => collector.take(record)), ...collector.finish(seq)];
  return entries.find((entry) => entry.kind === 'call') ?? null;
};

/**
 * The entry of what was found; null where it is shown beneath its call, or is not asked for.
 * @param whole  the range of the whole history
 */
export const entryOf = (options: MarkedOptions, whole: Window, { seq, isCall }: Found): Entry | null =>
  isCall ? callOf(options, seq, whole.toSeq) : eventOf(options, whole.fromSeq, seq);
