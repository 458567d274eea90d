/**
 * The part of CRI (k8s.io/cri-api v0.37.2, runtime.v1) that decisions are made from: pod and container
 * configuration in the words of api.proto, camelCased. An absent field means its proto3 default, so that the
 * journal carries no defaults. 64-bit integers are decimal strings (Int64), as everywhere in record bodies.
 * Must not know encodings: the CRI adapter turns wire messages into these shapes and redacts them on the way.
 */

import type { OciArg } from './oci.ts';

/** A 64-bit integer as decimal text: exact in JSON, turned into a bigint only where it is calculated with. */
export type Int64 = string;

export const NamespaceMode = { POD: 0, CONTAINER: 1, NODE: 2, TARGET: 3 } as const;
export type NamespaceMode = number;

export const SupplementalGroupsPolicy = { Merge: 0, Strict: 1 } as const;
export type SupplementalGroupsPolicy = number;

export const MountPropagation = {
  PROPAGATION_PRIVATE: 0,
  PROPAGATION_HOST_TO_CONTAINER: 1,
  PROPAGATION_BIDIRECTIONAL: 2,
} as const;
export type MountPropagation = number;

export const ProfileType = { RuntimeDefault: 0, Unconfined: 1, Localhost: 2 } as const;
export type ProfileType = number;

export const Protocol = { TCP: 0, UDP: 1, SCTP: 2 } as const;
export type Protocol = number;

/** The Signal enum of api.proto: 0 is "the runtime's default"; the others are named in oci/signals.ts. */
export type Signal = number;

export interface PodSandboxMetadata {
  readonly name?: string;
  readonly uid?: string;
  readonly namespace?: string;
  readonly attempt?: number;
}

export interface DNSConfig {
  readonly servers?: readonly string[];
  readonly searches?: readonly string[];
  readonly options?: readonly string[];
}

export interface PortMapping {
  readonly protocol?: Protocol;
  readonly containerPort?: number;
  readonly hostPort?: number;
  readonly hostIp?: string;
}

export interface IDMapping {
  readonly hostId?: number;
  readonly containerId?: number;
  readonly length?: number;
}

export interface UserNamespace {
  readonly mode?: NamespaceMode;
  readonly uids?: readonly IDMapping[];
  readonly gids?: readonly IDMapping[];
}

export interface NamespaceOption {
  readonly network?: NamespaceMode;
  readonly pid?: NamespaceMode;
  readonly ipc?: NamespaceMode;
  readonly targetId?: string;
  readonly usernsOptions?: UserNamespace;
}

export interface SELinuxOption {
  readonly user?: string;
  readonly role?: string;
  readonly type?: string;
  readonly level?: string;
}

export interface Int64Value {
  readonly value?: Int64;
}

export interface SecurityProfile {
  readonly profileType?: ProfileType;
  readonly localhostRef?: string;
}

export interface LinuxSandboxSecurityContext {
  readonly namespaceOptions?: NamespaceOption;
  readonly selinuxOptions?: SELinuxOption;
  readonly runAsUser?: Int64Value;
  readonly runAsGroup?: Int64Value;
  readonly readonlyRootfs?: boolean;
  readonly supplementalGroups?: readonly Int64[];
  readonly supplementalGroupsPolicy?: SupplementalGroupsPolicy;
  readonly privileged?: boolean;
  readonly seccomp?: SecurityProfile;
  readonly apparmor?: SecurityProfile;
  readonly seccompProfilePath?: string;
}

export interface HugepageLimit {
  readonly pageSize?: string;
  readonly limit?: Int64;
}

export interface LinuxContainerResources {
  readonly cpuPeriod?: Int64;
  readonly cpuQuota?: Int64;
  readonly cpuShares?: Int64;
  readonly memoryLimitInBytes?: Int64;
  readonly oomScoreAdj?: Int64;
  readonly cpusetCpus?: string;
  readonly cpusetMems?: string;
  readonly hugepageLimits?: readonly HugepageLimit[];
  readonly unified?: Readonly<Record<string, string>>;
  readonly memorySwapLimitInBytes?: Int64;
}

export interface LinuxPodSandboxConfig {
  readonly cgroupParent?: string;
  readonly securityContext?: LinuxSandboxSecurityContext;
  readonly sysctls?: Readonly<Record<string, string>>;
  readonly overhead?: LinuxContainerResources;
  readonly resources?: LinuxContainerResources;
}

export interface PodSandboxConfig {
  readonly metadata?: PodSandboxMetadata;
  readonly hostname?: string;
  readonly logDirectory?: string;
  readonly dnsConfig?: DNSConfig;
  readonly portMappings?: readonly PortMapping[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly linux?: LinuxPodSandboxConfig;
}

export interface ContainerMetadata {
  readonly name?: string;
  readonly attempt?: number;
}

export interface ImageSpec {
  readonly image?: string;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly userSpecifiedImage?: string;
  readonly runtimeHandler?: string;
  readonly imageRef?: string;
}

export interface KeyValue {
  readonly key?: string;
  /** A token that stands for the value (adapters/cri/messages/from-wire.ts); the value itself never enters the domain. */
  readonly token?: string;
}

export interface Mount {
  readonly containerPath?: string;
  readonly hostPath?: string;
  readonly readonly?: boolean;
  readonly selinuxRelabel?: boolean;
  readonly propagation?: MountPropagation;
  readonly uidMappings?: readonly IDMapping[];
  readonly gidMappings?: readonly IDMapping[];
  readonly recursiveReadOnly?: boolean;
  readonly image?: ImageSpec;
  readonly imageSubPath?: string;
  readonly mountOptions?: readonly string[];
}

export interface Device {
  readonly containerPath?: string;
  readonly hostPath?: string;
  readonly permissions?: string;
}

export interface Capability {
  readonly addCapabilities?: readonly string[];
  readonly dropCapabilities?: readonly string[];
  readonly addAmbientCapabilities?: readonly string[];
}

export interface LinuxContainerSecurityContext {
  readonly capabilities?: Capability;
  readonly privileged?: boolean;
  readonly namespaceOptions?: NamespaceOption;
  readonly selinuxOptions?: SELinuxOption;
  readonly runAsUser?: Int64Value;
  readonly runAsGroup?: Int64Value;
  readonly runAsUsername?: string;
  readonly readonlyRootfs?: boolean;
  readonly supplementalGroups?: readonly Int64[];
  readonly supplementalGroupsPolicy?: SupplementalGroupsPolicy;
  readonly noNewPrivs?: boolean;
  readonly maskedPaths?: readonly string[];
  readonly readonlyPaths?: readonly string[];
  readonly seccomp?: SecurityProfile;
  readonly apparmor?: SecurityProfile;
  readonly apparmorProfile?: string;
  readonly seccompProfilePath?: string;
}

export interface LinuxContainerConfig {
  readonly resources?: LinuxContainerResources;
  readonly securityContext?: LinuxContainerSecurityContext;
}

export interface CDIDevice {
  readonly name?: string;
}

export interface ContainerConfig {
  readonly metadata?: ContainerMetadata;
  readonly image?: ImageSpec;
  /** Words that the node's policy has sealed are tokens (C12). */
  readonly command?: readonly OciArg[];
  readonly args?: readonly OciArg[];
  readonly workingDir?: string;
  readonly envs?: readonly KeyValue[];
  readonly mounts?: readonly Mount[];
  readonly devices?: readonly Device[];
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly logPath?: string;
  readonly stdin?: boolean;
  readonly stdinOnce?: boolean;
  readonly tty?: boolean;
  readonly linux?: LinuxContainerConfig;
  readonly CDIDevices?: readonly CDIDevice[];
  readonly stopSignal?: Signal;
}
