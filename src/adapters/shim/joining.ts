/**
 * Work at whose end a process will have joined control groups: the spawner is told of it, and gets over with the kernel's wait
 * meanwhile (src/platform/linux/cgroup-joining.ts). Knows when, not how.
 */
import type { Hierarchy } from '../../platform/linux/memory-cgroup.ts';
import type { Spawner } from '../../platform/spawner/types.ts';

/** Between two pieces of work that belong together, such as adding a command and starting it. */
const LINGER_MS = 10;
/** A program that has not joined by then hangs, or has joined long ago. */
const LONGEST_MS = 1_000;

export interface Joining {
  /** Gives what the work gives. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
}

/** @param hierarchy  null: there is none of the memory controller, and nothing is done */
export const createJoining = ({ joinAhead }: Pick<Spawner, 'joinAhead'>, hierarchy: Hierarchy | null): Joining => {
  let working = 0;
  let untilMs = 0;
  let isOff = false;

  /** It is a help, which nobody waits for: without it programs take longer. */
  const ask = (forMs: number): void => {
    if (isOff || hierarchy === null) return;
    untilMs = performance.now() + forMs;
    joinAhead(forMs, hierarchy).then(
      (goesOn) => {
        if (!goesOn) isOff = true;
      },
      () => undefined,
    );
  };

  return {
    during: async (work) => {
      working += 1;
      if (untilMs - performance.now() < LONGEST_MS / 2) ask(LONGEST_MS);
      try {
        return await work();
      } finally {
        working -= 1;
        if (working === 0) ask(LINGER_MS);
      }
    },
  };
};
