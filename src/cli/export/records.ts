/**
 * Reads a journal as items for formats: pages of records in order of seq, those that a history of chosen objects with all its
 * events shows, each with what names and calls say of it. Shows nothing; short transactions, with the daemon up or down.
 */
import { subjectsOf } from '../../domain/call/catalogue.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { isTold, knownAs } from '../history/entries.ts';
import { learnMakings } from '../history/makings.ts';
import { callOf } from '../history/marked-entries.ts';
import { namedObject, type NamedObject, objectsOfCall } from '../history/named-object.ts';
import { createNames, recordOf } from '../history/names.ts';
import { createSelection, type Wanted } from '../history/selection.ts';
import { endedCall, type EndedCall, type Item } from './item.ts';

export interface ItemPage {
  readonly items: readonly Item[];
  /** The last record that was looked at. */
  readonly throughSeq: number;
  /** So many up to there are pruned. */
  readonly pruned: number;
}

export interface ItemReader {
  /** Learns which objects bear the wanted names from what was recorded up to there; of what is recorded later, as it comes. */
  readonly learnThrough: (seq: number) => void;
  /** From `fromSeq` on, at most to `toSeq`: a page at a time. */
  readonly pages: (fromSeq: number, toSeq: number) => Generator<ItemPage>;
}

/** A call's records stand near each other. */
const REMEMBERED_MAX = 10_000;

export const createItemReader = (reader: JournalReader, node: string, wanted: Wanted): ItemReader => {
  const names = createNames(reader);
  const selection = createSelection(wanted);
  /** Of calls that have ended: through which record theirs are chosen. */
  const remembered = new Map<number, number>();

  /** By all that a call has had to do with so far: what its request does not name, the records behind that tell. 0: not chosen. */
  const chosenThrough = (call: number): number => {
    const known = remembered.get(call);
    if (known !== undefined) return known;
    const options = { reader, selection, withEvents: false, range: { since: null, until: null } };
    const entry = callOf(options, call, Number.MAX_SAFE_INTEGER);
    if (entry === null) return 0;
    const endSeq = entry.completed?.record.seq ?? null;
    const through = selection.has(entry) ? (endSeq ?? Number.POSITIVE_INFINITY) : 0;
    if (remembered.size >= REMEMBERED_MAX) remembered.clear();
    if (endSeq !== null) remembered.set(call, through);
    return through;
  };

  /** What is done on behalf of a chosen call stands beneath it until it ends, but for what is told by itself. */
  const isChosen = (record: JournalRecord): boolean =>
    selection.has({ kind: 'event', record }) ||
    (record.call !== null && !isTold(record) && record.seq <= chosenThrough(record.call));

  /** Of a record of a call: what that is about. */
  const objectOf = (record: JournalRecord, call: EndedCall | null): NamedObject => {
    const own = namedObject(names, record.stream);
    if (own.kind !== 'call') return own;
    if (call !== null) return call.objects[0] ?? own;
    const first = record.call === null ? record : recordOf(reader, record.call);
    const request = first === undefined ? undefined : knownAs('call.received', first)?.event.body.request;
    return request === undefined ? own : (objectsOfCall(names, request, subjectsOf(request))[0] ?? own);
  };

  const itemsOf = (record: JournalRecord): Item[] => {
    selection.learn(record);
    if (!isChosen(record)) return [];
    const call = endedCall(record, names, (seq) => recordOf(reader, seq));
    return [{ node, record, hashes: reader.hashesOf(record.seq), object: objectOf(record, call), call }];
  };

  return {
    learnThrough(seq) {
      if (selection.streams() !== null) learnMakings(reader, selection, seq);
    },
    *pages(fromSeq, toSeq) {
      for (let cursor = fromSeq; cursor <= toSeq; ) {
        const { records, next } = reader.page({}, cursor, toSeq);
        const throughSeq = Math.min(next - 1, toSeq);
        yield { items: records.flatMap(itemsOf), throughSeq, pruned: throughSeq - cursor + 1 - records.length };
        cursor = next;
      }
    },
  };
};
