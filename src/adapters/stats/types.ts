/**
 * What others ask of stats: the numbers of ContainerStats and PodSandboxStats, as CRI has them, from cgroup files, from
 * counts of the writable layers that are made in the background, and from the counters of network interfaces.
 */
import type { CpuUsage, FilesystemUsage, IoUsage, MemoryUsage, ProcessUsage, SwapUsage } from '../../wire/cri/api.ts';
import type { ProcessName } from '../../platform/linux/processes.ts';

/** Everything that one look at the cgroups of a container or pod gives; ready to be put into a stats message. */
export interface CgroupUsage {
  readonly cpu: CpuUsage | undefined;
  readonly memory: MemoryUsage | undefined;
  readonly swap: SwapUsage | undefined;
  /** Version 2 only: pressure is all that CRI asks of it. */
  readonly io: IoUsage | undefined;
  /** Processes; threads, as the kernel counts them. */
  readonly process: ProcessUsage | undefined;
}

export interface StatsTarget {
  /** Of the container or pod. */
  readonly id: string;
  /** As linux.cgroupsPath of a spec has it, in either form. */
  readonly cgroupPath: string;
  /** The pod whose shim is to be asked first: it may hold the container elsewhere than in that cgroup. */
  readonly podSandboxId?: string;
  /** Its processes are counted too: one file more to read. */
  readonly withProcesses?: boolean;
}

/** What is read for figures: those of the cgroup, or also what its processes hold open, which is far more to read. */
export type FiguresWanted = 'cgroup' | 'all';

export interface StatsReader {
  /** null when its cgroups are gone, or can't be known from its path. Rejects when they can't be read. */
  readonly read: (target: StatsTarget) => Promise<CgroupUsage | null>;
  /** By id; those that have gone, or can't be read, are left out. */
  readonly readAll: (targets: readonly StatsTarget[]) => Promise<ReadonlyMap<string, CgroupUsage>>;
  /** null when its cgroups are gone, or can't be known from its path. */
  readonly readFigures: (target: StatsTarget, wanted: FiguresWanted) => Promise<CgroupFigures | null>;
  /** Interfaces but loopback of the namespace that the process is in; null when it is gone. */
  readonly readInterfaces: (process: ProcessName) => Promise<readonly InterfaceCounters[] | null>;
  /** Samples it from now on, if somebody asks for stats: its first are then told without a wait. read does this as well. */
  readonly watch: (target: StatsTarget) => void;
  /** Closes its files. Not needed for one that is removed: that is noticed. */
  readonly forget: (id: string) => void;
  readonly close: () => void;
}

/** What writable layers hold together. */
export interface LayersTotal {
  readonly timestamp: string;
  readonly usedBytes: bigint;
  readonly inodesUsed: bigint;
}

export interface UsageCollector {
  /** A container's layer, to be counted while somebody asks: the upper directory of its snapshot, then those of its image's volumes. */
  readonly watch: (containerId: string, dirs: readonly string[]) => void;
  readonly forget: (containerId: string) => void;
  /**
   * To be waited for before counts are asked for, each time: it has them counted. Resolves at once, but for those who ask after a
   * rest, while the first count goes on and is not too long. Never rejects.
   */
  readonly counted: () => Promise<void>;
  /** The last count, with the time it was done; undefined before the first is. */
  readonly usageOf: (containerId: string) => FilesystemUsage | undefined;
  /** All layers that are watched, each as it was counted last; the time is that of the newest count, or now where there are none. */
  readonly total: () => LayersTotal;
  readonly close: () => void;
}

/** Of one network interface, since it was made. */
export interface InterfaceCounters {
  readonly name: string;
  readonly rxBytes: bigint;
  readonly rxPackets: bigint;
  readonly rxErrors: bigint;
  readonly rxDropped: bigint;
  readonly txBytes: bigint;
  readonly txPackets: bigint;
  readonly txErrors: bigint;
  readonly txDropped: bigint;
}

export type CgroupFigure =
  | 'cpuNs'
  | 'cpuUserNs'
  | 'cpuSystemNs'
  | 'cfsPeriods'
  | 'cfsThrottledPeriods'
  | 'cfsThrottledNs'
  | 'cpuShares'
  | 'cpuQuotaUs'
  | 'cpuPeriodUs'
  | 'memoryUsage'
  | 'memoryWorkingSet'
  | 'memoryMaxUsage'
  | 'memoryFailures'
  | 'memoryLimit'
  | 'memoryRss'
  | 'memoryCache'
  | 'memoryMappedFile'
  | 'memoryActiveFile'
  | 'memoryInactiveFile'
  | 'memoryReservation'
  | 'memoryKernel'
  | 'memorySwap'
  | 'memorySwapLimit'
  | 'pageFaults'
  | 'majorPageFaults'
  | 'oomKills'
  | 'processes'
  | 'threads'
  | 'threadsMax'
  | 'fileDescriptors'
  | 'sockets'
  | 'openFilesMax'
  | 'cpuWaitingNs'
  | 'cpuStalledNs'
  | 'memoryWaitingNs'
  | 'memoryStalledNs'
  | 'ioWaitingNs'
  | 'ioStalledNs';

/** Memory in bytes. Without a limit, or without the account, a figure is not there. */
export type CgroupFigures = { readonly [figure in CgroupFigure]?: bigint | undefined } & {
  /** Bytes, of each block device that was used, and how often it was. */
  readonly deviceBytes: readonly DeviceCount[];
  readonly deviceTimes: readonly DeviceCount[];
};

/** What a container uses, as the shim of its pod says; null where that does not say it. Never rejects. */
export type TaskFiguresOf = (podSandboxId: string, containerId: string) => Promise<CgroupFigures | null>;

/** A block device by its numbers, as the kernel names it in cgroup files. */
export interface DeviceNumbers {
  readonly major: string;
  readonly minor: string;
}

export interface Device extends DeviceNumbers {
  /** "/dev/sda"; the numbers where it has no name. */
  readonly device: string;
}

export interface DeviceCount extends Device {
  readonly operation: DeviceOperation;
  readonly count: bigint;
}

export type DeviceOperation = 'Read' | 'Write' | 'Discard';

/** Of the file system that writable layers are on, which all of them share. */
export interface FileSystemFigures extends Device {
  readonly limitBytes: bigint;
  readonly inodes: bigint;
  readonly inodesFree: bigint;
}
