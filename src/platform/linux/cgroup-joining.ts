/**
 * Takes the kernel's wait off the way of programs that are about to put a process into a control group. It waits until
 * every processor has passed a certain point (an RCU grace period: 6 to 16 ms), unless somebody did the same a moment ago:
 *
 *   write to cgroup.procs ── 8 ms ──> joined; for some 11 ms more, whoever joins waits for nothing
 *
 * So while such a program starts, the spawner joins the group that it is in already, again and again, on a thread of its
 * pool. Must never move a process: the group is looked up anew for each round of joins.
 */
import { closeSync, constants, openSync, write } from 'node:fs';
import { join } from 'node:path';

/** The kernel stays ready for 11 ms, and a timer may be late. */
const AGAIN_MS = 6;
/** After so long the group is looked up anew. */
const ROUND_MS = 1_000;
/** After so long without a join of ours a cheap one says something of the kernel. */
const REST_MS = 60;
const DEAR_MS = 3;
/** Some are cheap because others joined, and some dear on a busy machine; so many more are cheap because of the kernel (favordynmods, say). */
const CHEAP_MAX = 16;
const CHEAP_FOR_A_DEAR = 4;

/** Joins for so long from now on, whatever was said before; false: never again, since it is cheap here, or can't be done. */
export type CgroupJoining = (forMs: number) => boolean;

/** `ownDirectory` tells the directory of this process's control group, in any hierarchy; null: none is known. */
export const createCgroupJoining = (ownDirectory: () => Promise<string | null>): CgroupJoining => {
  let untilMs = 0;
  let isKeeping = false;
  let isOff = false;
  let cheapOnes = 0;
  let lastMs = -REST_MS;

  const note = (startedMs: number): void => {
    const endedMs = performance.now();
    if (endedMs - startedMs >= DEAR_MS) cheapOnes = Math.max(0, cheapOnes - CHEAP_FOR_A_DEAR);
    else if (startedMs - lastMs >= REST_MS) cheapOnes += 1;
    lastMs = endedMs;
    if (cheapOnes >= CHEAP_MAX) isOff = true;
  };

  const endRound = (group: number): void => {
    closeSync(group);
    isKeeping = false;
    if (!isOff && performance.now() < untilMs) void keep();
  };

  const joinAgain = (group: number, lookUpAtMs: number): void => {
    const startedMs = performance.now();
    if (isOff || startedMs >= Math.min(untilMs, lookUpAtMs)) return endRound(group);
    // "0" is whoever writes.
    write(group, '0', 0, (error) => {
      // What can't be done makes programs wait as they would have without.
      if (error === null) note(startedMs);
      else isOff = true;
      setTimeout(joinAgain, AGAIN_MS, group, lookUpAtMs).unref();
    });
  };

  const keep = async (): Promise<void> => {
    isKeeping = true;
    try {
      const directory = await ownDirectory();
      if (directory === null) throw new Error('no hierarchy tells of this process');
      const group = openSync(join(directory, 'cgroup.procs'), constants.O_WRONLY);
      joinAgain(group, performance.now() + ROUND_MS);
    } catch {
      isOff = true;
      isKeeping = false;
    }
  };

  return (forMs) => {
    untilMs = performance.now() + forMs;
    if (!isKeeping && !isOff) void keep();
    return !isOff;
  };
};
