/**
 * When the requests of effects are made, for whoever goes through decisions again: most in the turn that lets the effect
 * out, and those that are made of what another effect finds out after the turn that takes its end.
 */
import type { EffectRequest } from '../domain/deciding/effect-request.ts';
import type { Input, Sequenced } from '../domain/model/records.ts';
import type { NodeState } from '../domain/model/state.ts';
import type { ReleasedEffect } from './effect-runner.ts';
import { releasedBy, requestOnceFollowed } from './released-effects.ts';

export interface MadeRequest extends Pick<ReleasedEffect, 'id' | 'kind'> {
  readonly request: EffectRequest;
  /** The record that asks for the effect, and the input that this follows from. */
  readonly asked: Sequenced;
  readonly by: Sequenced<Input>;
}

type NotMade = Omit<MadeRequest, 'request'> & Pick<ReleasedEffect, 'follows'>;

/** Takes a turn: its input, what follows from that, and the state after it. Returns the requests that are made then. */
export function requestsInTurn(): (
  by: Sequenced<Input>,
  events: readonly Sequenced[],
  state: NodeState,
) => MadeRequest[] {
  let waiting: readonly NotMade[] = [];
  return (by, events, state) => {
    const released = events.flatMap((asked) =>
      releasedBy(asked, state, nobody).map(({ id, kind, request, follows }) => ({
        id,
        kind,
        request,
        follows,
        asked,
        by,
      })),
    );
    const due = waiting.filter(({ follows }) => by.type === 'effect.ended' && by.body.effect === follows);
    // In another life of the daemon nothing follows what this one had under way.
    const left = by.type === 'daemon.started' ? [] : waiting.filter((one) => !due.includes(one));
    waiting = [...left, ...released.filter(({ request }) => request === null)];
    const hasFailed = by.type === 'effect.ended' && by.body.failure !== undefined;
    const late = hasFailed ? [] : due.map((one) => ({ ...one, request: requestOnceFollowed(one.id, state, nobody) }));
    return [...released.flatMap(({ request, ...one }) => (request === null ? [] : [{ ...one, request }])), ...late];
  };
}

const nobody = (): void => undefined;
