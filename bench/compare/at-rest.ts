/**
 * What a runtime costs while nothing is asked of it: the processor time of a minute, and memory after many pod lives. Both
 * of the daemon and all its helpers, without shims and containers. Knows no goal.
 */
import { readdir, readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DaemonDirs } from '../../test/support/leftovers.ts';
import { daemonProcesses, type Memory, memoryOf } from './memory.ts';

const IDLE_MS = 60_000;
/** By then threads have ended that end by themselves, and pages are given back that are given back late. */
export const REST_MS = 45_000;
const NS_PER_MS = 1e6;

/** What each thread has had of the processors, by its id (proc(5), schedstat). Those that have ended are missing. */
const threadTimesNs = async (pids: readonly number[]): Promise<Map<string, number>> => {
  const times = new Map<string, number>();
  for (const pid of pids)
    for (const thread of await readdir(`/proc/${pid}/task`)) {
      const text = await readFile(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').catch(() => '0');
      times.set(thread, Number(text.split(' ')[0]));
    }
  return times;
};

/** Percent of one processor that the daemon and its helpers use in a minute. Threads that come and go are left out. */
export const idlePercent = async (daemonPid: number, dirs: DaemonDirs, signal: AbortSignal): Promise<number> => {
  await sleep(REST_MS, undefined, { signal });
  const pids = (await daemonProcesses(daemonPid, dirs)).map(({ pid }) => pid);
  const before = await threadTimesNs(pids);
  await sleep(IDLE_MS, undefined, { signal });
  const after = await threadTimesNs(pids);
  const usedNs = [...after].reduce((sum, [thread, timeNs]) => sum + timeNs - (before.get(thread) ?? timeNs), 0);
  return (100 * usedNs) / NS_PER_MS / IDLE_MS;
};

/** Memory once what was done before is over. */
export const memoryAtRest = async (daemonPid: number, dirs: DaemonDirs, signal: AbortSignal): Promise<Memory> => {
  await sleep(REST_MS, undefined, { signal });
  return memoryOf(daemonPid, dirs);
};
