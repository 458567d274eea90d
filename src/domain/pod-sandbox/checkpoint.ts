/**
 * CheckpointPod: containers of a pod that run, together, one checkpoint of a pod at a time. As with one container's, the
 * containers go on running, and what a restart cut short is cleared up at once.
 */
import { checkpointFailure, afterCheckpoint } from '../container/checkpoint.ts';
import { isCreated, isRunning, notFound } from '../model/container-state.ts';
import { hasTimer, openEffectsOn } from '../deciding/open-effects.ts';
import { checkAbsolutePath, checkNoParentPart } from '../oci/checks.ts';
import { type Refused, refused, type Result, succeeded } from '../model/result.ts';
import { failureIn } from '../oci/refuse.ts';
import { type RequestOf, containerStream, type EffectEnded, type Intent, sandboxStream } from '../model/records.ts';
import { type Container, containersOf, type NodeState, type OpenCall, type PodSandbox } from '../model/state.ts';
import { afterMs, complete, emit, ensureTimer, request as requestEffects, type Turn, wake } from '../deciding/turn.ts';

type CheckpointRequest = RequestOf<'CheckpointPod'>;

const RETRY_MS = 5_000;

const wrongState = (message: string): Refused => refused({ reason: 'WrongState', message });

/** Those that are to be checkpointed. */
function choose(
  state: NodeState,
  { podSandboxId, outputPath, containerIds }: CheckpointRequest,
): Result<readonly string[]> {
  const sandbox = state.sandboxes.get(podSandboxId);
  if (sandbox === undefined || sandbox.phase === 'creating')
    return refused({
      reason: 'PodSandboxNotFound',
      message: `pod_sandbox_id ${podSandboxId} names no pod sandbox.`,
    });
  const invalid = failureIn(() => {
    checkAbsolutePath('output_path', outputPath);
    checkNoParentPart('output_path', outputPath);
  });
  if (invalid !== null) return refused(invalid);
  if (sandbox.phase !== 'ready')
    return wrongState(`Pod sandbox ${podSandboxId} is NOTREADY; only a READY one can be checkpointed.`);
  if (sandbox.checkpoint !== undefined) return wrongState(`Pod sandbox ${podSandboxId} is being checkpointed already.`);
  const chosen: Container[] = [];
  if (containerIds.length === 0) chosen.push(...containersOf(state, podSandboxId).filter(isRunning));
  for (const id of new Set(containerIds)) {
    const container = state.containers.get(id);
    if (container === undefined || !isCreated(container) || container.podSandboxId !== podSandboxId)
      return refused(notFound(id));
    chosen.push(container);
  }
  if (chosen.length === 0)
    return wrongState(`No container of pod sandbox ${podSandboxId} is RUNNING; there is nothing to be checkpointed.`);
  for (const container of chosen) {
    const failure = checkpointFailure(state, container);
    if (failure !== null) return refused(failure);
  }
  return succeeded(chosen.map(({ id }) => id));
}

export function checkpointPod(turn: Turn, call: OpenCall, request: CheckpointRequest): void {
  const chosen = choose(turn.state, request);
  if (!chosen.ok) return complete(turn, call, chosen);
  const { podSandboxId, outputPath } = request;
  const effects = [{ kind: 'CheckpointPod', outputPath, containerIds: chosen.value }] as const;
  emit(turn, sandboxStream(podSandboxId), { type: 'effects.requested', body: { effects } }, call.seq);
}

const isUnderWay = (state: NodeState, stream: string): boolean =>
  openEffectsOn(state, stream).some(({ intent: { kind } }) => kind === 'CheckpointPod' || kind === 'EndPodCheckpoint');

/** Clears up after a checkpoint that a restart cut short. */
export function advancePodCheckpoint(turn: Turn, { id, checkpoint }: PodSandbox): void {
  const stream = sandboxStream(id);
  if (checkpoint === undefined || isUnderWay(turn.state, stream) || hasTimer(turn.state, stream, 'retry')) return;
  requestEffects(turn, stream, { kind: 'EndPodCheckpoint', ...checkpoint });
}

/** Containers that are being removed have waited for it. What could not be cleared up is tried until it has gone. */
export function afterPodCheckpoint(turn: Turn, podSandboxId: string, outcome: EffectEnded, intent: Intent): void {
  const stream = sandboxStream(podSandboxId);
  if (intent.kind === 'CheckpointPod' || intent.kind === 'EndPodCheckpoint')
    for (const id of intent.containerIds) wake(turn, containerStream(id));
  if (outcome.kind === 'CheckpointPod') return afterCheckpoint(turn, outcome);
  if (outcome.failure !== undefined) ensureTimer(turn, stream, 'retry', afterMs(turn, RETRY_MS));
}
