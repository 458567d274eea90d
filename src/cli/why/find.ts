/**
 * What a person means by a thing: a record by its number; a pod, container or image that was there at the moment; one
 * that had gone by then; or a call that asked for what never came. Says who else could be meant.
 */
import { formatImageReference, parseImageReference } from '../../domain/image/reference.ts';
import type { PodSandboxConfig } from '../../domain/model/cri.ts';
import {
  type CallRequest,
  containerStream,
  imageStream,
  type RecordType,
  type Sequenced,
  sandboxStream,
  subjectOf,
} from '../../domain/model/records.ts';
import type { NodeState } from '../../domain/model/state.ts';
import type { BodyTest, BodyTests, MarkRule } from '../../journal/marks.ts';
import type { JournalReader } from '../../journal/reader.ts';
import { failure } from '../command.ts';
import { shortId } from '../format.ts';
import { commonPart, hasName, isOneOf, MAKINGS_OF } from '../history/makings.ts';
import { containersToRestore, imagesToUse, type Names, podNameOf, recordOf } from '../history/names.ts';
import { noRecord } from '../past/state.ts';
import { thingsOf } from '../past/things.ts';
import {
  couldBe,
  isIdPrefix,
  isNamed,
  isSameReference,
  NO_IMAGES,
  parseThingName,
  type PodThing,
  streamsOfId,
  type Thing,
  type ThingName,
  usedImages,
} from '../things.ts';
import { type EventOf, isOf, type Records, type RecordSearch } from './records.ts';

export type Found =
  | { readonly kind: 'thing'; readonly stream: string }
  | { readonly kind: 'call'; readonly received: EventOf<'call.received'> }
  | { readonly kind: 'record'; readonly event: Sequenced }
  | { readonly kind: 'nothing' };

export interface Sources {
  readonly reader: Pick<JournalReader, 'streamsBeginning' | 'makings' | 'headSeq' | 'page'>;
  readonly records: Records;
  readonly names: Names;
  readonly state: Readonly<NodeState>;
}

/** Where what has gone is looked for. */
type Searched = Pick<Sources, 'reader' | 'records'>;

const SANDBOX_REQUESTED: RecordType = 'sandbox.requested';
const RECORD = /^[1-9]\d{0,14}$/;

/** Why a record is not there to be explained, and what has it, where something has. */
const notExplained = ({ reader, records }: Searched, seq: number): Error => {
  const headSeq = reader.headSeq();
  if (seq > headSeq) return noRecord(seq, headSeq);
  if (seq > records.toSeq)
    return failure(`Record ${seq} is later than record ${records.toSeq}: --at ${seq} or later has it.`);
  if (recordOf(reader, seq) === undefined) return failure(`Record ${seq} is pruned: what it told is gone.`);
  return failure(`Record ${seq} cannot be read; see scribe verify.`);
};

export const findRecord = (sources: Searched, seq: number): Found => {
  const event = sources.records.at(seq);
  if (event === null) throw notExplained(sources, seq);
  return isOf(event, 'call.received') ? { kind: 'call', received: event } : { kind: 'record', event };
};

const streamOf = ({ kind, id }: Thing): string =>
  kind === 'pod' ? sandboxStream(id) : kind === 'container' ? containerStream(id) : imageStream(id);

/** Attempts at the same pod or container are one thing to people: the newest is meant. */
const identityOf = (thing: Thing): string => {
  switch (thing.kind) {
    case 'pod':
      return `pod:${thing.namespace}/${thing.name}`;
    case 'container':
      return `container:${thing.pod?.namespace ?? ''}/${thing.pod?.name ?? ''}/${thing.name}`;
    case 'image':
      return `image:${thing.id}`;
  }
};

const findPresent = ({ state }: Sources, name: ThingName): Thing | null => {
  // Of each map the newest comes last.
  const meant = thingsOf(state).filter((thing) => isNamed(name, thing));
  const identities = new Set(meant.map(identityOf));
  const newest = meant.at(-1) ?? null;
  const exact = meant.find(({ id }) => id === name.text);
  if (exact !== undefined || identities.size <= 1) return exact ?? newest;
  const shown = meant.map((thing) => `${identityOf(thing)} (${shortId(thing.id)})`).toReversed();
  throw failure(`${couldBe(name.text, shown)} Name one of them.`);
};

/** By the beginning of an id: of what is gone, too. */
const findById = ({ reader }: Sources, name: ThingName): Found | null => {
  const streams = streamsOfId(name, reader.streamsBeginning);
  const [stream, ...others] = streams;
  if (stream === undefined) return null;
  if (others.length === 0) return { kind: 'thing', stream };
  throw failure(`${couldBe(name.text, streams)} Give more of the id.`);
};

/** What a request that makes something would have made. */
const thingsOfRequest = (names: Names, request: CallRequest): readonly Thing[] => {
  const rest = { id: '', labels: {} };
  const podIn = ({ metadata = {} }: PodSandboxConfig): PodThing => ({ ...rest, kind: 'pod', ...podNameOf(metadata) });
  const containerIn = (pod: PodThing | null, name: string): Thing => ({
    ...{ ...rest, kind: 'container', name, pod, images: NO_IMAGES },
  });
  switch (request.method) {
    case 'RunPodSandbox':
      return [podIn(request.config)];
    case 'CreateContainer':
      return [containerIn(podOf(names, request.podSandboxId), request.config.metadata?.name ?? '')];
    case 'RestorePod': {
      const pod = podIn(request.config);
      return [pod, ...containersToRestore(request).map(([, { name }]) => containerIn(pod, name))];
    }
    default:
      return [];
  }
};

const podOf = (names: Names, id: string): PodThing | null => {
  const pod = names.pod(id);
  return pod === null ? null : { kind: 'pod', id, name: pod.name, namespace: pod.namespace, labels: {} };
};

/** What a record tells of by name. */
const thingsIn = (names: Names, event: Sequenced): readonly Thing[] => {
  const { id } = subjectOf(event.stream);
  if (isOf(event, 'call.received')) return thingsOfRequest(names, event.body.request);
  if (isOf(event, 'sandbox.requested'))
    return [{ kind: 'pod', id, ...podNameOf(event.body.config.metadata ?? {}), labels: {} }];
  if (isOf(event, 'image.pulled')) {
    const { repoTags, repoDigests } = event.body.image;
    return [{ kind: 'image', id, repoTags, repoDigests }];
  }
  if (!isOf(event, 'container.requested')) return [];
  const { config, podSandboxId } = event.body;
  const pod = podOf(names, podSandboxId);
  const container: Thing = {
    kind: 'container',
    id,
    name: config.metadata?.name ?? '',
    labels: {},
    pod,
    images: usedImages({ ...event.body, image: config.image }),
  };
  return [container];
};

const asksForImage = (event: Sequenced, { kind, text }: ThingName): boolean =>
  isOf(event, 'call.received') &&
  (kind === null || kind === 'image') &&
  imagesToUse(event.body.request).some((image) => isSameReference(text, image));

const holds = (text: string): BodyTest => ({ kind: 'holds', text: JSON.stringify(text), isExact: true });

/** What it may be called where it is an image. */
const imageTests = ({ text }: ThingName): readonly BodyTest[] => {
  const parsed = parseImageReference(text);
  return parsed.ok ? [...new Set([formatImageReference(parsed.value), text])].map(holds) : [];
};

/** They name no pod by an id. */
const NAMING_NO_POD_ID = [
  'RunPodSandbox',
  'RestorePod',
  'PullImage',
] as const satisfies readonly CallRequest['method'][];

/** Ids of all pods that were ever called like this. */
const podsCalled = ({ reader, records }: Searched, name: string): string[] => {
  const made = reader.makings({ ...MAKINGS_OF.pod, allOf: [[hasName('$.config', [name])]] }, records.toSeq);
  return made.map(({ stream }) => subjectOf(stream).id);
};

/**
 * Records that may tell of a thing by its name, never one too few. Containers of many pods are called the same: where the
 * pod is named, only those in pods of that name, or every one of a long history would have to be looked at.
 */
const tellingOf = (sources: Searched, name: ThingName): readonly MarkRule[] => {
  const images = imageTests(name);
  // In all of these, and so looked for first: one test of a body costs a third of four.
  const inAll: BodyTest = { kind: 'holds', text: JSON.stringify(commonPart(name.text)).slice(1, -1), isExact: true };
  const marks = (types: readonly RecordType[], ...allOf: BodyTests): MarkRule => ({
    types,
    allOf: [[inAll], ...allOf],
  });
  const ofImage = marks(['image.pulled'], images);
  if (name.kind === 'image') return [ofImage, marks(['call.received'], images)];
  const [last = name.text, pod] = name.text.split('/').toReversed();
  const named = [holds(last), ...images];
  const pods = pod === undefined ? null : podsCalled(sources, pod);
  const inPods = (path: string): BodyTests => (pods === null ? [] : [[isOneOf(path, pods)]]);
  const asked: BodyTests = inPods('$.request.podSandboxId').map((tests) => [
    ...tests,
    isOneOf('$.request.method', NAMING_NO_POD_ID),
    ...images,
  ]);
  return [
    ofImage,
    marks([SANDBOX_REQUESTED], [holds(last)]),
    marks(['container.requested'], [holds(last)], ...inPods('$.podSandboxId')),
    marks(['call.received'], named, ...asked),
  ];
};

/** The newest record that tells of it by name, gone or never there. */
const findByName = async (sources: Sources, name: ThingName, search: RecordSearch): Promise<Found | null> => {
  const { records, names } = sources;
  let served: Sequenced | null = null;
  const telling = await search.newest((event) => {
    const isIt = thingsIn(names, event).some((thing) => isNamed(name, thing)) || asksForImage(event, name);
    if (!isIt || !isOf(event, 'call.received')) return isIt;
    // Who asked for something and got it says nothing of what became of that, where its own records are left.
    if (records.endOf(event.seq)?.body.code !== 0) return true;
    served ??= event;
    return false;
  });
  const found = telling ?? served;
  if (found === null) return null;
  return isOf(found, 'call.received') ? { kind: 'call', received: found } : { kind: 'thing', stream: found.stream };
};

/** Neither a record nor an id: where nothing present is called like this, all records are looked through. */
export const mayBeGone = (text: string): boolean => !RECORD.test(text) && !isIdPrefix(parseThingName(text).text);

/**
 * Begins to look through the records for what may be gone, while it is not known yet whether anything present is meant; null where
 * nothing is looked for, or what to look for takes as long to learn as to know that.
 */
export const searchAhead = (sources: Searched, text: string): RecordSearch | null =>
  mayBeGone(text) && !text.includes('/') ? sources.records.search(tellingOf(sources, parseThingName(text))) : null;

/** No id is that short. */
const ZERO = /^0{1,3}$/;

/** @param ahead  of `searchAhead`; ended by whoever began it */
export const find = async (sources: Sources, text: string, ahead: RecordSearch | null = null): Promise<Found> => {
  if (ZERO.test(text)) throw failure('There is no record 0: the first is 1.');
  if (RECORD.test(text)) return findRecord(sources, Number(text));
  const name = parseThingName(text);
  const present = findPresent(sources, name);
  if (present !== null) return { kind: 'thing', stream: streamOf(present) };
  const byId = findById(sources, name);
  if (byId !== null) return byId;
  const search = ahead ?? sources.records.search(tellingOf(sources, name));
  return (await findByName(sources, name, search)) ?? { kind: 'nothing' };
};
