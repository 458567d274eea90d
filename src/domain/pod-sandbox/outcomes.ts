/** What the outcome of an effect on a PodSandbox leads to. */
import { endStaleExecs, resumeExecs } from '../container/exec.ts';
import { advanceContainer, failStart, loseContainer, recordExit, recordStart } from '../container/advance.ts';
import type { ObservedTask } from '../model/tasks.ts';
import { type EffectEnded, type Intent, sandboxStream } from '../model/records.ts';
import { containersOf, type Container } from '../model/state.ts';
import { afterMs, emit, request, retryDelayMs, setTimer, type Turn } from '../deciding/turn.ts';
import { afterPodCheckpoint } from './checkpoint.ts';
import { afterStreamPort } from './port-forward.ts';
import { advancePodSandbox, afterPauseKill, losePodSandbox } from './advance.ts';
import { hasClaimedContainers } from './restoring.ts';
import { holderOf } from './sandboxer.ts';
import { afterStartShim } from './shim.ts';

export function afterSandboxEffect(turn: Turn, podSandboxId: string, outcome: EffectEnded, intent: Intent): void {
  switch (outcome.kind) {
    case 'KillTask':
      return afterPauseKill(turn, podSandboxId);
    case 'StartShim':
      afterStartShim(turn, podSandboxId, outcome.failure);
      return advancePodSandbox(turn, podSandboxId);
    case 'ReconnectShim':
      return afterReconnect(turn, podSandboxId, outcome);
    case 'StreamPort':
      return afterStreamPort(turn, outcome);
    case 'CheckpointPod':
    case 'EndPodCheckpoint':
      afterPodCheckpoint(turn, podSandboxId, outcome, intent);
      return advancePodSandbox(turn, podSandboxId);
    case 'WaitUntil':
      return afterTimer(turn, podSandboxId, intent);
    default:
      return advancePodSandbox(turn, podSandboxId);
  }
}

function afterTimer(turn: Turn, podSandboxId: string, intent: Intent): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined || intent.kind !== 'WaitUntil') return;
  const stream = sandboxStream(podSandboxId);
  switch (intent.purpose) {
    case 'claim':
      if (sandbox.claimed || sandbox.goal !== 'run' || hasClaimedContainers(turn.state, sandbox)) return;
      emit(turn, stream, {
        type: 'sandbox.failed',
        body: {
          failure: {
            reason: 'Cancelled',
            message: 'Nobody asked for the pod sandbox after it was made; it was undone.',
          },
        },
      });
      return advancePodSandbox(turn, podSandboxId);
    case 'retry':
      if (sandbox.shimContact === 'mute' && sandbox.goal !== 'undo') request(turn, stream, { kind: 'ReconnectShim' });
      if (sandbox.owedFailure !== null) emit(turn, stream, { type: 'undo.retried', body: {} });
      return advancePodSandbox(turn, podSandboxId);
    case 'exit':
      if (sandbox.taskExit === null && sandbox.shim !== null) request(turn, stream, { kind: 'ReconnectShim' });
      return;
    case 'grace':
      return;
  }
}

const SHIM_GONE = 'its shim ended';
const SHIM_MUTE = 'its shim does not answer';

function afterReconnect(
  turn: Turn,
  podSandboxId: string,
  outcome: Extract<EffectEnded, { kind: 'ReconnectShim' }>,
): void {
  const { result } = outcome;
  const silences = turn.state.sandboxes.get(podSandboxId)?.shimSilences ?? 0;
  for (const container of containersOf(turn.state, podSandboxId)) {
    if (result === undefined) afterMute(turn, container, silences);
    else if (result.gone) loseContainer(turn, container.id, SHIM_GONE);
    else
      afterAnswer(
        turn,
        container,
        result.tasks.find((task) => task.containerId === container.id),
      );
    advanceContainer(turn, container.id);
  }
  resumeExecs(turn, podSandboxId);
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined) return;
  if (result === undefined) setTimer(turn, sandboxStream(podSandboxId), 'retry', afterMs(turn, retryDelayMs(silences)));
  if (result?.gone === true || sandbox.taskExit !== null || sandbox.kill === 'futile')
    return losePodSandbox(
      turn,
      podSandboxId,
      result?.gone === true ? SHIM_GONE : `${holderOf(sandbox.sandboxer) ?? 'it'} ended`,
    );
  advancePodSandbox(turn, podSandboxId);
}

/** After so many silences in a row nobody waits for a mute shim's word any more. */
const SILENCES_MAX = 3;

function afterMute(turn: Turn, container: Container, silences: number): void {
  if (silences < SILENCES_MAX) return;
  // Its process is dead and nobody will say how it ended: what is shown now must stay (C18).
  if (container.startInDoubt || container.exitPending) loseContainer(turn, container.id, SHIM_MUTE);
}

function afterAnswer(turn: Turn, container: Container, task: ObservedTask | undefined): void {
  // The shim was not asked for what was made after the question.
  if (task === undefined) return;
  switch (task.status) {
    case 'running':
      if (container.startInDoubt)
        recordStart(turn, container.id, { pid: task.pid, startTicks: task.startTicks ?? '0' });
      return endStaleExecs(turn, container);
    case 'stopped':
      if (container.startInDoubt)
        recordStart(turn, container.id, { pid: task.pid, startTicks: task.startTicks ?? '0' });
      if (task.exit !== undefined) recordExit(turn, container.id, task.exit);
      return;
    case 'created':
      // It has a process already, which is ended before anybody hears that the container is EXITED.
      if (container.startInDoubt) loseContainer(turn, container.id, 'the daemon ended before the task was started');
      return;
    case 'absent':
      if (container.startInDoubt) return failStart(turn, container.id, 'the daemon ended before the task was made');
      return loseContainer(turn, container.id, 'its shim knows nothing of it');
  }
}
