/** Which streams are over: what the journal may prune whole, when it is old enough. Pure. */
import { subjectOf } from '../domain/records.ts';
import type { NodeState } from '../domain/state.ts';

/** Streams of objects that are gone: their bodies may be pruned without changing what the rest folds to (C11). */
export function isClosedStream(state: NodeState, stream: string): boolean {
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
    default:
      return false;
  }
}
