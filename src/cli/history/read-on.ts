/**
 * Where a search finds so much that reading everything is faster: the rest of a history from a record on, forwards or backwards,
 * so that what was shown before is not shown again. Whoever asks looks at each entry by filter and selection.
 */
import { seqsOf } from '../time-argument.ts';
import { isToldEarlier } from './beneath.ts';
import type { Entry } from './entries.ts';
import type { MarkedOptions } from './marked-entries.ts';
import { pastFromItsEnd } from './reverse.ts';
import { createScan } from './scan.ts';

/** Calls that began before the record have been looked at. */
async function* readForwards(options: MarkedOptions, firstSeq: number): AsyncGenerator<Entry> {
  const { reader, range } = options;
  const askedFromSeq = seqsOf(reader, range).fromSeq;
  const rest = { withReads: false, live: false, shownSeq: null, askedFromSeq };
  const since = { kind: 'record', seq: firstSeq } as const;
  for await (const entry of createScan({ ...options, ...rest, range: { ...range, since } }).past())
    if (!isToldEarlier(reader, askedFromSeq, firstSeq, entry)) yield entry;
}

/** @param seq  the first record that is read, which is the last one where the newest come first */
export const readOn = (options: MarkedOptions, seq: number, isReversed: boolean): AsyncGenerator<Entry> => {
  if (!isReversed) return readForwards(options, seq);
  const { reader, range } = options;
  const isWhole = seq >= seqsOf(reader, range).toSeq;
  // Who searched backwards has learnt of everything that was made.
  const learned = { ...options, selection: { ...options.selection, learnsFrom: [] } };
  return pastFromItsEnd(isWhole ? learned : { ...learned, range: { ...range, until: { kind: 'record', seq } } });
};
