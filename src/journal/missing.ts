/** What of a journal is no longer there, for readers: what was pruned, and what SQLite cannot read. */
import { type Db, isCorruption } from './connect.ts';
import type { NameReader } from './names.ts';
import { JOURNAL_PRUNED, OWN_STREAM, parsePruned } from './own-records.ts';
import type { JournalRecord, SeqRange } from './types.ts';

export interface Missing {
  /** What was pruned of a stretch, as the records of pruning say, in order. */
  readonly prunedRanges: (fromSeq: number, toSeq: number) => SeqRange[];
  /** The newest record that was pruned, up to `toSeq`, or up to where the journal can be read; 0 when none was. */
  readonly lastPrunedSeq: (toSeq: number) => number;
  /** The last record in front of the first that cannot be read; 0: not even that can. Reads every record. */
  readonly readableSeq: () => number;
}

/** Nothing, where the record is not as it was written: verify finds that, reading goes on (C20). */
const prunedBy = (record: Pick<JournalRecord, 'seq' | 'body'>): readonly SeqRange[] => {
  try {
    return parsePruned({ ...record, type: JOURNAL_PRUNED }).seqs;
  } catch {
    return [];
  }
};

export const createMissing = (db: Db, names: NameReader): Missing => ({
  prunedRanges: (fromSeq, toSeq) => {
    const [stream, type] = [names.idOf(OWN_STREAM), names.idOf(JOURNAL_PRUNED)];
    if (stream === undefined || type === undefined) return [];
    return db
      .prepare<[number, number, number], { seq: number; body: string }>(
        `SELECT seq, body FROM records WHERE typeof(stream) = 'integer' AND stream = ? AND type = ? AND seq > ?`,
      )
      .all(stream, type, fromSeq)
      .flatMap(prunedBy)
      .filter(([first, last]) => last >= fromSeq && first <= toSeq)
      .map(([first, last]): SeqRange => [Math.max(first, fromSeq), Math.min(last, toSeq)])
      .sort(([a], [b]) => a - b);
  },
  lastPrunedSeq: (toSeq) => {
    const pruned = (order: 'ASC' | 'DESC') =>
      db
        .prepare<[number], number>(`SELECT seq FROM records WHERE at IS NULL AND seq <= ? ORDER BY seq ${order}`)
        .pluck();
    try {
      return pruned('DESC').get(toSeq) ?? 0;
    } catch (thrown) {
      if (!isCorruption(thrown)) throw thrown;
      return lastBeforeDamage(pruned('ASC').iterate(toSeq));
    }
  },
  readableSeq: () =>
    // Of a long body a part may lie elsewhere.
    lastBeforeDamage(
      db
        .prepare<[], number>('SELECT seq FROM records WHERE coalesce(length(body), 0) >= 0 ORDER BY seq')
        .pluck()
        .iterate(),
    ),
});

/** 0: there is none. */
const lastBeforeDamage = (seqs: Iterable<number>): number => {
  let last = 0;
  try {
    for (const seq of seqs) last = seq;
  } catch (thrown) {
    if (!isCorruption(thrown)) throw thrown;
  }
  return last;
};
