/** What the outcome of an effect on a container leads to. */
import type { EffectEnded, Intent } from '../records.ts';
import { answer, complete, type Turn } from '../turn.ts';
import { containerStream } from '../records.ts';
import { advanceContainer, afterKill, askShimForExit, recordStart } from './process.ts';
import { retryOwedContainer, undoUnclaimedContainer } from './timers.ts';

export function afterContainerEffect(turn: Turn, containerId: string, outcome: EffectEnded, intent: Intent): void {
  switch (outcome.kind) {
    case 'StartTask':
      if (outcome.result !== undefined) return recordStart(turn, containerId, outcome.result.task);
      return advanceContainer(turn, containerId);
    case 'KillTask':
      return afterKill(turn, containerId, outcome.failure, outcome.result?.alreadyGone === true);
    case 'RunExec':
      return afterExec(turn, outcome, intent);
    case 'ReopenLog':
      return answer(
        turn,
        containerStream(containerId),
        ['ReopenContainerLog'],
        outcome.failure === undefined ? { ok: true, response: {} } : { ok: false, failure: outcome.failure },
      );
    case 'WaitUntil':
      return afterTimer(turn, containerId, intent);
    default:
      return advanceContainer(turn, containerId);
  }
}

function afterExec(turn: Turn, outcome: Extract<EffectEnded, { kind: 'RunExec' }>, intent: Intent): void {
  const call = turn.ended === null || turn.ended.call === null ? undefined : turn.state.calls.get(turn.ended.call);
  if (call === undefined || intent.kind !== 'RunExec') return;
  const { result, failure } = outcome;
  if (result === undefined)
    return complete(turn, call, {
      ok: false,
      failure: failure ?? { reason: 'Bug', message: 'The exec ended without a result.' },
    });
  if (result.timedOut)
    return complete(turn, call, {
      ok: false,
      failure: {
        reason: 'TimedOut',
        message: `The command did not end within ${intent.timeoutMs ?? 0} ms and was killed.`,
      },
    });
  const { exitStatus, stdoutBytes, stderrBytes } = result;
  complete(turn, call, { ok: true, response: { exitCode: exitStatus, stdoutBytes, stderrBytes } });
}

function afterTimer(turn: Turn, containerId: string, intent: Intent): void {
  if (intent.kind !== 'WaitUntil') return;
  const container = turn.state.containers.get(containerId);
  if (container === undefined) return;
  switch (intent.purpose) {
    case 'claim':
      return undoUnclaimedContainer(turn, container);
    case 'retry':
      return retryOwedContainer(turn, container);
    case 'exit':
      return container.exit === null ? askShimForExit(turn, container.podSandboxId) : undefined;
    case 'grace':
      return advanceContainer(turn, containerId);
  }
}
