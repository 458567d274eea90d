/** All records of a query at once, for those that are few: page by page, in short transactions. */
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord, ReadQuery } from '../../journal/types.ts';

export const allRecords = (
  reader: Pick<JournalReader, 'page'>,
  query: ReadQuery,
  throughSeq: number,
): JournalRecord[] => {
  const found: JournalRecord[] = [];
  for (let cursor = 1; cursor <= throughSeq; ) {
    const { records, next } = reader.page(query, cursor, throughSeq);
    found.push(...records);
    cursor = next;
  }
  return found;
};
