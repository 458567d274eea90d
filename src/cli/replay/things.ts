/** How a thing of a state, or a field of it, is named while stepping and in --break-on: web, container/4f2a, container/4f2a.phase.kind. Pure. */
import { subjectOf } from '../../domain/model/records.ts';
import type { NodeState } from '../../domain/model/state.ts';
import { namesOnPath } from '../../domain/values/json-paths.ts';
import { fieldAt, objectIn, thingsOf } from '../past/things.ts';
import { isContainerNamed, isImageNamed, isPodNamed, type Thing } from '../things.ts';

export interface Named {
  /** By which it is known for ever: container/ID. */
  readonly stream: string;
  readonly value: unknown;
}

const KINDS = { pod: 'sandbox', container: 'container', image: 'image' } as const satisfies Record<
  Thing['kind'],
  string
>;

const isNamed = (text: string, thing: Thing): boolean => {
  switch (thing.kind) {
    case 'pod':
      return isPodNamed(text, thing);
    case 'container':
      return isContainerNamed(text, thing);
    case 'image':
      return isImageNamed(text, thing);
  }
};

const PREFIX = /^(pod|sandbox|container|image)\/(.+)$/s;

/** The first that is meant by a name, an id, the beginning of one, each with or without its kind; null: none. */
export const thingNamed = (state: Readonly<NodeState>, text: string): Named | null => {
  const [, kind, name = text] = PREFIX.exec(text) ?? [];
  const wanted = kind === 'sandbox' ? 'pod' : kind;
  const found = thingsOf(state).find(
    (thing) => (wanted === undefined || thing.kind === wanted) && (thing.id === name || isNamed(name, thing)),
  );
  if (found === undefined) return null;
  const stream = `${KINDS[found.kind]}/${found.id}`;
  return { stream, value: objectIn(state, subjectOf(stream)) };
};

/** A thing and a field in it; the node's own fields begin with "node.". */
export interface FieldName {
  readonly thing: string;
  readonly field: readonly string[];
}

/** null: that is no field. An id and a kind have no dot in them. */
export const fieldNamed = (text: string): FieldName | null => {
  const [, thing, field] = /^((?:pod|sandbox|container|image)\/[^.]+|node)\.(.+)$/s.exec(text) ?? [];
  const names = namesOnPath(field ?? '');
  return thing === undefined || names === null ? null : { thing, field: names };
};

/** undefined: there is no such thing now, or it has no such field. */
export const fieldOf = (state: Readonly<NodeState>, { thing, field }: FieldName): unknown => {
  const { facts, network, podCidr, nriPlugins, journalDoubts } = state;
  const whole =
    thing === 'node' ? { facts, network, podCidr, nriPlugins, journalDoubts } : thingNamed(state, thing)?.value;
  return fieldAt(whole, field);
};
