/**
 * How a task is launched. Where nobody has to know its process before that runs, both effects are asked for at once, and
 * StartTask waits for CreateTask: a trip to the disk less. When CreateTask fails, so does StartTask, with the same words:
 * whatever was created is undone by the intent of both (C6).
 */
import { rulesOf } from '../model/rules.ts';
import type { Intent } from '../model/records.ts';
import type { NodeState } from '../model/state.ts';

export const launchIntents = (state: NodeState): readonly Intent[] =>
  rulesOf(state) < 2 ? [{ kind: 'StartTask' }] : [{ kind: 'CreateTask' }, { kind: 'StartTask' }];
