/**
 * The state as JSON text and back. Maps become lists in their order of insertion, which is the order of creation, so
 * that folding the same records always gives the same text (C14).
 */
import { initialState, type NodeState } from '../model/state.ts';

export const writeState = (state: NodeState): string => [...statePieces(state)].join('');

/** The same text in pieces, of an object each at most: for whoever must not stop for as long as the whole takes. */
export function* statePieces({ facts, network, podCidr, ...lists }: NodeState): Generator<string> {
  const { journalDoubts, acknowledgedHeads, checkpointDigests, nriPlugins } = lists;
  yield `{"facts":${JSON.stringify(facts)},"network":${JSON.stringify(network)},"podCidr":${JSON.stringify(podCidr)}`;
  if (journalDoubts !== undefined) yield `,"journalDoubts":${JSON.stringify(journalDoubts)}`;
  if (acknowledgedHeads !== undefined) yield `,"acknowledgedHeads":${JSON.stringify(acknowledgedHeads)}`;
  if (checkpointDigests !== undefined) yield `,"checkpointDigests":${JSON.stringify(checkpointDigests)}`;
  if (nriPlugins !== undefined) yield `,"nriPlugins":${JSON.stringify(nriPlugins)}`;
  yield* listPieces('sandboxes', lists.sandboxes.values());
  yield* listPieces('containers', lists.containers.values());
  yield* listPieces('images', lists.images.values());
  yield* listPieces('names', lists.names);
  yield* listPieces('effects', lists.effects.values());
  yield* listPieces('calls', lists.calls.values());
  yield '}';
}

function* listPieces(name: string, items: Iterable<unknown>): Generator<string> {
  yield `,"${name}":[`;
  let before = '';
  for (const item of items) {
    yield `${before}${JSON.stringify(item)}`;
    before = ',';
  }
  yield ']';
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
  if (written.journalDoubts !== undefined) state.journalDoubts = written.journalDoubts;
  if (written.acknowledgedHeads !== undefined) state.acknowledgedHeads = written.acknowledgedHeads;
  if (written.checkpointDigests !== undefined) state.checkpointDigests = written.checkpointDigests;
  if (written.nriPlugins !== undefined) state.nriPlugins = written.nriPlugins;
  for (const sandbox of written.sandboxes) state.sandboxes.set(sandbox.id, sandbox);
  for (const container of written.containers) state.containers.set(container.id, container);
  for (const image of written.images) state.images.set(image.id, image);
  for (const [name, id] of written.names) state.names.set(name, id);
  for (const effect of written.effects) state.effects.set(effect.id, effect);
  for (const call of written.calls) state.calls.set(call.seq, call);
  return state;
}
