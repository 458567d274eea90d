/**
 * What effects the records of a turn let out: with their requests, made whole from the state after it, and what each of
 * them follows. The engine performs them, replay.ts holds them against those that were performed.
 */
import { failureOfTurn } from '../domain/deciding/turn-failed.ts';
import { messageOf } from '../domain/model/errors.ts';
import { effectId, type Sequenced } from '../domain/model/records.ts';
import type { NodeState, OpenEffect } from '../domain/model/state.ts';
import { shown } from '../domain/turn/after-a-throw.ts';
import { effectRequest, followedEffect } from '../domain/turn/effect-requests.ts';
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
    return { follows, request: stuck?.ok === false ? stuck : effectRequest(state, open) };
  } catch (error) {
    const what = `the request of ${open.intent.kind}`;
    report(`${what} on ${open.stream} could not be made: ${shown(error)}`);
    return { follows: null, request: { ok: false, failure: failureOfTurn(what, messageOf(error)) } };
  }
}
