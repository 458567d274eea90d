/**
 * The state as JSON text and back. Maps become lists in their order of insertion, which is the order of creation, so
 * that folding the same records always gives the same text (C14).
 */
import { initialState, type NodeState } from './state.ts';

export function writeState(state: NodeState): string {
  return JSON.stringify({
    facts: state.facts,
    network: state.network,
    podCidr: state.podCidr,
    sandboxes: [...state.sandboxes.values()],
    containers: [...state.containers.values()],
    images: [...state.images.values()],
    names: [...state.names],
    effects: [...state.effects.values()],
    calls: [...state.calls.values()],
  });
}

type Written = {
  readonly [K in keyof NodeState]: NodeState[K] extends Map<infer Key, infer Value>
    ? K extends 'names'
      ? [Key, Value][]
      : Value[]
    : NodeState[K];
};

/** Reads what writeState wrote with the same version of the evolvers. */
export function readState(text: string): NodeState {
  const written = JSON.parse(text) as Written;
  const state = initialState();
  state.facts = written.facts;
  state.network = written.network;
  state.podCidr = written.podCidr;
  for (const sandbox of written.sandboxes) state.sandboxes.set(sandbox.id, sandbox);
  for (const container of written.containers) state.containers.set(container.id, container);
  for (const image of written.images) state.images.set(image.id, image);
  for (const [name, id] of written.names) state.names.set(name, id);
  for (const effect of written.effects) state.effects.set(effect.id, effect);
  for (const call of written.calls) state.calls.set(call.seq, call);
  return state;
}
