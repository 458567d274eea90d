/**
 * What shims are told and what they tell: mounts, bundles, tasks and the shims themselves. Types only, the same in
 * effects, records and state.
 */
import type { Int64 } from './cri.ts';
import type { OciSpec } from './oci.ts';

/** A mount as the shim API passes it (containerd.types.Mount). */
export interface Mount {
  readonly type: string;
  readonly source: string;
  readonly target?: string;
  readonly options: readonly string[];
}

/** An OCI bundle to be written: <path>/config.json (0600), <path>/rootfs, and the shim's log FIFO. */
export interface Bundle {
  readonly id: string;
  readonly path: string;
  readonly spec: OciSpec;
}

/** A live shim: enough to reconnect to it, and to tell it from another process with the same pid. */
export interface ShimAddress {
  /** unix:///… as the shim printed it. */
  readonly address: string;
  /** Version of the task service: 2 or 3. */
  readonly taskApi: 2 | 3;
  readonly pid: number;
  /** Field 22 of /proc/<pid>/stat: with the boot id and pid it names a process for ever. */
  readonly startTicks: Int64;
  /** Absent: it is the pod's own, or shared, and has its id and place from there. Present: it may serve another pod after. */
  readonly origin?: ShimOrigin;
}

/** What a shim is started under and where, when it is not the shim of one pod for life. */
export interface ShimOrigin {
  /** As a pod's own shim is started under the pod's id. */
  readonly id: string;
  /** Where it is started, and logs: no pod's bundle, as it outlives any of its pods. */
  readonly dir: string;
}

export interface LaunchedTask {
  readonly pid: number;
  readonly startTicks: Int64;
}

export interface TaskExit {
  readonly pid: number;
  readonly exitStatus: number;
  readonly exitedAtNs: Int64;
  /** The cgroup's count of processes killed for lack of memory, read before the task is deleted. */
  readonly oomKills: number;
  /** Where memory ran out: its cgroup, and what that said before it went. Absent: it did not, or nobody could look. */
  readonly memory?: TaskMemory;
}

/** Of a memory cgroup, in bytes; what its files do not say is absent. */
export interface TaskMemory {
  readonly cgroup: string;
  /** Absent: none. */
  readonly limitBytes?: Int64;
  /** The most that was ever used. */
  readonly peakBytes?: Int64;
}

/** Where a container's output goes: absolute path of the CRI log file, null to discard it. */
export interface ContainerLog {
  readonly path: string | null;
  /** The pod's own, which the path is beneath; absent where there is no path. */
  readonly directory?: string;
}

/** A task as its shim sees it, asked after every reconnect (C3). */
export interface ObservedTask {
  readonly containerId: string;
  readonly status: 'created' | 'running' | 'stopped' | 'absent';
  readonly pid: number;
  /** Start time of that pid; '0' when there is no process. */
  readonly startTicks?: Int64;
  readonly exit?: TaskExit;
  /** Of one that is stopped: its process ended while it waited to be started, so that the exit is none of its program's. */
  readonly neverBegan?: true;
}
