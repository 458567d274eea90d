/**
 * How a task is launched, and the shim that launches it. Where nobody has to know its process before it runs, both effects
 * are asked for by one record, and StartTask begins once CreateTask has succeeded: a trip to the disk less. When CreateTask
 * fails, so does StartTask, with the same words: whatever was created is undone by the intent of both (C6).
 */
import { rulesOf } from '../model/rules.ts';
import { type Intent, sandboxStream } from '../model/records.ts';
import type { NodeState, PodSandbox } from '../model/state.ts';
import { startShimIntent } from './shared-shim.ts';
import { isClear } from './step-states.ts';
import { request, type Turn } from './turn.ts';

/** By the oldest rules the last of them did it all. */
export const askedTogether = (state: NodeState, effects: readonly Intent[]): readonly Intent[] =>
  rulesOf(state) < 2 ? effects.slice(-1) : effects;

export const launchIntents = (state: NodeState): readonly Intent[] =>
  askedTogether(state, [{ kind: 'CreateTask' }, { kind: 'StartTask' }]);

/** A shim that tasks can be started with, or that is being asked whether it is one. */
export const hasShim = ({ steps, shimContact }: Pick<PodSandbox, 'steps' | 'shimContact'>): boolean =>
  steps.shim === 'done' && shimContact !== 'gone';

/** Starts it while the first container is being made, so that StartContainer finds it there. */
export function prepareShim(turn: Turn, sandbox: PodSandbox): void {
  const { id, sandboxer, steps } = sandbox;
  if (sandboxer === 'none' && isClear(steps.shim ?? 'none'))
    request(turn, sandboxStream(id), startShimIntent(turn.state, sandbox));
}
