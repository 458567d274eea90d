/**
 * How far the records of a journal reach, for readers: also where the page that has the newest cannot be read, which is where
 * a torn write hits first. All before it is to be shown, and whoever reads that far meets what is wrong.
 */
import { type Db, isCorruption } from './connect.ts';

/** The indexes know the records that are not pruned. */
const seqByIndexes = (db: Db): number =>
  db
    .prepare<[], number>(
      `SELECT coalesce(max(seq), 0) FROM (
         SELECT seq FROM records INDEXED BY records_by_stream WHERE typeof(stream) = 'integer'
         UNION ALL SELECT seq FROM records INDEXED BY records_by_call WHERE call IS NOT NULL)`,
    )
    .pluck()
    .get() ?? 0;

/** 0: there is no record. */
export const createHeadSeq = (db: Db): (() => number) => {
  const newest = db
    .prepare<[], number | null>(`SELECT max(seq) FROM records WHERE seq <= ${Number.MAX_SAFE_INTEGER}`)
    .pluck();
  return () => {
    try {
      return newest.get() ?? 0;
    } catch (thrown) {
      if (!isCorruption(thrown)) throw thrown;
      return seqByIndexes(db);
    }
  };
};
