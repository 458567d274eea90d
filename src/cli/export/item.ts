/**
 * A record with what formats have to know beside it: the call that it ends, and what the object that it is about is called.
 * Pure; formats are functions from this to an object, or to nothing where they have no word for it.
 */
import { subjectsOf } from '../../domain/call/catalogue.ts';
import { type CallRequest, rpcOf, subjectOf, type SubjectKind } from '../../domain/model/records.ts';
import type { RecordHashes } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { type Known, knownAs, streamsOfAnswer } from '../history/entries.ts';
import { type ContainerName, containerNameOf, type Names, type PodName, podNameOf } from '../history/names.ts';
import type { Level } from './level.ts';

/** An object by its id, and by its names where they are still known. */
export interface NamedObject {
  readonly kind: SubjectKind;
  /** null: of an image that a call named, and the node did not have. */
  readonly id: string | null;
  readonly pod: PodName | null;
  /** Of a container: of its pod. Of a pod: its own. */
  readonly podSandboxId: string | null;
  readonly container: ContainerName | null;
  readonly image: string | null;
}

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

export const namedObject = (names: Names, stream: string): NamedObject => {
  const { kind, id } = subjectOf(stream);
  const container = kind === 'container' ? names.container(id) : null;
  const podSandboxId = kind === 'sandbox' ? id : (container?.podSandboxId ?? null);
  return {
    kind,
    id,
    container,
    podSandboxId,
    pod: podSandboxId === null ? null : names.pod(podSandboxId),
    image: kind === 'image' ? names.image(id) : null,
  };
};

/** What a call named that made nothing, or nothing that is still known: a refused one is told with its object, too. */
const askedFor = (object: NamedObject, request: CallRequest): NamedObject => {
  if (request.method === 'RunPodSandbox' && object.id === request.newId && object.pod === null)
    return { ...object, pod: podNameOf(request.config.metadata ?? {}) };
  if (request.method === 'CreateContainer' && object.id === request.newId && object.container === null)
    return { ...object, container: containerNameOf(request), podSandboxId: request.podSandboxId };
  return object;
};

const imageAskedFor = (request: CallRequest): NamedObject[] =>
  request.method === 'PullImage' || request.method === 'RemoveImage'
    ? [{ kind: 'image', id: null, container: null, podSandboxId: null, pod: null, image: request.image }]
    : [];

const objectsOf = (names: Names, request: CallRequest | undefined, streams: readonly string[]): NamedObject[] => {
  const objects = streams.map((stream) => namedObject(names, stream));
  if (request === undefined) return objects;
  return objects.length === 0 ? imageAskedFor(request) : objects.map((object) => askedFor(object, request));
};

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
    objects: objectsOf(names, request, streams),
  };
};
