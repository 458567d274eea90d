/** Golden journals as text: one record a line, 64-bit numbers as decimal text. The journal's own records are not in them. */
import type { JournalRecord } from '../../journal/types.ts';

export const writeGolden = (records: readonly JournalRecord[]): string =>
  records
    .map((record) => `${JSON.stringify({ ...record, atNs: String(record.atNs), monoNs: String(record.monoNs) })}\n`)
    .join('');

/** Throws SyntaxError for what is none. */
export const readGolden = (text: string): JournalRecord[] =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => {
      const record = JSON.parse(line) as JournalRecord;
      return { ...record, atNs: BigInt(record.atNs), monoNs: BigInt(record.monoNs) };
    });
