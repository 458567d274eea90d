/**
 * How far steps are (StepState in model/state.ts has the picture): what rooms ask of it, and how it goes on, whatever the
 * steps are. Which steps there are, and what each waits for, is the rooms' own.
 */
import type { StepState } from '../model/state.ts';

/** There may be something to undo, and nothing is under way. */
export const isAcquired = (step: StepState): boolean => step === 'done' || step === 'failed';

/** There is nothing left of it, or never was. */
export const isClear = (step: StepState): boolean => step === 'none' || step === 'undone';

/** With the daemon's end: a creation under way failed, and an undo under way is owed again. */
export const interrupted = <S extends StepState>(step: S): S | 'failed' =>
  step === 'doing' || step === 'undoing' ? 'failed' : step;

/** An undo that failed is tried once more. */
export const triedAgain = <S extends StepState>(step: S): S | 'failed' => (step === 'owed' ? 'failed' : step);
