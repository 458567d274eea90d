/**
 * What is recorded of a turn that threw: a bug of the deciders, met by this input. The state was put back to what it was
 * before the turn; `handling` says what was done with the input instead. docs/decisions/turns-that-throw.md has the why.
 */
import type { Failure } from '../model/errors.ts';

export interface TurnFailed {
  /** As it came; without its body where that could not be written down. */
  readonly input: { readonly type: string; readonly body?: unknown };
  /** The effect whose outcome it is; absent: it is none. */
  readonly effect?: string;
  /** What was thrown. */
  readonly error: string;
  /**
   * refused: a call, answered with INTERNAL; the record is the last of that call. failed: an outcome, taken for a failure
   * by the turn before this record. noted: written into the state by this record, with the least that follows from it.
   * none: nothing of it is in the state, but that its effect is over.
   */
  readonly handling: 'refused' | 'failed' | 'noted' | 'none';
}

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
