/**
 * The records that an answer is made from: those of a thing, of a call, or what led to one, up to the moment that is
 * asked about. Reads by index, so that it is as quick in a long journal as in a short one.
 */
import { type DomainRecord, NODE_STREAM, type RecordType, type Sequenced } from '../../domain/model/records.ts';
import type { MarkRule } from '../../journal/marks.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { RecordPlace } from '../../journal/types.ts';
import { readableEvent } from '../history/entries.ts';
import { recordOf } from '../history/names.ts';
import { windowsOf } from '../history/windows.ts';

export type EventOf<T extends RecordType> = Sequenced<Extract<DomainRecord, { type: T }>>;

export interface Records {
  /** The last record that counts. */
  readonly toSeq: number;
  /** null: pruned, of the journal's own, later, or not as it was written. */
  readonly at: (seq: number) => Sequenced | null;
  /** Of a stream, in order: its beginning and its end where it is long. */
  readonly ofStream: (stream: string) => readonly Sequenced[];
  /** Done on behalf of a call, the call itself included. */
  readonly ofCall: (call: number) => readonly Sequenced[];
  /** The call on whose behalf a record is; null: none, or it is pruned. */
  readonly callOf: (event: Sequenced) => EventOf<'call.received'> | null;
  /** How a call ended; null: it is under way. */
  readonly endOf: (call: number) => EventOf<'call.completed'> | null;
  /** The newest of these types on the node's own stream, before a record. */
  readonly newestOfNode: (types: readonly RecordType[], beforeSeq: number) => Sequenced | null;
  /** Among the newest records, those that rules mark, in order. */
  readonly newest: (rules: readonly MarkRule[]) => readonly Sequenced[];
  /** For what no index finds. Another thread begins at once. */
  readonly search: (rules: readonly MarkRule[]) => RecordSearch;
}

export interface RecordSearch {
  /** The newest of what the rules mark that it is; asked for once. */
  readonly newest: (isIt: (event: Sequenced) => boolean) => Promise<Sequenced | null>;
  /** Of one that nobody asks any more. */
  readonly end: () => void;
}

/** Of each end of a long stream: a container that is probed for weeks has hundreds of thousands. */
const ENDS_MAX = 400;
/** Records that are looked through at once, from the newest on. */
const SEARCHED = 131_072;
/** Of the newest records so many are looked through for what goes on now: some 20 ms. */
const NEWEST = 65_536;
/** Records of the node's stream that are looked through for the newest of a kind. */
const NODE_MAX = 20_000;

type Source = Pick<JournalReader, 'placesOfStream' | 'placesOfCall' | 'page' | 'marked' | 'markedWindows'>;

export const isOf = <T extends RecordType>(event: Sequenced | null | undefined, type: T): event is EventOf<T> =>
  event?.type === type;

/** The first of a type. */
export const firstOf = <T extends RecordType>(events: readonly Sequenced[], type: T): EventOf<T> | null =>
  (events.find((event) => event.type === type) as EventOf<T> | undefined) ?? null;

/** The last of a type. */
export const lastOf = <T extends RecordType>(events: readonly Sequenced[], type: T): EventOf<T> | null =>
  (events.findLast((event) => event.type === type) as EventOf<T> | undefined) ?? null;

/** @param searchedFrom  where whoever searches has not searched yet */
export const createRecords = (reader: Source, toSeq: number, searchedFrom = 1): Records => {
  const known = new Map<number, Sequenced | null>();
  let nodePlaces: readonly RecordPlace[] | null = null;

  const at = (seq: number): Sequenced | null => {
    if (seq > toSeq) return null;
    const found = known.get(seq);
    if (found !== undefined) return found;
    const record = recordOf(reader, seq);
    const event = record === undefined ? null : readableEvent(record);
    known.set(seq, event);
    return event;
  };

  const read = (places: readonly RecordPlace[]): Sequenced[] => {
    const past = places.filter(({ seq }) => seq <= toSeq);
    const ends = past.length <= 2 * ENDS_MAX ? past : [...past.slice(0, ENDS_MAX), ...past.slice(-ENDS_MAX)];
    return ends.flatMap(({ seq }) => at(seq) ?? []);
  };

  return {
    toSeq,
    at,
    ofStream: (stream) => read(reader.placesOfStream(stream)),
    ofCall: (call) => read(reader.placesOfCall(call)),
    callOf: ({ call }) => {
      const event = call === null ? null : at(call);
      return isOf(event, 'call.received') ? event : null;
    },
    endOf: (call) => lastOf(read(reader.placesOfCall(call)), 'call.completed'),
    newestOfNode: (types, beforeSeq) => {
      nodePlaces ??= reader.placesOfStream(NODE_STREAM);
      const places = nodePlaces.filter(({ seq }) => seq < beforeSeq && seq <= toSeq);
      for (const { seq } of places.slice(-NODE_MAX).toReversed()) {
        const event = at(seq);
        if (event !== null && types.includes(event.type)) return event;
      }
      return null;
    },
    newest: (rules) =>
      reader
        .marked(rules, Math.max(1, toSeq - NEWEST + 1), toSeq)
        .flatMap(({ seq, type }) => (type === null ? [] : (at(seq) ?? []))),
    search: (rules) => {
      const order = { isReversed: true, windowMin: SEARCHED };
      const windows = [...windowsOf({ fromSeq: searchedFrom, toSeq }, order, SEARCHED)];
      const search = reader.markedWindows(rules, windows);
      // What has come and gone is seldom among the newest.
      search.beginAhead();
      const newest: RecordSearch['newest'] = async (isIt) => {
        for await (const { found } of search.windows()) {
          for (const { seq, type } of found.toReversed()) {
            const event = type === null ? null : at(seq);
            if (event !== null && isIt(event)) return event;
          }
        }
        return null;
      };
      return { newest, end: search.end };
    },
  };
};
