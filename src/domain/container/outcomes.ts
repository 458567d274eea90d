/** What the outcome of an effect on a container leads to. */
import type { EffectEnded, Intent } from '../model/records.ts';
import { answer, type Turn } from '../deciding/turn.ts';
import { containerExitOf } from '../model/container-state.ts';
import { containerStream } from '../model/records.ts';
import { refused, succeeded } from '../model/result.ts';
import { afterHook } from './after-hooks.ts';
import { afterCheckpoint, afterEndCheckpoint } from './checkpoint.ts';
import { askShimForExit, askUnansweringShim } from './contact.ts';
import { afterEndExec, afterExec, retryStaleExecs } from './exec.ts';
import { advanceContainer, afterKill, recordStart } from './advance.ts';
import { retryOwedContainer, undoUnclaimedContainer } from './timers.ts';
import { recordUpdate } from './update.ts';

export function afterContainerEffect(turn: Turn, containerId: string, outcome: EffectEnded, intent: Intent): void {
  const podSandboxId = turn.state.containers.get(containerId)?.podSandboxId;
  if (podSandboxId !== undefined) askUnansweringShim(turn, podSandboxId, outcome);
  switch (outcome.kind) {
    case 'StartTask':
      if (outcome.result !== undefined) return recordStart(turn, containerId, outcome.result.task);
      return advanceContainer(turn, containerId);
    case 'KillTask':
      return afterKill(turn, containerId, outcome.failure, outcome.result?.alreadyGone === true);
    case 'RunExec':
    case 'StreamExec':
    case 'StreamAttach':
      return afterExec(turn, containerId, outcome, intent);
    case 'EndExec':
      afterEndExec(turn, containerId, outcome.failure);
      return advanceContainer(turn, containerId);
    case 'ReopenLog':
      return answer(
        turn,
        containerStream(containerId),
        ['ReopenContainerLog'],
        outcome.failure === undefined ? succeeded({}) : refused(outcome.failure),
      );
    case 'CheckpointTask':
      afterCheckpoint(turn, outcome);
      return advanceContainer(turn, containerId);
    case 'EndCheckpoint':
      afterEndCheckpoint(turn, containerId, outcome.failure);
      return advanceContainer(turn, containerId);
    case 'UpdateContainer':
      recordUpdate(turn, containerId, outcome.failure, intent);
      return advanceContainer(turn, containerId);
    case 'CallPlugins':
      return afterHook(turn, containerId, outcome, intent);
    case 'WaitUntil':
      return afterTimer(turn, containerId, intent);
    default:
      return advanceContainer(turn, containerId);
  }
}

function afterTimer(turn: Turn, containerId: string, intent: Intent): void {
  if (intent.kind !== 'WaitUntil') return;
  const container = turn.state.containers.get(containerId);
  if (container === undefined) return;
  switch (intent.purpose) {
    case 'claim':
      return undoUnclaimedContainer(turn, container);
    case 'retry':
      retryOwedContainer(turn, container);
      return retryStaleExecs(turn, containerId);
    case 'exit':
      return containerExitOf(container) === null ? askShimForExit(turn, container.podSandboxId) : undefined;
    case 'grace':
      return advanceContainer(turn, containerId);
    // It is set for the node.
    case 'plugins':
      return;
  }
}
