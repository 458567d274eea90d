/** From what a search has marked to entries of a history: each is read by its number, with all that belongs to it. */
import type { Mark } from '../../journal/marks.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { createCollector, type Entry, RECEIVED } from './entries.ts';
import { recordOf } from './names.ts';
import { ranBefore, type ScanOptions } from './scan.ts';

/** A window in which more calls may pass is read in order, and all after it: each costs as much as so many records. */
export const RECORDS_PER_CANDIDATE = 20;

export type MarkedOptions = Pick<ScanOptions, 'reader' | 'selection' | 'withEvents' | 'range'>;

/** Stretches of pruned records, as entries. */
export const prunedIn = (marks: readonly Mark[]): Entry[] => {
  const stretches: { kind: 'pruned'; fromSeq: number; toSeq: number }[] = [];
  for (const { seq, type } of marks) {
    if (type !== null) continue;
    const last = stretches.at(-1);
    if (last?.toSeq === seq - 1) last.toSeq = seq;
    else stretches.push({ kind: 'pruned', fromSeq: seq, toSeq: seq });
  }
  return stretches;
};

export const entryOf = (
  { reader, selection, withEvents, range }: MarkedOptions,
  seq: number,
  isCall: boolean,
  toSeq: number,
): Entry[] => {
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
  // It may ask for something that never came to be: then no other record tells what that was to be called.
  for (const record of records) if (record.type === RECEIVED) selection.learn(record);
  const entries = [...records.flatMap((record) => collector.take(record)), ...collector.finish(seq)];
  return entries.filter(({ kind }) => kind === 'call');
};
