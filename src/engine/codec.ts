/** Between the domain's records and the journal's rows: the body becomes JSON text and back. Nothing is decided here. */
import { RECORD_VERSION, type Sequenced } from '../domain/model/records.ts';
import { isKnownVersion, upcast } from '../domain/turn/upcast.ts';
import type { JournalRecord } from '../journal/types.ts';

export function toJournalRecord(record: Sequenced, boot: string): JournalRecord {
  const { seq, atNs, monoNs, type, stream, cause, call, body } = record;
  return { seq, atNs, monoNs, boot, type, v: RECORD_VERSION, stream, cause, call, body: JSON.stringify(body) };
}

/** The columns that folding looks at; a pruned record (no body) folds to nothing, so it is null. */
export type FoldedColumns = Pick<
  JournalRecord,
  'seq' | 'atNs' | 'monoNs' | 'type' | 'v' | 'stream' | 'cause' | 'call' | 'body'
>;

/** It was not pruned, and no newer scribe wrote it. */
export const isReadable = ({ body, v }: FoldedColumns): boolean => body !== '' && isKnownVersion(v);

export function fromJournalRecord(record: FoldedColumns): Sequenced | null {
  if (!isReadable(record)) return null;
  const { seq, atNs, monoNs, stream, cause, call } = record;
  // The journal's text was written by toJournalRecord and its hash verified; types the domain does not know change nothing.
  const body = upcast(record.type, record.v, JSON.parse(record.body));
  // Written out, and not spread into: a start folds hundreds of thousands of these.
  return { type: record.type, body, seq, atNs, monoNs, stream, cause, call } as Sequenced;
}
