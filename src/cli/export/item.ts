/**
 * A record with what formats have to know beside it: the call that it ends, and what the object that it is about is called.
 * Pure; formats are functions from this to an object, or to nothing where they have no word for it.
 */
import { subjectsOf } from '../../domain/call/catalogue.ts';
import { rpcOf } from '../../domain/model/records.ts';
import type { RecordHashes } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { type Known, knownAs, streamsOfAnswer } from '../history/entries.ts';
import { type NamedObject, objectsOfCall, streamsAbout } from '../history/named-object.ts';
import type { Names } from '../history/names.ts';
import type { Level } from './level.ts';

/** A call that has ended. */
export interface EndedCall {
  readonly method: string;
  /** null: pruned. */
  readonly received: Known<'call.received'> | null;
  readonly completed: Known<'call.completed'>;
  /** What it is about, and what it made. */
  readonly streams: readonly string[];
  readonly objects: readonly NamedObject[];
}

export interface Item {
  readonly node: string;
  readonly record: JournalRecord;
  readonly hashes: RecordHashes | null;
  readonly object: NamedObject;
  /** Of a call.completed. */
  readonly call: EndedCall | null;
}

/** How a record is written; null where the format has nothing for it. */
export type Format = (item: Item, level: Level) => object | null;

/** (node, seq) is what a receiver knows a record by that comes twice. */
export const keyOf = ({ node, record }: Pick<Item, 'node' | 'record'>): string => `${node}/${record.seq}`;

const MS_NS = 1_000_000n;
export const msOf = (ns: bigint): number => Number(ns / MS_NS);

/** The call that this record ends; null for any other record. */
export const endedCall = (
  record: JournalRecord,
  names: Names,
  recordOf: (seq: number) => JournalRecord | undefined,
): EndedCall | null => {
  const completed = knownAs('call.completed', record);
  if (completed === null) return null;
  const first = record.call === null ? undefined : recordOf(record.call);
  const received = first === undefined ? null : knownAs('call.received', first);
  const request = received?.event.body.request;
  const streams = [...new Set([...(request === undefined ? [] : subjectsOf(request)), ...streamsOfAnswer(completed)])];
  return {
    method: request === undefined ? completed.event.body.method : rpcOf(request),
    received,
    completed,
    streams,
    objects: objectsOfCall(names, request, streamsAbout(request, completed, streams)),
  };
};
