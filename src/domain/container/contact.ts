/** What is known of the shim that runs a container, and asking it. */
import { openEffectsOn } from '../deciding/open-effects.ts';
import { request, type Turn } from '../deciding/turn.ts';
import type { Failure } from '../model/errors.ts';
import { type EffectEnded, sandboxStream } from '../model/records.ts';
import { rulesOf } from '../model/rules.ts';
import type { Container, NodeState, ShimContact } from '../model/state.ts';

/** The contact of its pod's shim; none when there is no pod. */
export const contactOf = (state: NodeState, container: Container): ShimContact =>
  state.sandboxes.get(container.podSandboxId)?.shimContact ?? 'none';

/** A pod whose shim was not asked since the daemon started is left alone until it was (C18). */
export const isAskingShim = (state: NodeState, container: Container): boolean =>
  contactOf(state, container) === 'unknown';

/**
 * Nobody answered whether it was done. What was started so is ended before anybody hears that it is EXITED; who did not
 * take a signal is asked whether it is still there.
 */
export const isUnanswered = (failure: Failure | null): boolean =>
  failure !== null && (failure.reason === 'TimedOut' || failure.reason === 'ShimFailed');

/** A killed task's exit is overdue: ask the shim, unless somebody is asking already. */
export function askShimForExit(turn: Turn, podSandboxId: string): void {
  const stream = sandboxStream(podSandboxId);
  if (openEffectsOn(turn.state, stream).some(({ intent }) => intent.kind === 'ReconnectShim')) return;
  if (turn.state.sandboxes.get(podSandboxId)?.shim) request(turn, stream, { kind: 'ReconnectShim' });
}

const ASKED_OF_SHIM: readonly EffectEnded['kind'][] = [
  'StartShim',
  'CreateTask',
  'StartTask',
  'DeleteTask',
  'UpdateContainer',
  'RunExec',
  'StreamExec',
];

/**
 * A shim that gave this pod no answer may be busy, or silent: whoever has it asks at once. So no further pod comes to share a
 * silent one, and what is owed is asked of it again when it speaks, and not before.
 */
export function askUnansweringShim(turn: Turn, podSandboxId: string, { kind, failure }: EffectEnded): void {
  if (rulesOf(turn.state) < 12 || !isUnanswered(failure ?? null) || !ASKED_OF_SHIM.includes(kind)) return;
  const { sharedShimId } = turn.state.sandboxes.get(podSandboxId) ?? {};
  for (const pod of [...turn.state.sandboxes.values()]) {
    const hasIt = pod.id === podSandboxId || (sharedShimId !== undefined && pod.sharedShimId === sharedShimId);
    if (hasIt && pod.steps.shim === 'done' && pod.shimContact === 'connected') askShimForExit(turn, pod.id);
  }
}
