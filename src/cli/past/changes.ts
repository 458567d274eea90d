/** What differs between two states of the node: things that came, went or changed, field by field. Pure. */
import { containerStream, imageStream, NODE_STREAM, sandboxStream, subjectOf } from '../../domain/model/records.ts';
import { containerExitOf, containerStateOf } from '../../domain/model/container-state.ts';
import type { Container, Image, NodeState, PodSandbox } from '../../domain/model/state.ts';
import { isObject, sameJson } from '../../domain/values/json.ts';
import { memberPath } from '../../domain/values/json-paths.ts';
import { choosesAll, isMeant, type ThingFilter } from '../things.ts';
import { podStateOf, thingIn } from './things.ts';

export interface FieldChange {
  /** As the state names it: phase.exit.exitStatus, config.labels["app.kubernetes.io/name"]. */
  readonly field: string;
  /** undefined: it was not there. */
  readonly before: unknown;
  readonly after: unknown;
}

export interface Change {
  readonly what: 'came' | 'went' | 'changed';
  readonly stream: string;
  /** In words, of what came or went. */
  readonly state: string;
  readonly fields: readonly FieldChange[];
}

/** Fields of two values that differ; lists are compared as a whole. */
const fieldChanges = (before: unknown, after: unknown, field = ''): FieldChange[] => {
  if (sameJson(before, after)) return [];
  if (!isObject(before) || !isObject(after)) return [{ field, before, after }];
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return [...names].flatMap((name) => fieldChanges(before[name], after[name], memberPath(field, name)));
};

interface Sort<T> {
  readonly of: (state: Readonly<NodeState>) => ReadonlyMap<string, T>;
  readonly stream: (id: string) => string;
  readonly words: (item: T) => string;
}

const podWords = (pod: PodSandbox): string => podStateOf(pod) ?? 'being made';

const containerWords = (container: Container): string => {
  const exit = containerExitOf(container);
  const state = containerStateOf(container) ?? 'being made';
  return exit === null ? state : `${state}, exit ${exit.exitStatus} ${exit.reason}`;
};

const imageWords = ({ content }: Image): string => content.repoTags.join(', ');

const changesOf = <T>({ of, stream, words }: Sort<T>, a: Readonly<NodeState>, b: Readonly<NodeState>): Change[] => {
  const [before, after] = [of(a), of(b)];
  const came = [...after].filter(([id]) => !before.has(id));
  const went = [...before].filter(([id]) => !after.has(id));
  const stayed = [...before].flatMap(([id, was]) => {
    const is = after.get(id);
    const fields = is === undefined ? [] : fieldChanges(was, is);
    return is === undefined || fields.length === 0
      ? []
      : [{ what: 'changed' as const, stream: stream(id), state: words(is), fields }];
  });
  return [
    ...came.map(([id, item]) => ({ what: 'came' as const, stream: stream(id), state: words(item), fields: [] })),
    ...went.map(([id, item]) => ({ what: 'went' as const, stream: stream(id), state: words(item), fields: [] })),
    ...stayed,
  ];
};

/** What holds for the node as a whole. */
const nodeFields = ({ facts, network, podCidr, nriPlugins = [], journalDoubts = [] }: Readonly<NodeState>) => ({
  facts,
  network,
  podCidr,
  nriPlugins: Object.fromEntries(nriPlugins.map((plugin) => [`${plugin.index}-${plugin.name}`, plugin])),
  journalDoubts,
});

/** Pods first, then containers, images and the node. */
export const changesBetween = (a: Readonly<NodeState>, b: Readonly<NodeState>): Change[] => {
  const node = fieldChanges(nodeFields(a), nodeFields(b));
  return [
    ...changesOf({ of: ({ sandboxes }) => sandboxes, stream: sandboxStream, words: podWords }, a, b),
    ...changesOf({ of: ({ containers }) => containers, stream: containerStream, words: containerWords }, a, b),
    ...changesOf({ of: ({ images }) => images, stream: imageStream, words: imageWords }, a, b),
    ...(node.length === 0 ? [] : [{ what: 'changed' as const, stream: NODE_STREAM, state: '', fields: node }]),
  ];
};

/**
 * The changes of what a filter chooses, by what it was at either moment: labels and tags change, too. The node is nothing that
 * can be chosen.
 */
export const chosenChanges = (filter: ThingFilter, a: Readonly<NodeState>, b: Readonly<NodeState>): Change[] => {
  const changes = changesBetween(a, b);
  if (choosesAll(filter)) return changes;
  return changes.filter(({ stream }) =>
    [a, b].some((state) => {
      const thing = thingIn(state, subjectOf(stream));
      return thing !== null && isMeant(filter, thing);
    }),
  );
};
