/**
 * How a choice of objects is put to a journal: the records that tell of their making, which a selection learns from, and the
 * calls that asked for one which never came to be. Narrowed by names, ids and namespaces in SQL: may find too much, never
 * too little.
 */
import { containerStream, imageStream, sandboxStream } from '../../domain/model/records.ts';
import type { BodyTest, BodyTests, MarkRule } from '../../journal/marks.ts';
import type { MakingQuery } from '../../journal/search.ts';
import type { JournalReader } from '../../journal/reader.ts';
import { isIdPrefix, type LabelTerm } from '../things.ts';
import { RECEIVED } from './entries.ts';
import type { Selection, Wanted } from './selection.ts';

const isOneOf = (path: string, texts: readonly string[]): BodyTest => ({ kind: 'isOneOf', path, texts });

/** What a pod may be called that is chosen as NAME or NAMESPACE/NAME: all of it, or what is behind a slash. */
const podNamesIn = (text: string): string[] => {
  const parts = text.split('/');
  return parts.map((_, index) => parts.slice(index).join('/'));
};

/** @param config  path of the pod's or container's configuration in the body */
const hasName = (config: string, names: readonly string[]): BodyTest => isOneOf(`${config}.metadata.name`, names);
const hasNamespace = (config: string, { namespace = null }: Wanted): BodyTests =>
  namespace === null ? [] : [[isOneOf(`${config}.metadata.namespace`, [namespace])]];

/** Of all these streams, and of the one whose id begins as was asked for. */
const byIdOrName = (
  query: Omit<MakingQuery, 'streamsBeginning'>,
  streamOf: (id: string) => string,
  text: string,
  isNamed: BodyTest,
): MakingQuery[] => [
  ...(isIdPrefix(text) ? [{ ...query, streamsBeginning: streamOf(text) }] : []),
  { ...query, streamsBeginning: streamOf(''), allOf: [[isNamed], ...query.allOf] },
];

const podMakings = (wanted: Wanted): MakingQuery[] => {
  const { pod = null } = wanted;
  const query = { type: 'sandbox.requested', only: 'first', allOf: hasNamespace('$.config', wanted) } as const;
  if (pod === null) return [{ ...query, streamsBeginning: sandboxStream('') }];
  return byIdOrName(query, sandboxStream, pod, hasName('$.config', podNamesIn(pod)));
};

const containerMakings = ({ wanted, pods, images }: Selection): MakingQuery[] => {
  const { pod = null, container = null, namespace = null, image = null } = wanted;
  const isInPods = pod !== null || namespace !== null;
  if ((isInPods && pods().length === 0) || (image !== null && images().length === 0)) return [];
  const inPod: BodyTests = isInPods ? [[isOneOf('$.podSandboxId', pods())]] : [];
  const fromImage: BodyTests =
    image === null ? [] : [[isOneOf('$.imageId', images()), { kind: 'holds', text: '"mountedImages"' }]];
  // A pod is there before its containers.
  const laterThan = isInPods ? pods().map(sandboxStream) : [];
  const query = { type: 'container.requested', only: 'first', allOf: [...inPod, ...fromImage], laterThan } as const;
  if (container === null) return [{ ...query, streamsBeginning: containerStream('') }];
  return byIdOrName(query, containerStream, container, hasName('$.config', [container]));
};

/** Whether a container is chosen by what its pod is, too. */
const hangsOnPods = ({ pod = null, namespace = null, labels = [] }: Wanted): boolean =>
  pod !== null || namespace !== null || labels.length > 0;

/** Has the selection learn which objects it is about, of all that were made up to a record. */
export const learnMakings = (reader: JournalReader, selection: Selection, toSeq: number): void => {
  const { container = null, image = null } = selection.wanted;
  const learn = (queries: readonly MakingQuery[]): void => {
    for (const query of queries) for (const record of reader.makings(query, toSeq)) selection.learn(record);
  };
  if (image !== null) learn([{ streamsBeginning: imageStream(''), type: 'image.pulled', only: 'all', allOf: [] }]);
  else if (container === null || hangsOnPods(selection.wanted)) learn(podMakings(selection.wanted));
  // Which of them are chosen hangs on what was just learnt.
  learn(containerMakings(selection));
};

/** Of one that never came to be no record is left by which its id was learnt. */
const hasNewId = (text: string): BodyTest[] =>
  isIdPrefix(text) ? [{ kind: 'holds', path: '$.request.newId', text }] : [];

const hasLabel = ({ key, value }: LabelTerm): BodyTest => {
  const text = `${JSON.stringify(key)}:${value === null ? '' : JSON.stringify(value)}`;
  return { kind: 'holds', path: '$.request.config.labels', text };
};

/** Calls that asked for a chosen pod or container, by its name: of one that never came to be nothing else tells. */
export const askedRules = (wanted: Wanted): readonly MarkRule[] => {
  const { pod = null, container = null, image = null, labels = [] } = wanted;
  if (image !== null) return [];
  const asked = (method: string, ...allOf: BodyTests): MarkRule => ({
    types: [RECEIVED],
    allOf: [[isOneOf('$.request.method', [method])], ...allOf],
  });
  const config = '$.request.config';
  if (container !== null) return [asked('CreateContainer', [hasName(config, [container]), ...hasNewId(container)])];
  const named: BodyTests = pod === null ? [] : [[hasName(config, podNamesIn(pod)), ...hasNewId(pod)]];
  const held = labels.filter(({ negated }) => !negated).map(hasLabel);
  // A container may have of the labels what its pod lacks; of a pod that has all of them it is found by the pod's id.
  const ofContainers = labels.length === 0 ? [] : [asked('CreateContainer', ...(held.length === 0 ? [] : [held]))];
  const ofPods = asked('RunPodSandbox', ...named, ...hasNamespace(config, wanted), ...held.map((one) => [one]));
  return [ofPods, ...ofContainers];
};
