/**
 * What a node costs that only goes on: the processor time of a runtime and its shims while a kubelet asks what it asks all
 * day and probes containers. Knows no goal.
 */
import { readFile } from 'node:fs/promises';
import type { DaemonDirs } from '../../test/support/leftovers.ts';
import type { ClientResult } from './client.ts';
import { daemonProcesses, shimsOf } from './memory.ts';
import type { Figures } from './metrics.ts';
import { median } from './statistics.ts';

const KUBELET_SECONDS = 30;
/** Of a hundred pods every other one, each every ten seconds. */
const PROBES_PER_SECOND = 5;

/** Of times in proc(5). */
const TICKS_PER_SECOND = 100;
const MS_PER_S = 1000;

/** What a process and those of its children that it has waited for have had of the processors; 0: it has ended. */
const ticksOf = async (pid: number): Promise<number> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // utime, stime, cutime and cstime, fields 14 to 17; the second field may hold spaces and parentheses.
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  return fields.slice(11, 15).reduce((sum, ticks) => sum + Number(ticks), 0);
};

interface Worked {
  /** Of one processor: the daemon, its helpers, its shims, and what these have started and seen end. */
  readonly percent: number;
  readonly result: ClientResult;
}

/** What a runtime uses of a processor while that is done. What ends meanwhile counts by the one that waits for it. */
const processorPercent = async (
  daemonPid: number,
  dirs: DaemonDirs,
  work: () => Promise<ClientResult>,
): Promise<Worked> => {
  const pids = [...(await daemonProcesses(daemonPid, dirs)).map(({ pid }) => pid), ...(await shimsOf(dirs))];
  const ticksNow = async (): Promise<number[]> => Promise.all(pids.map(ticksOf));
  const before = await ticksNow();
  const startedAtMs = performance.now();
  const result = await work();
  const seconds = (performance.now() - startedAtMs) / MS_PER_S;
  const after = await ticksNow();
  const used = after.reduce((sum, ticks, at) => sum + Math.max(0, ticks - (before[at] ?? 0)), 0);
  return { percent: (100 * used) / TICKS_PER_SECOND / seconds, result };
};

interface AtWork {
  readonly asked: Worked;
  readonly probed: Worked;
  readonly errors: readonly string[];
}

/**
 * First what a kubelet asks, then the same with probes: what these cost is the difference.
 *
 * @param ask  asks so many probes, evenly, in so many seconds
 */
export const measureAtWork = async (
  daemonPid: number,
  dirs: DaemonDirs,
  ask: (probes: number, seconds: number) => Promise<ClientResult>,
): Promise<AtWork> => {
  const asking = (probes: number): Promise<Worked> =>
    processorPercent(daemonPid, dirs, () => ask(probes, KUBELET_SECONDS));
  const asked = await asking(0);
  const probed = await asking(PROBES_PER_SECOND * KUBELET_SECONDS);
  return { asked, probed, errors: [asked, probed].flatMap(({ result }) => result.errors ?? []) };
};

export const workFigures = ({ asked, probed }: AtWork): Figures => {
  const medianOf = ({ result }: Worked, call: string): number => median(result.samplesMs?.[call] ?? []);
  return {
    kubeletPercent: asked.percent,
    kubeletList: medianOf(asked, 'ListContainers'),
    kubeletStats: medianOf(asked, 'ListContainerStats'),
    probesPercent: probed.percent,
    probesExec: medianOf(probed, 'ExecSync'),
  };
};
