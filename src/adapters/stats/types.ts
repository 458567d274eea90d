/**
 * What others ask of stats: the numbers of ContainerStats, as CRI has them, from cgroup files and from counts of the
 * writable layers that are made in the background.
 */
import type { CpuUsage, FilesystemUsage, IoUsage, MemoryUsage, SwapUsage } from '../wire/cri/api.ts';

/** Everything that one look at a container's cgroups gives; ready to be put into a ContainerStats message. */
export interface ContainerUsage {
  readonly cpu: CpuUsage | undefined;
  readonly memory: MemoryUsage | undefined;
  readonly swap: SwapUsage | undefined;
  /** Version 2 only: pressure is all that CRI asks of it. */
  readonly io: IoUsage | undefined;
}

export interface StatsTarget {
  readonly containerId: string;
  /** linux.cgroupsPath of its spec, in either form. */
  readonly cgroupPath: string;
}

export interface StatsReader {
  /** null when its cgroups are gone, or can't be known from its path. Rejects when they can't be read. */
  readonly read: (target: StatsTarget) => Promise<ContainerUsage | null>;
  /** By container id; those that have gone, or can't be read, are left out. */
  readonly readAll: (targets: readonly StatsTarget[]) => Promise<ReadonlyMap<string, ContainerUsage>>;
  /** Processes (threads, as the kernel counts) in the cgroup; null when it is gone or has no pids controller. */
  readonly readProcessCount: (target: StatsTarget) => Promise<string | null>;
  /** Begins to sample a container, so that its first stats can tell its nano cores; read does this as well. */
  readonly watch: (target: StatsTarget) => void;
  /** Closes its files. Not needed for a container that is removed: that is noticed. */
  readonly forget: (containerId: string) => void;
  readonly close: () => void;
}

/** What writable layers hold together. */
export interface LayersTotal {
  readonly timestamp: string;
  readonly usedBytes: bigint;
  readonly inodesUsed: bigint;
}

export interface UsageCollector {
  /** Begins to count a container's layer: the upper directory of its snapshot. */
  readonly watch: (containerId: string, upperDir: string) => void;
  readonly forget: (containerId: string) => void;
  /** The last count, with the time it was done; undefined before the first is. */
  readonly usageOf: (containerId: string) => FilesystemUsage | undefined;
  /** All layers that are watched, each as it was counted last; the time is that of the newest count. */
  readonly total: () => LayersTotal;
  readonly close: () => void;
}
