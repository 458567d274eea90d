/**
 * Spreads work that comes all at once over turns of the event loop, so that what else is to be done comes in between.
 * Bounds how much begins in a turn, never how much is under way: one that hangs holds up no other.
 */

/** Resolves when it is the caller's turn to begin, in order of asking. */
export type Turn = () => Promise<void>;

export const createPace = (perTurn: number): Turn => {
  const waiting: (() => void)[] = [];
  const next = (): void => {
    for (const begin of waiting.splice(0, perTurn)) begin();
    if (waiting.length > 0) setImmediate(next);
  };
  return () =>
    new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(next);
    });
};
