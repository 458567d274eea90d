/** Which streams and calls are over: what the journal may prune whole, when it is old enough. Pure. */
import { openEffectsOn } from '../deciding/open-effects.ts';
import { type BodyOf, type CallMethod, subjectOf } from '../model/records.ts';
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

/** Calls that are kept for a time of their own; all others go with the last object that they touched. */
export type CallClass = 'probes' | 'sessions' | 'refused calls' | 'reads';

const CLASSES: Readonly<Partial<Record<CallMethod, CallClass>>> = {
  ExecSync: 'probes',
  Exec: 'sessions',
  Attach: 'sessions',
  PortForward: 'sessions',
  ExecSession: 'sessions',
  AttachSession: 'sessions',
  PortForwardSession: 'sessions',
  Read: 'reads',
};

const METHOD = /^\{"request":\{"method":"([A-Za-z]+)"/;
const FAILED = /"failure":\{/;

/** By the beginning of the body of a call.received; null: a call that has no time of its own. */
export const classOfRequest = (body: string): CallClass | null =>
  CLASSES[(METHOD.exec(body)?.[1] ?? '') as CallMethod] ?? null;

/** By the beginning of the body of a call.completed. */
export const isFailed = (body: string): boolean => FAILED.test(body);

/**
 * What a record tells of its call's class; null: nothing, or that it has to stay. A command that a restart cut short is still
 * to be ended in its container, and what follows a fault may wait on its behalf: without its records a later start would not
 * know of that (C11).
 */
export function classOfCall(
  state: NodeState,
  { seq, type, body }: { readonly seq: number; readonly type: string; readonly body: string },
): CallClass | null {
  if (type === 'call.completed') return isFailed(body) ? 'refused calls' : null;
  if (type !== 'call.received') return null;
  const found = classOfRequest(body);
  if (found === null || [...state.effects.values()].some(({ call }) => call === seq)) return null;
  const { request } = JSON.parse(body) as BodyOf<'call.received'>;
  if (!('containerId' in request) || !('newId' in request)) return found;
  const container = state.containers.get(request.containerId);
  return container === undefined || !execsOf(container).includes(request.newId) ? found : null;
}
