/**
 * Takes the kernel's wait off the way of programs that are about to put a process into a control group. It waits until
 * every processor has passed a certain point (an RCU grace period: 6 to 16 ms), unless somebody did the same a moment ago:
 *
 *   write to cgroup.procs ── 8 ms ──> joined; for some 11 ms more, whoever joins waits for nothing
 *
 * So while such a program starts, this process joins the group that it is in already, again and again, on a thread of the
 * pool. Must never move a process: the group is looked up anew for each round of joins.
 */
import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** The kernel stays ready for 11 ms, and a timer may be late. */
const AGAIN_MS = 6;
/** Between two pieces of work that belong together, such as adding a command and starting it. */
const LINGER_MS = 10;
/** A program that has not joined by then hangs, or has joined long ago. */
const LONGEST_MS = 1_000;
/** After so long without a join of ours a cheap one says something of the kernel. */
const REST_MS = 60;
const DEAR_MS = 3;
/** Some are cheap because others joined, and some dear on a busy machine; so many more are cheap because of the kernel (favordynmods, say). */
const CHEAP_MAX = 16;
const CHEAP_FOR_A_DEAR = 4;

export interface CgroupJoining {
  /** Work at whose end a process will have joined control groups, or not. Gives what the work gives. */
  readonly during: <T>(work: () => Promise<T>) => Promise<T>;
}

/**
 * `ownDirectory` tells the directory of this process's control group, in any hierarchy; null, or one that can't be opened,
 * and nothing is done. The same where joining proves to be cheap.
 */
export const createCgroupJoining = (ownDirectory: () => Promise<string | null>): CgroupJoining => {
  let working = 0;
  let untilMs = 0;
  let isKeeping = false;
  let isOff = false;
  let cheapOnes = 0;
  let lastMs = -REST_MS;

  const joinOwn = async (write: () => Promise<unknown>): Promise<void> => {
    const startedMs = performance.now();
    await write();
    const endedMs = performance.now();
    if (endedMs - startedMs >= DEAR_MS) cheapOnes = Math.max(0, cheapOnes - CHEAP_FOR_A_DEAR);
    else if (startedMs - lastMs >= REST_MS) cheapOnes += 1;
    lastMs = endedMs;
    if (cheapOnes >= CHEAP_MAX) isOff = true;
  };

  const keepReady = async (): Promise<void> => {
    const directory = await ownDirectory();
    if (directory === null) throw new Error('no hierarchy tells of this process');
    const group = await open(join(directory, 'cgroup.procs'), 'r+');
    try {
      const lookUpAtMs = performance.now() + LONGEST_MS;
      while (!isOff && performance.now() < Math.min(untilMs, lookUpAtMs)) {
        // "0" is whoever writes.
        await joinOwn(() => group.write('0', 0));
        await sleep(AGAIN_MS, undefined, { ref: false });
      }
    } finally {
      await group.close();
    }
  };

  const keep = async (): Promise<void> => {
    isKeeping = true;
    try {
      while (!isOff && performance.now() < untilMs) await keepReady();
    } catch {
      // What can't be done makes programs wait as they would have without.
      isOff = true;
    } finally {
      isKeeping = false;
    }
  };

  return {
    during: async (work) => {
      working += 1;
      untilMs = performance.now() + LONGEST_MS;
      if (!isKeeping && !isOff) void keep();
      try {
        return await work();
      } finally {
        working -= 1;
        if (working === 0) untilMs = performance.now() + LINGER_MS;
      }
    },
  };
};
