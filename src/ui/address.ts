/** Writes what is looked at into the browser's address: a moment after the last of many moves, or at once as a step. */
import { hashOf, type ViewState } from './view-state.ts';

export interface Address {
  /** @param isStep  Back undoes it */
  readonly write: (view: ViewState, isStep: boolean) => void;
}

const AFTER_MS = 150;

export const createAddress = (onWritten: () => void): Address => {
  let due: ViewState | null = null;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const addressOf = (view: ViewState): string => `${location.pathname}${hashOf(view)}`;

  const settle = (): void => {
    clearTimeout(timer);
    if (due !== null) history.replaceState(null, '', addressOf(due));
    due = null;
  };

  return {
    write(view, isStep) {
      if (isStep) {
        // Back leads to what was looked at last, also when it was moved a moment ago.
        settle();
        history.pushState(null, '', addressOf(view));
        onWritten();
        return;
      }
      due = view;
      clearTimeout(timer);
      timer = setTimeout(() => {
        settle();
        onWritten();
      }, AFTER_MS);
    },
  };
};
