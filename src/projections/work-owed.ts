/** What is still owed: undos that failed and will be tried again, and objects that are waiting for an effect. For doctor. */
import type { Failure } from '../domain/model/errors.ts';
import type { NodeState, StepState } from '../domain/model/state.ts';
import { containerStepsOf } from '../domain/model/container-state.ts';
import { containerStream, sandboxStream } from '../domain/model/records.ts';

export interface OwedWork {
  readonly stream: string;
  /** Steps that are not undone though they should be. */
  readonly steps: readonly string[];
  readonly failure: Failure | null;
  readonly attempts: number;
}

export function workOwed(state: Readonly<NodeState>): OwedWork[] {
  const owed: OwedWork[] = [];
  const note = (
    stream: string,
    object: { steps: Readonly<Record<string, StepState>>; owedFailure: Failure | null; undoFailures: number },
  ): void => {
    const steps = Object.entries(object.steps).flatMap(([name, step]) => (step === 'owed' ? [name] : []));
    if (steps.length > 0) owed.push({ stream, steps, failure: object.owedFailure, attempts: object.undoFailures });
  };
  for (const sandbox of state.sandboxes.values()) note(sandboxStream(sandbox.id), sandbox);
  for (const container of state.containers.values())
    note(containerStream(container.id), { ...container, steps: containerStepsOf(container) });
  return owed;
}
