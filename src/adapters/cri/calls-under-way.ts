/**
 * Counts the calls under way, so that the daemon can end in order: from then on nobody is let in, and those inside have
 * a bounded time to come to their end. Knows no call by name.
 */
import { orAfter } from '../../platform/rpc/timeout.ts';

export interface Gate {
  /** Aborted when the daemon begins to end. Who only follows what happens, and would never come to an end, ends then. */
  readonly closing: AbortSignal;
  /** Lets a call in: to be called when it has been answered. null: nobody is let in any more. */
  readonly enter: () => (() => void) | null;
  /** Closes the gate; resolves when all are out, or after `timeoutMs`, with how many are still inside. */
  readonly close: (timeoutMs: number) => Promise<number>;
}

export const createGate = (): Gate => {
  const closing = new AbortController();
  const { promise: empty, resolve: onEmpty } = Promise.withResolvers<void>();
  let inside = 0;

  const leave = (): void => {
    inside -= 1;
    if (inside === 0 && closing.signal.aborted) onEmpty();
  };

  return {
    closing: closing.signal,
    enter: () => {
      if (closing.signal.aborted) return null;
      inside += 1;
      return leave;
    },
    close: async (timeoutMs) => {
      closing.abort();
      if (inside === 0) return 0;
      await orAfter(empty, timeoutMs, undefined);
      return inside;
    },
  };
};
