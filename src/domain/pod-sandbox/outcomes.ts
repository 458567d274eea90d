/** What the outcome of an effect on a PodSandbox leads to. */
import { askShimForExit, askUnansweringShim } from '../container/contact.ts';
import { containersAfterReconnect, SHIM_GONE } from '../container/recovery.ts';
import { failPod } from '../deciding/pod-failed.ts';
import { isClaimed } from '../model/container-state.ts';
import type { Failure } from '../model/errors.ts';
import { type EffectEnded, type Intent, sandboxStream } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import { containersOf } from '../model/state.ts';
import { afterMs, CLAIM_MS, emit, request, retryDelayMs, setTimer, type Turn } from '../deciding/turn.ts';
import { vetoIn } from '../nri/answers.ts';
import { afterPodCheckpoint } from './checkpoint.ts';
import { afterStreamPort } from './port-forward.ts';
import { advancePodSandbox, afterPauseKill, awaitPauseExit, losePodSandbox } from './advance.ts';
import { hasClaimedContainers } from './restored-containers.ts';
import { holderOf } from './sandboxer.ts';
import { afterStartShim } from './shim.ts';
import { afterPodUpdateHook } from './update.ts';

export function afterSandboxEffect(turn: Turn, podSandboxId: string, outcome: EffectEnded, intent: Intent): void {
  switch (outcome.kind) {
    case 'KillTask':
      return afterPauseKill(turn, podSandboxId);
    case 'StartShim':
      askUnansweringShim(turn, podSandboxId, outcome);
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
    case 'CallPlugins':
      return afterHook(turn, podSandboxId, outcome, intent);
    case 'WaitUntil':
      return afterTimer(turn, podSandboxId, intent);
    default:
      return advancePodSandbox(turn, podSandboxId);
  }
}

/** A plugin may refuse that it runs; nothing else can be refused. */
function afterHook(
  turn: Turn,
  podSandboxId: string,
  { result }: Extract<EffectEnded, { kind: 'CallPlugins' }>,
  intent: Intent,
): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined || intent.kind !== 'CallPlugins') return;
  const failure = vetoIn(result?.answers ?? [], intent.hook, `pod sandbox ${podSandboxId}`);
  if (intent.hook === 'UpdatePodSandbox') return afterPodUpdateHook(turn, podSandboxId, intent.change ?? {}, failure);
  if (intent.hook === 'RunPodSandbox' && failure !== null && sandbox.goal === 'run')
    failPod(turn, podSandboxId, failure, 'vetoed');
  advancePodSandbox(turn, podSandboxId);
}

const UNCLAIMED: Failure = {
  reason: 'Cancelled',
  message: 'Nobody asked for the pod sandbox after it was made; it was undone.',
};

function afterTimer(turn: Turn, podSandboxId: string, intent: Intent): void {
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined || intent.kind !== 'WaitUntil') return;
  const stream = sandboxStream(podSandboxId);
  switch (intent.purpose) {
    case 'claim':
      if (sandbox.claimed || sandbox.goal !== 'run') return;
      if (hasClaimedContainers(turn.state, sandbox)) {
        // Who asked for them may have gone as well: when they are undone, the pod is nobody's again.
        const isAnyClaimed = containersOf(turn.state, podSandboxId).some(isClaimed);
        if (!isAnyClaimed && rulesOf(turn.state) >= 12) setTimer(turn, stream, 'claim', afterMs(turn, CLAIM_MS));
        return;
      }
      failPod(turn, podSandboxId, UNCLAIMED, 'unclaimed');
      return advancePodSandbox(turn, podSandboxId);
    case 'retry':
      if (sandbox.shimContact === 'mute' && sandbox.goal !== 'undo') request(turn, stream, { kind: 'ReconnectShim' });
      if (sandbox.shimContact === 'unknown' && rulesOf(turn.state) >= 12) askShimForExit(turn, podSandboxId);
      if (sandbox.owedFailure !== null) emit(turn, stream, { type: 'undo.retried', body: {} });
      return advancePodSandbox(turn, podSandboxId);
    case 'exit':
      if (sandbox.taskExit === null && sandbox.shim !== null) request(turn, stream, { kind: 'ReconnectShim' });
      return;
    case 'grace':
    case 'plugins':
      return;
  }
}

function afterReconnect(
  turn: Turn,
  podSandboxId: string,
  { result }: Extract<EffectEnded, { kind: 'ReconnectShim' }>,
): void {
  const silences = turn.state.sandboxes.get(podSandboxId)?.shimSilences ?? 0;
  containersAfterReconnect(turn, podSandboxId, result, silences);
  const sandbox = turn.state.sandboxes.get(podSandboxId);
  if (sandbox === undefined) return;
  if (result === undefined) setTimer(turn, sandboxStream(podSandboxId), 'retry', afterMs(turn, retryDelayMs(silences)));
  if (result?.gone === true || sandbox.taskExit !== null || sandbox.kill === 'futile')
    return losePodSandbox(
      turn,
      podSandboxId,
      result?.gone === true ? SHIM_GONE : `${holderOf(sandbox.sandboxer) ?? 'it'} ended`,
    );
  // The shim may have been asked too soon: a clock that was set forward makes an exit overdue at once.
  if (result !== undefined && rulesOf(turn.state) >= 10) awaitPauseExit(turn, podSandboxId);
  advancePodSandbox(turn, podSandboxId);
}
