/**
 * When what is looked at in the background is looked at: every EVERY_MS while somebody asks for what is found, and not at all
 * while nobody does. Knows nothing of what is looked at.
 *
 *   rest ──asked──> a round at once, then one every EVERY_MS ──ASKED_FOR_MS without a question──> rest
 */

export const EVERY_MS = 10_000;
/** kubelet asks every 10 s, and who collects metrics every minute. */
export const ASKED_FOR_MS = 90_000;

export interface RoundsOptions {
  /** The first after a rest is within the question that ended it. */
  readonly round: () => void;
  /** Nobody asks any more: what is known gets old. */
  readonly rest?: () => void;
  readonly nowMs?: () => number;
}

export interface Rounds {
  /** Somebody wants to know. */
  readonly asked: () => void;
  /** Somebody asked not long ago, and will again. */
  readonly isAsked: () => boolean;
  readonly close: () => void;
}

/** Rests until it is asked. Keeps no process alive. */
export const createRounds = ({ round, rest, nowMs = () => performance.now() }: RoundsOptions): Rounds => {
  let askedAtMs = 0;
  let timer: NodeJS.Timeout | null = null;

  const begin = (): void => {
    timer = setTimeout(next, EVERY_MS).unref();
    round();
  };
  const next = (): void => {
    if (nowMs() - askedAtMs < ASKED_FOR_MS) return begin();
    timer = null;
    rest?.();
  };
  return {
    asked: () => {
      askedAtMs = nowMs();
      if (timer === null) begin();
    },
    isAsked: () => timer !== null,
    close: () => {
      if (timer !== null) clearTimeout(timer);
      timer = null;
    },
  };
};
