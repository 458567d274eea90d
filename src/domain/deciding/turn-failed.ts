/**
 * A turn that threw: which object it was about, what its input counts as, and what whoever waits is told.
 * model/turn-failed.ts has what is recorded of it.
 */
import type { Failure } from '../model/errors.ts';

/**
 * Done, whatever follows: a delivered signal that counts as futile would have its task deleted before the exit is known
 * (C3), a started task that counts as failed runs while it is shown as EXITED, and changed limits would not be shown.
 */
export const countsAsDone = (kind: string): boolean => DONE.has(kind);

const DONE: ReadonlySet<string> = new Set(['KillTask', 'StartTask', 'UpdateContainer']);

/** What whoever waits is told; kept as one sentence, like every failure. */
export const failureOfTurn = (inputType: string, error: string): Failure => ({
  reason: 'Bug',
  message: `What follows from ${inputType} could not be decided: ${error}. This is a bug of scribe; the journal has what a report needs (scribe history).`,
});

/** The decision about one object threw: which one, so that the others need not suffer with it. */
export class ObjectStuckError extends Error {
  readonly stream: string;
  constructor(stream: string, cause: unknown) {
    super(`what comes next for ${stream} could not be decided`, { cause });
    this.name = 'ObjectStuckError';
    this.stream = stream;
  }
}

/** `decide` for one object; what it throws is told with the object's stream. */
export function decidingFor(stream: string, decide: () => void): void {
  try {
    decide();
  } catch (error) {
    throw error instanceof ObjectStuckError ? error : new ObjectStuckError(stream, error);
  }
}
