/**
 * What a call waits for, as one string: the object and the sort of outcome. Calls that wait for the same thing have
 * the same target and are answered together.
 */
import type { CallRequest } from '../model/records.ts';

const pullTarget = (reference: string, credentials: string | null): string =>
  `pull/${reference}${credentials === null ? '' : `#${credentials}`}`;

/** The target of a call as it arrives; RunPodSandbox and CreateContainer may join another's (call.joined). */
export function targetOf(request: CallRequest): string {
  switch (request.method) {
    case 'RunPodSandbox':
    case 'RestorePod':
      return `sandbox/${request.newId}`;
    case 'StopPodSandbox':
    case 'RemovePodSandbox':
    case 'CheckpointPod':
      return `sandbox/${request.podSandboxId}`;
    case 'CreateContainer':
      return `container/${request.newId}`;
    case 'StartContainer':
    case 'StopContainer':
    case 'RemoveContainer':
    case 'ReopenContainerLog':
    case 'CheckpointContainer':
    case 'UpdateContainerResources':
      return `container/${request.containerId}`;
    case 'ExecSync':
      return `exec/${request.newId}`;
    case 'ExecSession':
    case 'AttachSession':
    case 'PortForwardSession':
      return `session/${request.newId}`;
    case 'LoadImages':
      return `load/${request.newId}`;
    case 'PullImage':
      return pullTarget(request.image, request.credentials);
    case 'Exec':
    case 'Attach':
    case 'PortForward':
    case 'UpdatePodSandboxResources':
    case 'RemoveImage':
    case 'UpdateRuntimeConfig':
    case 'SetLogLevel':
    case 'AcknowledgeJournal':
    case 'Refused':
    case 'Unimplemented':
      return '';
  }
}
