/** What --break-on means: at which decisions to stop. */
import type { NodeState } from '../../domain/model/state.ts';
import type { Replayed } from '../../engine/replay.ts';
import { misuse } from '../command.ts';
import type { Start } from './source.ts';
import { type FieldName, fieldNamed, fieldOf } from './things.ts';

/** Has to see every decision in order: whether it is one to stop at. */
export type Break = (replayed: Replayed) => boolean;

/** Where replaying begins may be behind what was pruned, with things that are there already. */
export type BreakFrom = (start: Start) => Break;

export const differs: Break = ({ differences }) => differences.length > 0;

const TYPE = /^[a-z]+(\.[a-z]+)+$/;
const METHOD = /^[A-Z][A-Za-z]+$/;

const changes = (field: FieldName, start: Readonly<NodeState>): Break => {
  let last = JSON.stringify(fieldOf(start, field));
  return ({ state }) => {
    const now = JSON.stringify(fieldOf(state, field));
    const isOther = now !== last;
    last = now;
    return isOther;
  };
};

/** TYPE is of a record, the method of a call, or the kind of an effect; FIELD is that of a thing. Throws for anything else. */
export const breakOn = (text: string): BreakFrom => {
  const field = fieldNamed(text);
  if (field !== null) return ({ state }) => changes(field, state());
  if (TYPE.test(text))
    return () =>
      ({ input, recorded }) =>
        [input, ...recorded].some(({ type }) => type === text);
  if (METHOD.test(text)) return () => (replayed) => concernsOf(replayed).includes(text);
  throw misuse(
    `--break-on ${text}: that is neither a type of record (container.exited), nor a method or effect (StopContainer, CreateTask), nor a field (container/4f2a.phase, node.network).`,
  );
};

/** Method of the call and kinds of the effects that a decision is about. */
const concernsOf = ({ input, recorded }: Replayed): string[] =>
  [input, ...recorded].flatMap((record) => {
    if (record.type === 'call.received') return [record.body.request.method];
    if (record.type === 'call.completed') return [record.body.method];
    if (record.type === 'effect.ended') return [record.body.kind];
    return record.type === 'effects.requested' ? record.body.effects.map(({ kind }) => kind) : [];
  });
