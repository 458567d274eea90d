/**
 * What effects the records of a turn let out: with their requests, made whole from the state after it, and what each of
 * them follows. The engine performs them, replay.ts holds them against those that were performed.
 */
import { failureOfTurn } from '../domain/deciding/turn-failed.ts';
import { messageOf } from '../domain/model/errors.ts';
import { effectId, type Sequenced } from '../domain/model/records.ts';
import type { NodeState, OpenEffect } from '../domain/model/state.ts';
import { told } from '../domain/turn/after-a-throw.ts';
import { bug, type EffectRequest } from '../domain/deciding/effect-request.ts';
import { effectRequest, followedEffect, isMadeOfFollowed } from '../domain/turn/effect-requests.ts';
import type { ReleasedEffect } from './effect-runner.ts';

/** Those that a record requests; `state` is that after its turn. `report` is told what could not be made. */
export function releasedBy(record: Sequenced, state: NodeState, report: (message: string) => void): ReleasedEffect[] {
  if (record.type !== 'effects.requested') return [];
  // A timer that something else fulfilled is pointless already in the turn that asked for it.
  const together = record.body.effects.flatMap((_, index) => state.effects.get(effectId(record.seq, index)) ?? []);
  const released = new Map<string, ReleasedEffect>();
  for (const open of together) {
    const { id, intent, call } = open;
    released.set(id, { id, kind: intent.kind, call, ...toldOf(open, state, released, report) });
  }
  return [...released.values()];
}

/** An effect that no request can be made for fails; what its turn decided stands. */
function toldOf(
  open: OpenEffect,
  state: NodeState,
  before: ReadonlyMap<string, ReleasedEffect>,
  report: (message: string) => void,
): Pick<ReleasedEffect, 'request' | 'follows'> {
  try {
    const follows = followedEffect(state, open);
    // What follows an effect of the same record that no request can be made for fails as that does.
    const stuck = follows === null ? undefined : before.get(follows)?.request;
    if (stuck?.ok === false) return { follows, request: stuck };
    return { follows, request: follows !== null && isMadeOfFollowed(open) ? null : effectRequest(state, open) };
  } catch (error) {
    return { follows: null, request: notMade(open, error, report) };
  }
}

/** Of one that was released without: `state` is that after the turn that took the end of the effect that it follows. */
export function requestOnceFollowed(
  effect: string,
  state: NodeState,
  report: (message: string) => void,
): EffectRequest {
  const open = state.effects.get(effect);
  if (open === undefined) return bug(`effect ${effect} is over before it has begun`);
  try {
    return effectRequest(state, open);
  } catch (error) {
    return notMade(open, error, report);
  }
}

function notMade({ intent, stream }: OpenEffect, error: unknown, report: (message: string) => void): EffectRequest {
  const what = `the request of ${intent.kind}`;
  report(`${what} on ${stream} could not be made: ${told(error)}`);
  return { ok: false, failure: failureOfTurn(what, messageOf(error)) };
}
