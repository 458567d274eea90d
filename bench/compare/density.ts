/**
 * What a crowded node costs: many pods on one runtime at a time, how it answers while they are made, what all their
 * processes take, what the runtime does when nobody asks, and how long a restart takes. Knows no goal.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { idlePercent, REST_MS } from './at-rest.ts';
import type { ClientResult } from './client.ts';
import { nodeMemoryOf } from './memory.ts';
import type { Figures } from './metrics.ts';
import type { Runtime } from './runtimes.ts';
import { median, percentile } from './statistics.ts';

const MEBIBYTE = 1024 * 1024;

export interface Dense {
  readonly figures: Figures;
  readonly errors: readonly string[];
  readonly raw: object;
}

/** `fill` and `restart` ask the runtime; `restart` is given the ids of all containers. */
export const measureDensity = async (
  runtime: Runtime,
  fill: () => Promise<ClientResult>,
  restart: (ids: readonly string[]) => Promise<Dense>,
  signal: AbortSignal,
): Promise<Dense> => {
  const { samplesMs = {}, containerIds = [], errors = [] } = await fill();
  await sleep(REST_MS, undefined, { signal });
  const memory = await nodeMemoryOf(runtime.pid(), runtime.dirs);
  const idle = await idlePercent(runtime.pid(), runtime.dirs, signal);
  const restarted = await restart(containerIds);
  const perPod = (bytes: number): number => bytes / MEBIBYTE / containerIds.length;
  return {
    figures: {
      densityAll: perPod(memory.allBytes),
      densityRuntime: perPod(memory.runtimeBytes),
      densityShims: perPod(memory.shimsBytes),
      densityContainers: perPod(memory.containersBytes),
      densityReady: median(samplesMs['PodReady'] ?? []),
      densityList: percentile(samplesMs['ListContainers'] ?? [], 99),
      densityIdle: idle,
      densityRestart: restarted.figures.restart ?? Number.NaN,
    },
    errors: [...errors, ...restarted.errors],
    raw: { memory, pods: containerIds.length, samplesMs },
  };
};
