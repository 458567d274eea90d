/**
 * Reads a journal as items for formats: pages of records in order of seq, those about chosen objects, each with what names
 * and calls say of it. Shows nothing; short transactions, with the daemon up or down.
 */
import { subjectsOf } from '../../domain/call/catalogue.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { type Entry, knownAs } from '../history/entries.ts';
import { namedObject, type NamedObject, objectsOfCall } from '../history/named-object.ts';
import { createNames, recordOf } from '../history/names.ts';
import { createSelection, type Wanted } from '../history/selection.ts';
import { endedCall, type EndedCall, type Item } from './item.ts';

export interface ItemPage {
  readonly items: readonly Item[];
  /** The last record that was looked at. */
  readonly throughSeq: number;
}

export interface ItemReader {
  /** Learns which objects bear the wanted names from what was recorded before. */
  readonly learnBefore: (seq: number) => Promise<void>;
  /** From `fromSeq` on, at most to `toSeq`: a page at a time. */
  readonly pages: (fromSeq: number, toSeq: number) => Generator<ItemPage>;
}

export const createItemReader = (reader: JournalReader, node: string, wanted: Wanted): ItemReader => {
  const names = createNames(reader);
  const selection = createSelection(wanted);

  /** A record as selections know what is told: a call by the objects that it names. */
  const entryOf = (record: JournalRecord, call: EndedCall | null): Entry => {
    const received = call === null ? knownAs('call.received', record) : call.received;
    if (received === null && call === null) return { kind: 'event', record };
    const asked = received === null ? [] : subjectsOf(received.event.body.request);
    const streams = new Set([...asked, ...(call?.streams ?? [])]);
    return { kind: 'call', received, completed: call?.completed ?? null, events: [], streams };
  };

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
    const call = endedCall(record, names, (seq) => recordOf(reader, seq));
    // It may have begun in front of the range, and have made nothing that would tell of it.
    if (call !== null && call.received !== null) selection.learn(call.received.record);
    if (!selection.has(entryOf(record, call))) return [];
    return [{ node, record, hashes: reader.hashesOf(record.seq), object: objectOf(record, call), call }];
  };

  return {
    async learnBefore(seq) {
      const types = selection.learnsFrom;
      if (seq <= 1 || types.length === 0) return;
      for await (const record of reader.read({ toSeq: seq - 1, types })) selection.learn(record);
    },
    *pages(fromSeq, toSeq) {
      for (let cursor = fromSeq; cursor <= toSeq; ) {
        const { records, next } = reader.page({}, cursor, toSeq);
        yield { items: records.flatMap(itemsOf), throughSeq: Math.min(next - 1, toSeq) };
        cursor = next;
      }
    },
  };
};
