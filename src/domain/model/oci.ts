/**
 * The part of the OCI runtime specification (config.json, as runc and crun 1.x read it) that scribe writes,
 * in the specification's own words. One thing differs from the file: an env entry or an argument may be a secret token,
 * which the bundle adapter turns into its value when it writes config.json (C12). Data only, no behaviour.
 */

/** An env entry whose value is a secret: never text in the journal. Kept apart from text so that no image can forge one. */
export interface SecretEnv {
  readonly name: string;
  readonly token: string;
}

/** "NAME=value" as config.json has it, or a secret to be filled in. */
export type OciEnv = string | SecretEnv;

/** An argument that is a secret: an NRI plugin gave it. */
export interface SecretArg {
  readonly token: string;
}

/** An argument as config.json has it, or a secret to be filled in. */
export type OciArg = string | SecretArg;

export interface OciUser {
  readonly uid: number;
  readonly gid: number;
  readonly additionalGids?: readonly number[];
}

export interface OciCapabilities {
  readonly bounding: readonly string[];
  readonly effective: readonly string[];
  readonly permitted: readonly string[];
  readonly inheritable: readonly string[];
  readonly ambient: readonly string[];
}

export interface OciRlimit {
  /** RLIMIT_NOFILE, …: getrlimit(2). */
  readonly type: string;
  readonly soft: number;
  readonly hard: number;
}

export interface OciIOPriority {
  readonly class: string;
  readonly priority: number;
}

export interface OciScheduler {
  readonly policy: string;
  readonly nice?: number;
  readonly priority?: number;
  readonly flags?: readonly string[];
  /** These three in nanoseconds. */
  readonly runtime?: number;
  readonly deadline?: number;
  readonly period?: number;
}

export interface OciMemoryPolicy {
  readonly mode: string;
  readonly nodes: string;
  readonly flags?: readonly string[];
}

export interface OciProcess {
  readonly terminal?: boolean;
  readonly user: OciUser;
  readonly args: readonly OciArg[];
  readonly env: readonly OciEnv[];
  readonly cwd: string;
  readonly capabilities: OciCapabilities;
  readonly noNewPrivileges?: boolean;
  readonly oomScoreAdj?: number;
  readonly apparmorProfile?: string;
  readonly selinuxLabel?: string;
  readonly rlimits?: readonly OciRlimit[];
  readonly ioPriority?: OciIOPriority;
  readonly scheduler?: OciScheduler;
}

export interface OciMount {
  readonly destination: string;
  readonly type?: string;
  readonly source: string;
  readonly options: readonly string[];
}

export type OciNamespaceType = 'pid' | 'network' | 'ipc' | 'uts' | 'mount' | 'cgroup' | 'user';

export interface OciNamespace {
  readonly type: OciNamespaceType;
  /** A file that stands for an existing namespace; absent for a new one. */
  readonly path?: string;
}

export interface OciDevice {
  readonly path: string;
  readonly type: 'c' | 'b' | 'p';
  readonly major: number;
  readonly minor: number;
  readonly fileMode?: number;
  readonly uid?: number;
  readonly gid?: number;
}

export interface OciDeviceCgroup {
  readonly allow: boolean;
  readonly type?: 'a' | 'c' | 'b';
  readonly major?: number;
  readonly minor?: number;
  readonly access: string;
}

export interface OciMemory {
  readonly limit?: number;
  readonly reservation?: number;
  readonly swap?: number;
  readonly kernel?: number;
  readonly kernelTCP?: number;
  readonly swappiness?: number;
  readonly disableOOMKiller?: boolean;
  readonly useHierarchy?: boolean;
}

export interface OciCpu {
  readonly shares?: number;
  readonly quota?: number;
  readonly period?: number;
  readonly realtimeRuntime?: number;
  readonly realtimePeriod?: number;
  readonly cpus?: string;
  readonly mems?: string;
}

export interface OciHugepageLimit {
  readonly pageSize: string;
  readonly limit: number;
}

export interface OciThrottleDevice {
  readonly major: number;
  readonly minor: number;
  readonly rate: number;
}

export interface OciBlockIO {
  readonly weight?: number;
  readonly weightDevice?: readonly { readonly major: number; readonly minor: number; readonly weight: number }[];
  readonly throttleReadBpsDevice?: readonly OciThrottleDevice[];
  readonly throttleWriteBpsDevice?: readonly OciThrottleDevice[];
  readonly throttleReadIOPSDevice?: readonly OciThrottleDevice[];
  readonly throttleWriteIOPSDevice?: readonly OciThrottleDevice[];
}

export interface OciResources {
  readonly devices?: readonly OciDeviceCgroup[];
  readonly memory?: OciMemory;
  readonly cpu?: OciCpu;
  readonly pids?: { readonly limit: number };
  readonly hugepageLimits?: readonly OciHugepageLimit[];
  readonly unified?: Readonly<Record<string, string>>;
  readonly blockIO?: OciBlockIO;
}

export interface OciSeccompArg {
  readonly index: number;
  readonly value: number;
  readonly valueTwo?: number;
  readonly op: string;
}

export interface OciSyscall {
  readonly names: readonly string[];
  readonly action: string;
  readonly errnoRet?: number;
  readonly args?: readonly OciSeccompArg[];
}

export interface OciSeccomp {
  readonly defaultAction: string;
  readonly defaultErrnoRet?: number;
  readonly architectures?: readonly string[];
  readonly flags?: readonly string[];
  readonly listenerPath?: string;
  readonly listenerMetadata?: string;
  readonly syscalls?: readonly OciSyscall[];
}

export type OciRootfsPropagation = 'private' | 'rprivate' | 'slave' | 'rslave' | 'shared' | 'rshared';

export interface OciHook {
  readonly path: string;
  readonly args?: readonly string[];
  readonly env?: readonly OciEnv[];
  /** Seconds. */
  readonly timeout?: number;
}

export interface OciHooks {
  readonly prestart?: readonly OciHook[];
  readonly createRuntime?: readonly OciHook[];
  readonly createContainer?: readonly OciHook[];
  readonly startContainer?: readonly OciHook[];
  readonly poststart?: readonly OciHook[];
  readonly poststop?: readonly OciHook[];
}

export interface OciIntelRdt {
  readonly closID?: string;
  readonly l3CacheSchema?: string;
  readonly memBwSchema?: string;
  readonly schemata?: readonly string[];
  readonly enableMonitoring?: boolean;
}

export interface OciIdMapping {
  readonly containerID: number;
  readonly hostID: number;
  readonly size: number;
}

export interface OciLinux {
  readonly uidMappings?: readonly OciIdMapping[];
  readonly gidMappings?: readonly OciIdMapping[];
  readonly namespaces: readonly OciNamespace[];
  readonly cgroupsPath: string;
  readonly resources: OciResources;
  readonly devices?: readonly OciDevice[];
  readonly sysctl?: Readonly<Record<string, string>>;
  readonly seccomp?: OciSeccomp;
  readonly mountLabel?: string;
  readonly maskedPaths?: readonly string[];
  readonly readonlyPaths?: readonly string[];
  readonly rootfsPropagation?: OciRootfsPropagation;
  readonly intelRdt?: OciIntelRdt;
  /** By the name of the interface on the host. */
  readonly netDevices?: Readonly<Record<string, { readonly name: string }>>;
  readonly memoryPolicy?: OciMemoryPolicy;
}

export interface OciSpec {
  readonly ociVersion: string;
  readonly process: OciProcess;
  readonly root: { readonly path: string; readonly readonly?: boolean };
  readonly hostname?: string;
  readonly mounts: readonly OciMount[];
  readonly hooks?: OciHooks;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly linux: OciLinux;
}

/** Older than all that is used of it, so that every runtime in use takes it. */
export const OCI_VERSION = '1.0.2';
