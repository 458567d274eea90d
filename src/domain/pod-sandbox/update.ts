/**
 * UpdatePodSandboxResources: written down and shown, nothing else, since kubelet has changed the pod's cgroup itself when
 * it tells of it.
 */
import type { LinuxContainerResources } from '../model/cri.ts';
import { checkResources } from '../oci/checks.ts';
import { failureIn } from '../oci/refuse.ts';
import { mergedResources } from '../oci/resources.ts';
import type { Failure } from '../model/errors.ts';
import { type PodLimits, type RequestOf, sandboxStream } from '../model/records.ts';
import { limitsOf } from '../model/pod-sandbox-state.ts';
import type { OpenCall } from '../model/state.ts';
import { refused } from '../model/result.ts';
import { askAboutChange, askPlugins } from '../deciding/hooks.ts';
import { callBehind, complete, emit, OK, type Turn } from '../deciding/turn.ts';

type UpdateRequest = RequestOf<'UpdatePodSandboxResources'>;

const merged = (
  current: LinuxContainerResources | undefined,
  changes: LinuxContainerResources | undefined,
): LinuxContainerResources | undefined => (changes === undefined ? current : mergedResources(current ?? {}, changes));

export function updatePodSandboxResources(turn: Turn, call: OpenCall, request: UpdateRequest): void {
  const { podSandboxId } = request;
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined || sandbox.phase === 'creating')
    return complete(
      turn,
      call,
      refused({ reason: 'PodSandboxNotFound', message: `pod_sandbox_id ${podSandboxId} names no pod sandbox.` }),
    );
  if (sandbox.goal === 'remove' || sandbox.goal === 'undo')
    return complete(
      turn,
      call,
      refused({
        reason: 'WrongState',
        message: `Pod sandbox ${podSandboxId} is being removed; its limits can not be changed any more.`,
      }),
    );
  const failure = failureIn(() => {
    checkResources('overhead', request.overhead);
    checkResources('resources', request.resources);
  });
  if (failure !== null) return complete(turn, call, refused(failure));
  const current = limitsOf(sandbox);
  const overhead = merged(current.overhead, request.overhead);
  const resources = merged(current.resources, request.resources);
  const limits = { ...(overhead === undefined ? {} : { overhead }), ...(resources === undefined ? {} : { resources }) };
  if (askAboutChange(turn, sandboxStream(podSandboxId), 'UpdatePodSandbox', limits, call)) return;
  writeLimits(turn, podSandboxId, limits, call);
}

function writeLimits(turn: Turn, podSandboxId: string, limits: PodLimits, call: OpenCall): void {
  const stream = sandboxStream(podSandboxId);
  emit(turn, stream, { type: 'sandbox.updated', body: limits });
  complete(turn, call, OK);
  askPlugins(turn, stream, 'PostUpdatePodSandbox');
}

/** Where a plugin refuses the change, it fails; limits of pods plugins can't change. */
export function afterPodUpdateHook(turn: Turn, podSandboxId: string, limits: PodLimits, failure: Failure | null): void {
  const call = callBehind(turn);
  if (call?.request.method !== 'UpdatePodSandboxResources') return;
  if (failure !== null) complete(turn, call, refused(failure));
  else writeLimits(turn, podSandboxId, limits, call);
}
