/**
 * Pods as a kubelet makes them: how soon they run, and what they write to the disk, which is counted by the disk itself, so
 * that everything is in it that a runtime has synced and all that the kernel writes for it later. Knows no goal.
 */
import { readFileSync, statSync } from 'node:fs';
import { run } from '../../test/support/process.ts';
import { type ClientFlags, type ClientResult, medianOf } from './client.ts';
import type { Figures } from './metrics.ts';

/** Of Linux, whatever the disk's own are. */
const SECTOR_BYTES = 512;
const KIBIBYTE = 1024;

/** What the disk under a directory was ever told to write; NaN where the kernel does not count it. */
const writtenBytes = (dir: string): number => {
  const { dev } = statSync(dir);
  // Linux packs both into one number (gnu_dev_major and gnu_dev_minor); no disk here is beyond their lower parts.
  const disk = `${Math.floor(dev / 256) % 4096}:${dev % 256}`;
  try {
    const [, , , , , , sectors] = readFileSync(`/sys/dev/block/${disk}/stat`, 'utf8').trim().split(/\s+/);
    return Number(sectors) * SECTOR_BYTES;
  } catch {
    return Number.NaN;
  }
};

/** What is written while something is done, with all of it that the kernel still holds then. */
const writing = async (
  dir: string,
  work: () => Promise<ClientResult>,
): Promise<{ result: ClientResult; bytes: number }> => {
  await run(['sync']);
  const before = writtenBytes(dir);
  const result = await work();
  await run(['sync']);
  return { result, bytes: writtenBytes(dir) - before };
};

interface FullPods {
  readonly figures: Figures;
  readonly errors: readonly string[];
  readonly raw: object;
}

/** One at a time, then some at once. `dir` is on the disk of what the runtime keeps. */
export const measureFullPods = async (
  dir: string,
  pods: number,
  parallelPods: number,
  ask: (flags: ClientFlags) => Promise<ClientResult>,
): Promise<FullPods> => {
  const { result: serial, bytes } = await writing(dir, () => ask({ count: pods }));
  const parallel = await ask({ count: 2 * pods, parallel: parallelPods });
  return {
    figures: {
      fullRunPodSandbox: medianOf(serial, 'RunPodSandbox'),
      fullCreateContainer: medianOf(serial, 'CreateContainer'),
      fullStartContainer: medianOf(serial, 'StartContainer'),
      fullPodReady: medianOf(serial, 'FullPodReady'),
      fullPodGone: medianOf(serial, 'FullPodGone'),
      fullPodReadyParallel: medianOf(parallel, 'FullPodReady'),
      fullPodsParallel: parallel.perSecond?.['pods'] ?? Number.NaN,
      fullPodWritten: bytes / KIBIBYTE / pods,
    },
    errors: [...(serial.errors ?? []), ...(parallel.errors ?? [])],
    raw: { serial, bytes, parallel },
  };
};
