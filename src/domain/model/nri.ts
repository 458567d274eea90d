/**
 * NRI's words (nri.pkg.api.v1alpha1) as they are decided with and recorded: what a plugin changes in a container that is
 * being created, and in others. 64-bit integers are decimal text, what is not set is absent, and a key that begins with
 * "-" takes away what stands there. Types, and the numbers that the protocol gives to fields; no behaviour.
 */
import type { Int64 } from './cri.ts';
import type { OciArg, OciDevice, OciDeviceCgroup, OciEnv, OciHooks, OciMount, OciSeccomp } from './oci.ts';

/** Enum Field of the protocol: what a plugin can own in a container. */
export const NRI_FIELDS = {
  Annotations: 1,
  Mounts: 2,
  OciHooks: 3,
  Devices: 4,
  CdiDevices: 5,
  Env: 6,
  Args: 7,
  MemLimit: 8,
  MemReservation: 9,
  MemSwapLimit: 10,
  MemKernelLimit: 11,
  MemTCPLimit: 12,
  MemSwappiness: 13,
  MemDisableOomKiller: 14,
  MemUseHierarchy: 15,
  CPUShares: 16,
  CPUQuota: 17,
  CPUPeriod: 18,
  CPURealtimeRuntime: 19,
  CPURealtimePeriod: 20,
  CPUSetCPUs: 21,
  CPUSetMems: 22,
  PidsLimit: 23,
  HugepageLimits: 24,
  BlockioClass: 25,
  RdtClass: 26,
  CgroupsUnified: 27,
  CgroupsPath: 28,
  OomScoreAdj: 29,
  Rlimits: 30,
  IoPriority: 31,
  SeccompPolicy: 32,
  Namespace: 33,
  Sysctl: 34,
  LinuxNetDevices: 35,
  LinuxSched: 36,
  RdtClosID: 37,
  RdtSchemata: 38,
  RdtEnableMonitoring: 39,
  MemoryPolicy: 40,
} as const;
export type NriField = keyof typeof NRI_FIELDS;

export interface NriMemory {
  readonly limit?: Int64;
  readonly reservation?: Int64;
  readonly swap?: Int64;
  readonly kernel?: Int64;
  readonly kernelTcp?: Int64;
  readonly swappiness?: Int64;
  readonly disableOomKiller?: boolean;
  readonly useHierarchy?: boolean;
}

export interface NriCpu {
  readonly shares?: Int64;
  readonly quota?: Int64;
  readonly period?: Int64;
  readonly realtimeRuntime?: Int64;
  readonly realtimePeriod?: Int64;
  readonly cpus?: string;
  readonly mems?: string;
}

export interface NriHugepageLimit {
  readonly pageSize: string;
  readonly limit: Int64;
}

export interface NriResources {
  readonly memory?: NriMemory;
  readonly cpu?: NriCpu;
  readonly hugepageLimits?: readonly NriHugepageLimit[];
  readonly blockioClass?: string;
  readonly rdtClass?: string;
  readonly unified?: Readonly<Record<string, string>>;
  readonly devices?: readonly OciDeviceCgroup[];
  readonly pids?: { readonly limit: Int64 };
}

export interface NriRlimit {
  /** RLIMIT_NOFILE, … */
  readonly type: string;
  readonly hard: Int64;
  readonly soft: Int64;
}

export interface NriNamespace {
  /** In the words of the OCI runtime specification. */
  readonly type: string;
  /** Absent: a new one. */
  readonly path?: string;
}

export interface NriIoPriority {
  /** IOPRIO_CLASS_RT, … */
  readonly class: string;
  readonly priority: number;
}

export interface NriScheduler {
  /** SCHED_OTHER, … */
  readonly policy: string;
  readonly nice?: number;
  readonly priority?: number;
  readonly flags?: readonly string[];
  readonly runtimeNs?: Int64;
  readonly deadlineNs?: Int64;
  readonly periodNs?: Int64;
}

export interface NriMemoryPolicy {
  /** MPOL_BIND, … */
  readonly mode: string;
  readonly nodes: string;
  readonly flags?: readonly string[];
}

export interface NriRdt {
  readonly closId?: string;
  readonly schemata?: readonly string[];
  readonly enableMonitoring?: boolean;
  /** Takes away all three first. */
  readonly remove?: boolean;
}

export interface LinuxContainerAdjustment {
  readonly devices?: readonly OciDevice[];
  readonly resources?: NriResources;
  readonly cgroupsPath?: string;
  readonly oomScoreAdj?: number;
  readonly ioPriority?: NriIoPriority;
  readonly seccompPolicy?: OciSeccomp;
  readonly namespaces?: readonly NriNamespace[];
  readonly sysctl?: Readonly<Record<string, string>>;
  /** By the name of the interface on the host. */
  readonly netDevices?: Readonly<Record<string, { readonly name: string }>>;
  readonly scheduler?: NriScheduler;
  readonly rdt?: NriRdt;
  readonly memoryPolicy?: NriMemoryPolicy;
}

export interface ContainerAdjustment {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly mounts?: readonly OciMount[];
  readonly env?: readonly OciEnv[];
  readonly hooks?: OciHooks;
  readonly linux?: LinuxContainerAdjustment;
  readonly rlimits?: readonly NriRlimit[];
  /** Fully qualified names: vendor.com/class=device. */
  readonly cdiDevices?: readonly string[];
  /** With an empty first one they take the place of what another plugin said. */
  readonly args?: readonly OciArg[];
}

/**
 * Which plugin ("NN-name") said what of one container. simple: fields that have one owner. compound: by field, then by
 * key. A plugin that took away what stood there, and put nothing in its place, is "-NN-name": it holds nobody up.
 */
export interface FieldOwners {
  readonly simple: Readonly<Record<string, string>>;
  readonly compound: Readonly<Record<string, Readonly<Record<string, string>>>>;
}
