/**
 * When what is looked at in the background is looked at: every OFTEN_MS while somebody asks for what is found, and every
 * SELDOM_MS while nobody does, so that a node that nobody asks costs next to nothing. Knows nothing of what is looked at.
 *
 *   nobody asks: a round every SELDOM_MS ──asked──> every OFTEN_MS ──ASKED_FOR_MS without a question──> every SELDOM_MS
 */

export const OFTEN_MS = 10_000;
/** kubelet asks every 10 s, and who collects metrics every minute. */
export const ASKED_FOR_MS = 90_000;
export const SELDOM_MS = 300_000;

export interface Rounds {
  /** Somebody wants to know: if the last round is long ago, the next is now. */
  readonly asked: () => void;
  readonly close: () => void;
}

/** The first round is after OFTEN_MS. Keeps no process alive. */
export const createRounds = (round: () => void, nowMs: () => number = () => performance.now()): Rounds => {
  let askedAtMs = -Infinity;
  let lastMs = nowMs();
  let everyMs = OFTEN_MS;
  let timer: NodeJS.Timeout | null = null;

  const wait = (delayMs: number): void => {
    if (timer !== null) clearTimeout(timer);
    timer = setTimeout(look, delayMs).unref();
  };
  const look = (): void => {
    lastMs = nowMs();
    everyMs = lastMs - askedAtMs < ASKED_FOR_MS ? OFTEN_MS : SELDOM_MS;
    wait(everyMs);
    round();
  };
  wait(everyMs);
  return {
    asked: () => {
      askedAtMs = nowMs();
      if (everyMs === OFTEN_MS) return;
      everyMs = OFTEN_MS;
      wait(Math.max(0, lastMs + OFTEN_MS - askedAtMs));
    },
    close: () => {
      if (timer !== null) clearTimeout(timer);
    },
  };
};
