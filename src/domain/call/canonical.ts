/**
 * Requests as they are recorded: ids whole, image references in their normal form. Done at the door, before the call
 * is written down, so that all that follows compares exact strings. What does not resolve is left as it was given,
 * and refused by the decision.
 */
import { formatImageReference, parseImageReference } from '../image/reference.ts';
import type { CallRequest } from '../records.ts';
import type { NodeState } from '../state.ts';

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

export function canonical(state: Pick<NodeState, 'sandboxes' | 'containers'>, request: CallRequest): CallRequest {
  switch (request.method) {
    case 'StopPodSandbox':
    case 'RemovePodSandbox':
    case 'CreateContainer':
      return { ...request, podSandboxId: wholeId(state.sandboxes, request.podSandboxId) };
    case 'StartContainer':
    case 'StopContainer':
    case 'RemoveContainer':
    case 'ExecSync':
    case 'ReopenContainerLog':
      return { ...request, containerId: wholeId(state.containers, request.containerId) };
    case 'PullImage': {
      const parsed = parseImageReference(request.image);
      return parsed.ok ? { ...request, image: formatImageReference(parsed.reference) } : request;
    }
    case 'RunPodSandbox':
    case 'LoadImages':
    case 'RemoveImage':
    case 'UpdateRuntimeConfig':
    case 'SetLogLevel':
    case 'Refused':
    case 'Unimplemented':
      return request;
  }
}
