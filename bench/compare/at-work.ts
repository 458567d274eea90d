/**
 * What a node costs that only goes on: the processor time of a runtime and its shims while a kubelet asks what it asks all
 * day and probes containers. Knows no goal.
 */
import type { DaemonDirs } from '../../test/support/leftovers.ts';
import { processorMsOf } from '../processor-time.ts';
import { type ClientResult, medianOf } from './client.ts';
import { daemonProcesses, shimsOf } from './memory.ts';
import type { Figures } from './metrics.ts';

const KUBELET_SECONDS = 30;
/** Of a hundred pods every other one, each every ten seconds. */
const PROBES_PER_SECOND = 5;

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
  const msNow = (): number[] => pids.map((pid) => processorMsOf(pid, 'whole'));
  const before = msNow();
  const startedAtMs = performance.now();
  const result = await work();
  const tookMs = performance.now() - startedAtMs;
  const usedMs = msNow().reduce((sum, ms, at) => sum + Math.max(0, ms - (before[at] ?? 0)), 0);
  return { percent: (100 * usedMs) / tookMs, result };
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
  return {
    kubeletPercent: asked.percent,
    kubeletList: medianOf(asked.result, 'ListContainers'),
    kubeletStats: medianOf(asked.result, 'ListContainerStats'),
    probesPercent: probed.percent,
    probesExec: medianOf(probed.result, 'ExecSync'),
  };
};
