/**
 * Doing again what is not taken for a while: a few times, and then, by whoever goes on for ever, until it is. Says so once, and when it
 * is over.
 */
import { setTimeout as sleep } from 'node:timers/promises';

/** Says a line about what is waited for, for whoever waits; null: nobody does. */
export type Waiting = ((line: string) => void) | null;

/** Why it was not taken; what may be better soon, and how long the target itself wants to be left alone. */
export interface Problem {
  readonly words: string;
  readonly afterMs: number;
}

export interface Giving {
  /** Resolves with null when it is taken, and throws for what another try will not change. */
  readonly tryOnce: () => Promise<Problem | null>;
  /** Between the first tries; none of those that follow is made by whoever does not wait. */
  readonly waitsMs: readonly number[];
  readonly waiting: Waiting;
  readonly saying: {
    readonly problem: (words: string) => string;
    readonly waits: string;
    readonly isOver: string;
  };
  /** What is thrown where nobody waits. */
  readonly failed: (said: string) => Error;
}

/** Between two tries of one that waits: the first time, doubled each time, and at most. */
const WAIT_MS = 1000;
const WAIT_MS_MAX = 16_000;

/** Tries until it is taken, or for a while. */
export const give = async ({ tryOnce, waitsMs, waiting, saying, failed }: Giving): Promise<void> => {
  for (let tries = 0; ; tries += 1) {
    const problem = await tryOnce();
    if (problem === null) {
      if (tries > waitsMs.length) waiting?.(saying.isOver);
      return;
    }
    const said = saying.problem(problem.words);
    if (tries === waitsMs.length && waiting === null) throw failed(said);
    if (tries === waitsMs.length) waiting?.(`${said} ${saying.waits}`);
    const waitMs = waitsMs[tries] ?? Math.min(WAIT_MS * 2 ** (tries - waitsMs.length), WAIT_MS_MAX);
    await sleep(Math.max(waitMs, problem.afterMs));
  }
};
