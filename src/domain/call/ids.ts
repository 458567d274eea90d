/**
 * Ids that are given by their beginning: which one is meant, and why none can be. Records have whole ids
 * (catalogue.ts).
 */
import type { Failure } from '../model/errors.ts';
import { shown } from '../oci/refuse.ts';
import type { CallRequest } from '../model/records.ts';
import type { NodeState } from '../model/state.ts';

/** The one id that starts with this text, the text itself when none or several do. */
export function wholeId(ids: ReadonlyMap<string, unknown>, text: string): string {
  if (text === '' || ids.has(text)) return text;
  let found: string | null = null;
  for (const id of ids.keys()) {
    if (!id.startsWith(text)) continue;
    if (found !== null) return text;
    found = id;
  }
  return found ?? text;
}

/** Why the text can't be meant for one object, whether or not that is there: it is empty, or the beginning of several ids. */
export function idFailure(field: string, ids: ReadonlyMap<string, unknown>, text: string): Failure | null {
  if (text === '') return { reason: 'InvalidField', message: `${field} is empty; give an id or its beginning.` };
  if (ids.has(text)) return null;
  const found = [...ids.keys()].filter((id) => id.startsWith(text)).length;
  if (found < 2) return null;
  return {
    reason: 'AmbiguousId',
    message: `${field} ${shown(text)} is the beginning of ${found} ids; give more of it.`,
  };
}

/** The same of the object that a request is about. */
export function requestIdFailure(
  state: Pick<NodeState, 'sandboxes' | 'containers'>,
  request: CallRequest,
): Failure | null {
  if ('podSandboxId' in request) return idFailure('pod_sandbox_id', state.sandboxes, request.podSandboxId);
  if ('containerId' in request) return idFailure('container_id', state.containers, request.containerId);
  return null;
}
