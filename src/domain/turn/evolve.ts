/**
 * evolve(state, record): the one way in which the write state changes. It only writes down what a record says; it
 * decides nothing, and every record changes only the object its stream tells of (and the bookkeeping of calls and
 * effects), so that the streams of objects that are gone can be pruned without changing what the rest folds to (C11).
 */
import { evolveCall } from '../call/evolve.ts';
import { cutShortContainer, evolveContainer } from '../container/evolve.ts';
import { evolveEffects } from '../deciding/open-effects.ts';
import { evolveImage } from '../image/evolve.ts';
import { evolveNode } from '../node/evolve.ts';
import { cutShort, evolvePodSandbox } from '../pod-sandbox/evolve.ts';
import type { Sequenced } from '../model/records.ts';
import { subjectOf } from '../model/records.ts';
import { countsAsDone, failureOfTurn } from '../deciding/turn-failed.ts';
import { rulesOf } from '../model/rules.ts';
import type { NodeState } from '../model/state.ts';

/** Raised whenever evolve gives another state for the same records: older snapshots are then ignored (C14). */
export const EVOLVER_VERSION = 5;

export function evolve(state: NodeState, record: Sequenced): void {
  if (record.type === 'turn.failed') return evolveFailedTurn(state, record);
  const { kind, id } = subjectOf(record.stream);
  // The intent behind an outcome is looked up before evolveEffects forgets it.
  const ended = record.type === 'effect.ended' ? state.effects.get(record.body.effect) : undefined;
  if (record.type === 'effect.ended' && ended === undefined) return;
  evolveEffects(state, record);
  switch (kind) {
    case 'sandbox':
      return evolvePodSandbox(state, id, record, ended?.intent);
    case 'container':
      return evolveContainer(state, id, record, ended?.intent);
    case 'image':
      return evolveImage(state, id, record);
    case 'call':
      return evolveCall(state, record);
    case 'node':
      return evolveNode(state, record, ended?.intent);
  }
}

/** What it did is in doubt, as that of an earlier life is. */
function interruptEffect(state: NodeState, effect: string, error: string): void {
  const open = state.effects.get(effect);
  if (open === undefined) return;
  state.effects.delete(effect);
  const { kind, id } = subjectOf(open.stream);
  const failure = failureOfTurn('effect.ended', error);
  const sandbox = kind === 'sandbox' ? state.sandboxes.get(id) : undefined;
  if (sandbox !== undefined) state.sandboxes.set(id, cutShort(sandbox, open.intent, failure, rulesOf(state)));
  const container = kind === 'container' ? state.containers.get(id) : undefined;
  if (container !== undefined) state.containers.set(id, cutShortContainer(container, open.intent, failure));
}

type FailedTurn = Sequenced<Extract<Sequenced, { type: 'turn.failed' }>>;

/** A noted input is written down as it would have been, an outcome as a failure unless that would mislead. */
function evolveFailedTurn(state: NodeState, record: FailedTurn): void {
  const { handling, input, effect, error } = record.body;
  const { type } = input;
  if (handling === 'interrupted' && effect !== undefined) return interruptEffect(state, effect, error);
  if (handling === 'none' && effect !== undefined) state.effects.delete(effect);
  if (handling !== 'noted') return;
  const open = effect === undefined ? undefined : state.effects.get(effect);
  const body =
    type === 'effect.ended' && open !== undefined && !countsAsDone(open.intent.kind)
      ? { effect, kind: open.intent.kind, failure: failureOfTurn(type, error) }
      : input.body;
  evolve(state, { ...record, type, body } as Sequenced);
}
