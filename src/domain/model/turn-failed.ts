/**
 * What is recorded of a turn that threw: a bug of the deciders, met by this input. The state was put back to what it was
 * before the turn; `handling` says what was done with the input instead. docs/decisions/turns-that-throw.md has the why.
 */

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
   * interrupted: what became of it is in doubt, as after a restart, and is asked for. none: nothing of it is in the state, but
   * that its effect is over.
   */
  readonly handling: 'refused' | 'failed' | 'noted' | 'interrupted' | 'none';
}
