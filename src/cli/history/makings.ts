/**
 * How a choice of objects is put to a journal: the records that tell of their making, which a selection learns from, and the
 * calls that asked for one which never came to be. Narrowed by names, ids and namespaces in SQL: may find too much, never
 * too little.
 */
import { containerStream, imageStream, sandboxStream, subjectOf } from '../../domain/model/records.ts';
import type { BodyTest, BodyTests, MarkRule } from '../../journal/marks.ts';
import type { MakingQuery } from '../../journal/search.ts';
import type { JournalReader } from '../../journal/reader.ts';
import type { JournalRecord } from '../../journal/types.ts';
import { isIdPrefix, type LabelTerm, type Thing } from '../things.ts';
import { knownAs, RECEIVED } from './entries.ts';
import { firstOf } from './names.ts';
import type { Selection, Wanted } from './selection.ts';

export const isOneOf = (path: string, texts: readonly string[]): BodyTest => ({ kind: 'isOneOf', path, texts });

/** What a pod may be called that is chosen as NAME or NAMESPACE/NAME: all of it, or what is behind a slash. */
const podNamesIn = (text: string): string[] => {
  const parts = text.split('/');
  return parts.map((_, index) => parts.slice(index).join('/'));
};

/** @param config  path of the pod's or container's configuration in the body */
export const hasName = (config: string, names: readonly string[]): BodyTest =>
  isOneOf(`${config}.metadata.name`, names);
const hasNamespace = (config: string, { namespace = null }: Wanted): BodyTests =>
  namespace === null ? [] : [[isOneOf(`${config}.metadata.namespace`, [namespace])]];

/** All that tell of a making, by what was made. */
export const MAKINGS_OF = {
  pod: { streamsBeginning: sandboxStream(''), type: 'sandbox.requested', only: 'first' },
  container: { streamsBeginning: containerStream(''), type: 'container.requested', only: 'first' },
  /** Tags and digests come and go. */
  image: { streamsBeginning: imageStream(''), type: 'image.pulled', only: 'all' },
} as const satisfies Record<Thing['kind'], Omit<MakingQuery, 'allOf'>>;

/** Of all these streams, and of the one whose id begins as was asked for. */
const byIdOrName = (
  query: MakingQuery,
  streamOf: (id: string) => string,
  text: string,
  isNamed: BodyTest,
): MakingQuery[] => [
  ...(isIdPrefix(text) ? [{ ...query, streamsBeginning: streamOf(text) }] : []),
  { ...query, allOf: [[isNamed], ...query.allOf] },
];

/** What a reference of an image, or an id, has in common with every other way of naming the same image. */
export const commonPart = (image: string): string =>
  image
    .replace(/^sha256:/, '')
    .replace(/@.*$/s, '')
    .replace(/^.*\//s, '')
    .replace(/:.*$/s, '');

/** How a container's image is asked for, in its configuration: by kubelet as an id and by its name. */
const ASKED_IMAGES = ['image.image', 'image.userSpecifiedImage'];

const namesImage = (path: string, image: string): BodyTest => ({ kind: 'holds', path, text: commonPart(image) });

const labelText = ({ key, value }: LabelTerm): string =>
  `${JSON.stringify(key)}:${value === null ? '' : JSON.stringify(value)}`;

/**
 * One of the labels, somewhere in the body: whatever has none of them, in a pod without them, is not chosen, and so need not
 * be learnt. Nothing, where a label must be lacking, or where pods are chosen by what else they are: then theirs are needed.
 */
const hasSomeLabel = ({ pod = null, namespace = null, labels = [] }: Wanted): BodyTest[] => {
  if (pod !== null || namespace !== null || labels.some(({ negated }) => negated)) return [];
  return labels.map((term) => ({ kind: 'holds', text: labelText(term) }));
};

const podMakings = (wanted: Wanted): MakingQuery[] => {
  const { pod = null } = wanted;
  const labelled = hasSomeLabel(wanted);
  const allOf = [...(labelled.length === 0 ? [] : [labelled]), ...hasNamespace('$.config', wanted)];
  const query = { ...MAKINGS_OF.pod, allOf };
  if (pod === null) return [query];
  return byIdOrName(query, sandboxStream, pod, hasName('$.config', podNamesIn(pod)));
};

/** Made from an image, or with it mounted: by its id where that is known, or as it was asked for. */
const usesOfImage = (image: string, ids: readonly string[]): BodyTests => {
  const byId = ids.length === 0 ? [] : [isOneOf('$.imageId', ids)];
  const mounts: BodyTest = { kind: 'holds', text: '"mountedImages"' };
  return [
    // To look for a word in a body takes a fifth of the time that it takes to look for a value.
    [{ kind: 'holds', text: commonPart(image) }, mounts, ...byId],
    [...byId, mounts, ...ASKED_IMAGES.map((path) => namesImage(`$.config.${path}`, image))],
  ];
};

const containerMakings = ({ wanted, pods, images }: Selection): MakingQuery[] => {
  const { pod = null, container = null, namespace = null, image = null } = wanted;
  const isInPods = pod !== null || namespace !== null;
  if (isInPods && pods().length === 0) return [];
  const inPod: BodyTests = isInPods ? [[isOneOf('$.podSandboxId', pods())]] : [];
  const labelled = hasSomeLabel(wanted);
  const orOfPods = pods().length === 0 ? [] : [isOneOf('$.podSandboxId', pods())];
  const withLabels: BodyTests = labelled.length === 0 ? [] : [[...labelled, ...orOfPods]];
  const fromImage = image === null ? [] : usesOfImage(image, images());
  // A pod is there before its containers.
  const laterThan = isInPods ? pods().map(sandboxStream) : [];
  const query = { ...MAKINGS_OF.container, allOf: [...inPod, ...withLabels, ...fromImage], laterThan };
  if (container === null) return [query];
  return byIdOrName(query, containerStream, container, hasName('$.config', [container]));
};

/** Whether a container is chosen by what its pod is, too. */
const hangsOnPods = ({ pod = null, namespace = null, labels = [] }: Wanted): boolean =>
  pod !== null || namespace !== null || labels.length > 0;

const learnFound = (
  reader: JournalReader,
  selection: Selection,
  toSeq: number,
  queries: readonly MakingQuery[],
): JournalRecord[] => {
  const found = queries.flatMap((query) => reader.makings(query, toSeq));
  for (const record of found) selection.learn(record);
  return found;
};

const IMAGES: readonly MakingQuery[] = [{ ...MAKINGS_OF.image, allOf: [] }];

/** Tags and digests of each image, by its id, whenever it had them. */
export const imageNames = (reader: JournalReader, toSeq: number): ReadonlyMap<string, readonly string[]> => {
  const names = new Map<string, readonly string[]>();
  for (const record of IMAGES.flatMap((query) => reader.makings(query, toSeq))) {
    const pulled = knownAs('image.pulled', record)?.event.body.image;
    if (pulled === undefined) continue;
    const { id } = subjectOf(record.stream);
    names.set(id, [...(names.get(id) ?? []), ...pulled.repoTags, ...pulled.repoDigests]);
  }
  return names;
};

/**
 * Has the selection learn which objects it is about, of all that were made up to a record. Gives the calls that may have named a
 * chosen image when they made a container, whichever image it was then made from.
 */
export const learnMakings = (reader: JournalReader, selection: Selection, toSeq: number): number[] => {
  const { container = null, image = null } = selection.wanted;
  if (image !== null) learnFound(reader, selection, toSeq, IMAGES);
  else if (container === null || hangsOnPods(selection.wanted))
    learnFound(reader, selection, toSeq, podMakings(selection.wanted));
  // Which of them are chosen hangs on what was just learnt.
  const made = learnFound(reader, selection, toSeq, containerMakings(selection));
  return image === null ? [] : made.flatMap(({ call }) => call ?? []);
};

/**
 * The same for those alone that somebody names by their streams, each once, with its pod before it: for a look at a small part
 * of a long history.
 */
export const learnOf = (reader: JournalReader, selection: Selection): ((streams: Iterable<string>) => void) => {
  const learnt = new Set<string>();
  if (selection.wanted.image != null) learnFound(reader, selection, reader.headSeq(), IMAGES);
  const learn = (stream: string): void => {
    const { kind } = subjectOf(stream);
    if ((kind !== 'sandbox' && kind !== 'container') || learnt.has(stream)) return;
    learnt.add(stream);
    const making = firstOf(reader, stream);
    if (making === undefined) return;
    const container = knownAs('container.requested', making);
    if (container !== null) learn(sandboxStream(container.event.body.podSandboxId));
    selection.learn(making);
  };
  return (streams) => {
    for (const stream of streams) learn(stream);
  };
};

/** Requests that name a chosen image; of them nothing else may tell which one it was. */
export const imageRules = ({ image = null }: Wanted): readonly MarkRule[] => {
  if (image === null) return [];
  const paths = [
    '$.request.image',
    ...ASKED_IMAGES.map((path) => `$.request.config.${path}`),
    // Of all containers that a pod was to be restored with.
    '$.request.containerConfigs',
  ];
  const named = paths.map((path) => namesImage(path, image));
  // What costs least comes first.
  return [{ types: [RECEIVED], allOf: [[{ kind: 'holds', text: commonPart(image) }], named] }];
};

/** Of one that never came to be no record is left by which its id was learnt. */
const hasNewId = (text: string): BodyTest[] =>
  isIdPrefix(text) ? [{ kind: 'holds', path: '$.request.newId', text }] : [];

const hasLabel = (term: LabelTerm): BodyTest => ({
  kind: 'holds',
  path: '$.request.config.labels',
  text: labelText(term),
});

/** Calls that asked for a chosen pod or container, by its name: of one that never came to be nothing else tells. */
export const askedRules = (wanted: Wanted): readonly MarkRule[] => {
  const { pod = null, container = null, image = null, labels = [] } = wanted;
  if (image !== null) return [];
  const asked = (method: string, ...allOf: BodyTests): MarkRule => ({
    types: [RECEIVED],
    allOf: [[isOneOf('$.request.method', [method])], ...allOf],
  });
  const config = '$.request.config';
  // It asks for a pod and its containers in one; there are few of them.
  const restored = asked('RestorePod');
  if (container !== null)
    return [asked('CreateContainer', [hasName(config, [container]), ...hasNewId(container)]), restored];
  const named: BodyTests = pod === null ? [] : [[hasName(config, podNamesIn(pod)), ...hasNewId(pod)]];
  const held = labels.filter(({ negated }) => !negated).map(hasLabel);
  // A container may have of the labels what its pod lacks; of a pod that has all of them it is found by the pod's id.
  const ofContainers = labels.length === 0 ? [] : [asked('CreateContainer', ...(held.length === 0 ? [] : [held]))];
  const ofPods = asked('RunPodSandbox', ...named, ...hasNamespace(config, wanted), ...held.map((one) => [one]));
  return [ofPods, ...ofContainers, restored];
};
