/**
 * What specs and status replies depend on of the machine itself. Read once per start of the daemon by the linux
 * adapter and recorded, so that a replay on another machine decides the same (C13). Plain data, no behaviour.
 */

/** Control groups as they are mounted. */
export interface CgroupFacts {
  readonly version: 1 | 2;
  /** Controller ("cpu", "memory", "hugetlb", …) to the directory its hierarchy is mounted at; v2: one directory for all. */
  readonly controllers: Readonly<Record<string, string>>;
  /** memory.memsw.limit_in_bytes (v1) or memory.swap.max (v2) exists: a limit on swap can be set. */
  readonly swapAccounting: boolean;
}

export interface NodeFacts {
  /** /proc/sys/kernel/random/boot_id. */
  readonly bootId: string;
  readonly kernelRelease: string;
  /** In Go's words, as images have it: amd64, arm64. */
  readonly architecture: string;
  readonly cgroup: CgroupFacts;
  /** The daemon's own effective set, as CAP_… names: more than that cannot be handed on. */
  readonly capabilities: readonly string[];
  /** CAP_SYS_RESOURCE is effective: oom_score_adj may be lowered. */
  readonly canRaiseLimits: boolean;
  readonly ownOomScoreAdj: number;
  readonly seccomp: boolean;
  readonly apparmor: boolean;
  readonly selinux: boolean;
  /** /sys/fs/resctrl is mounted: classes of Intel RDT can be used. Absent (in older journals): it is not. */
  readonly resctrl?: boolean;
  /** As cgroup files and CRI spell them: "2MB", "1GB". */
  readonly hugepageSizes: readonly string[];
  readonly hostname: string;
  readonly cpuCount: number;
}
