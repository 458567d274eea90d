/**
 * Gives memory back to the kernel that this process has and does not need: garbage that V8 has not met, pages that malloc
 * keeps, and mapped code and constants of Node and its libraries, of which a start uses most and the rest of the day little
 * (the kernel has them cached, and maps what is used again). Nothing else may be given back here: what is dropped must be
 * there again when it is used.
 *
 *   work ──> quiet for QUIET_MS ──> at least LEAST_APART_MS since the last time, and enough was done ──> give back
 *        ──> LEAST_APART_MS ──> once more
 *
 * The second time is for threads, which end when nothing has been asked of them for a while and leave what they had to malloc.
 * V8 looks for garbage when it is asked for memory, and an idle process asks for none: what a start or a burst of pods
 * left behind would stay for hours.
 */
import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { native } from './native.ts';
import { checked } from './syscalls.ts';

const QUIET_MS = 3_000;
const LEAST_APART_MS = 30_000;
/**
 * Looking through a heap of 25 MB takes 40 to 90 ms of a processor: it takes a tenth of what work does at most, however little that
 * is. What a little work leaves behind waits for more.
 */
const WORK_PER_COST = 10;
const MADV_DONTNEED = 4;

const mallocTrim = native<[number]>('int malloc_trim(size_t pad)');
const madvise = native<[bigint, bigint, number]>('int madvise(uintptr_t address, size_t length, int advice)');

export interface MappedRange {
  readonly start: bigint;
  readonly end: bigint;
}

/** Libraries that Node is linked with, which stay mapped as long as the process is there. Others may go at any moment. */
const LINKED_LIBRARY = /\/lib(c|m|stdc\+\+)\.so\.\d+(\.\d+)*$/;

/**
 * What is mapped of this program and can't be written to, from /proc/PID/smaps; without parts that differ from the file, as
 * those do that the linker filled in at the start: they are nowhere else, but for swap, which would be dropped too.
 */
export const programRangesIn = (smaps: string, program: string): readonly MappedRange[] =>
  smaps.split(/^(?=[0-9a-f]+-[0-9a-f]+ )/m).flatMap((mapping) => {
    const [, start, end, path] = /^([0-9a-f]+)-([0-9a-f]+) r-[x-]p \S+ \S+ \S+ +(\/.+)$/m.exec(mapping) ?? [];
    if (start === undefined || end === undefined || path === undefined) return [];
    const isOfProgram = path === program || LINKED_LIBRARY.test(path);
    const isAsInFile = /^Anonymous: +0 kB$/m.test(mapping) && /^Swap: +0 kB$/m.test(mapping);
    return isOfProgram && isAsInFile ? [{ start: BigInt(`0x${start}`), end: BigInt(`0x${end}`) }] : [];
  });

/** By then V8 has gone through the heap, and its code for that can be dropped too. */
const COLLECTED_MS = 500;
/** Longer than what V8 keeps on pages with others: 128 KiB. */
const LONG_NAME_LENGTH = 200_000;
const COLLECTION_FLAGS = [
  ['--stress-incremental-marking', '--no-stress-incremental-marking'],
  ['--optimize-for-size', '--no-optimize-for-size'],
] as const;

/**
 * Has V8 begin to collect the garbage of this thread. It goes on a millisecond at a time, and on other threads, while this one
 * works; the last step is what others wait for. Where a heap that grew under load is left scattered over pages that are nearly
 * empty, some of it is moved together then, and more the second time.
 *
 * V8 has no call for this. It asks itself whether to begin when it makes an old object, of which a name of a property is one,
 * and these flags make it say yes. They are set for that moment only: a thread or process that is started with other flags can't
 * use the compiled code that Node brings along, which takes 26 ms of processor time.
 */
const beginToCollect = (): void => {
  for (const [set] of COLLECTION_FLAGS) setFlagsFromString(set);
  Object.fromEntries([[String(performance.now()).padEnd(LONG_NAME_LENGTH), null]]);
  for (const [, unset] of COLLECTION_FLAGS) setFlagsFromString(unset);
};

/** Whoever calls in that moment may wait for the last step of the collection; all else takes a millisecond or two. */
export async function giveBackMemory(): Promise<void> {
  beginToCollect();
  await sleep(COLLECTED_MS, undefined, { ref: false });
  mallocTrim(0);
  for (const { start, end } of programRangesIn(await readFile('/proc/self/smaps', 'utf8'), process.execPath))
    checked('madvise', 'what is mapped of this program', madvise(start, end - start, MADV_DONTNEED));
}

export interface GivingBack {
  /** Something was done: when it is over, there may be something to give back. */
  readonly worked: () => void;
  readonly close: () => void;
}

const ownProcessorMs = (): number => {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1000;
};

/**
 * Gives back whenever work has come to rest, if it was much; being started is work. Keeps no process alive, and wakes nobody who
 * rests. `processorMs` is what this process has had of the processors.
 */
export function giveBackWhenQuiet(
  report: (error: unknown) => void,
  giveBack: () => Promise<void> = giveBackMemory,
  now: () => number = () => performance.now(),
  processorMs: () => number = ownProcessorMs,
): GivingBack {
  let gaveMs = -Infinity;
  let workedMs = now();
  let look: NodeJS.Timeout | null = null;
  /** Of the last time: what it cost, and when it was over in this process's own time. */
  const last = { costMs: 0, endedMs: 0 };
  let owesAnother = false;
  const lookAfter = (delayMs: number): void => {
    look = setTimeout(giveIfQuiet, delayMs).unref();
  };
  const give = async (): Promise<void> => {
    const begunMs = processorMs();
    await giveBack();
    last.endedMs = processorMs();
    last.costMs = last.endedMs - begunMs;
  };
  const giveIfQuiet = (): void => {
    const nowMs = now();
    const dueMs = Math.max(workedMs + QUIET_MS, gaveMs + LEAST_APART_MS);
    if (nowMs < dueMs) return lookAfter(dueMs - nowMs);
    const isSecond = owesAnother;
    const didMuch = gaveMs < workedMs && processorMs() - last.endedMs >= WORK_PER_COST * last.costMs;
    look = null;
    if (!isSecond && !didMuch) return;
    owesAnother = didMuch;
    gaveMs = nowMs;
    if (owesAnother) lookAfter(LEAST_APART_MS);
    give().catch(report);
  };
  lookAfter(QUIET_MS);
  return {
    worked: () => {
      workedMs = now();
      if (look === null) lookAfter(QUIET_MS);
    },
    close: () => {
      if (look !== null) clearTimeout(look);
    },
  };
}
