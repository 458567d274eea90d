/**
 * Requests as they are recorded: ids whole, image references in their normal form. Done at the door, before the call
 * is written down, so that all that follows compares exact strings. What does not resolve is left as it was given,
 * and refused by the decision.
 */
import { formatImageReference, parseImageReference } from '../image/reference.ts';
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

export function canonical(state: Pick<NodeState, 'sandboxes' | 'containers'>, request: CallRequest): CallRequest {
  switch (request.method) {
    case 'StopPodSandbox':
    case 'RemovePodSandbox':
    case 'UpdatePodSandboxResources':
    case 'CreateContainer':
    case 'PortForward':
    case 'PortForwardSession':
      return { ...request, podSandboxId: wholeId(state.sandboxes, request.podSandboxId) };
    case 'CheckpointPod':
      return {
        ...request,
        podSandboxId: wholeId(state.sandboxes, request.podSandboxId),
        containerIds: request.containerIds.map((id) => wholeId(state.containers, id)),
      };
    case 'StartContainer':
    case 'StopContainer':
    case 'RemoveContainer':
    case 'ExecSync':
    case 'Exec':
    case 'Attach':
    case 'ExecSession':
    case 'AttachSession':
    case 'ReopenContainerLog':
    case 'CheckpointContainer':
    case 'UpdateContainerResources':
      return { ...request, containerId: wholeId(state.containers, request.containerId) };
    case 'PullImage': {
      const parsed = parseImageReference(request.image);
      return parsed.ok ? { ...request, image: formatImageReference(parsed.reference) } : request;
    }
    case 'RunPodSandbox':
    case 'RestorePod':
    case 'LoadImages':
    case 'RemoveImage':
    case 'UpdateRuntimeConfig':
    case 'SetLogLevel':
    case 'AcknowledgeJournal':
    case 'Refused':
    case 'Unimplemented':
      return request;
  }
}
