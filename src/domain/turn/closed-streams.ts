/** Which streams and calls are over: what the journal may prune whole, when it is old enough. Pure. */
import { openEffectsOn } from '../deciding/open-effects.ts';
import { type BodyOf, subjectOf } from '../model/records.ts';
import { execsOf } from '../model/container-state.ts';
import type { NodeState } from '../model/state.ts';

/**
 * Streams of objects that are gone and on which nothing is under way any more: their bodies may be pruned without changing
 * what the rest folds to (C11). A session, or a signal that hangs, may outlive its pod.
 */
export const isClosedStream = (state: NodeState, stream: string): boolean =>
  isOver(state, stream) && openEffectsOn(state, stream).length === 0;

function isOver(state: NodeState, stream: string): boolean {
  const { kind, id } = subjectOf(stream);
  switch (kind) {
    case 'sandbox':
      return !state.sandboxes.has(id);
    case 'container':
      return !state.containers.has(id);
    case 'image':
      return !state.images.has(id);
    case 'call':
      return ![...state.calls.values()].some((call) => call.stream === stream);
    case 'node':
      return false;
  }
}

const EXEC_SYNC = '{"request":{"method":"ExecSync"';

/**
 * A command that was run and is over. One that a restart cut short is still to be ended in its container, and what follows a
 * fault may wait on its behalf: without its records a later start would not know of that (C11).
 */
export function isProbe(state: NodeState, { seq, body }: { readonly seq: number; readonly body: string }): boolean {
  if (!body.startsWith(EXEC_SYNC)) return false;
  const { request } = JSON.parse(body) as BodyOf<'call.received'>;
  if (request.method !== 'ExecSync') return false;
  if ([...state.effects.values()].some(({ call }) => call === seq)) return false;
  const container = state.containers.get(request.containerId);
  return container === undefined || !execsOf(container).includes(request.newId);
}
