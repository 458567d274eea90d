/**
 * What NRI plugins are told of pods and containers, and what they answer, in the words of nri.pkg.api.v1alpha1. Copies,
 * never the state itself. Secrets in it are tokens (C12): whoever sends a view puts the values in. 64-bit integers are
 * decimal text, and what is not said is absent. Types only.
 */
import type { Int64, SecurityProfile } from './cri.ts';
import type {
  ContainerAdjustment,
  NriIoPriority,
  NriNamespace,
  NriRdt,
  NriResources,
  NriRlimit,
  NriScheduler,
} from './nri.ts';
import type { OciArg, OciDevice, OciEnv, OciHooks, OciMount, OciSeccomp, OciUser } from './oci.ts';

export interface NriLinuxPodSandbox {
  /** These two as CRI said them. */
  readonly podOverhead?: NriResources;
  readonly podResources?: NriResources;
  readonly cgroupParent?: string;
  /** These three as the OCI spec has them. */
  readonly cgroupsPath?: string;
  readonly namespaces?: readonly NriNamespace[];
  readonly resources?: NriResources;
}

export interface NriPodSandbox {
  readonly id: string;
  readonly name?: string;
  readonly uid?: string;
  readonly namespace?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly runtimeHandler?: string;
  readonly linux?: NriLinuxPodSandbox;
  /** Absent: no process of this node holds it. */
  readonly pid?: number;
  readonly ips?: readonly string[];
}

/** Enum ContainerState of the protocol. */
export type NriContainerState =
  | 'CONTAINER_UNKNOWN'
  | 'CONTAINER_CREATED'
  | 'CONTAINER_PAUSED'
  | 'CONTAINER_RUNNING'
  | 'CONTAINER_STOPPED';

export interface NriLinuxContainer {
  readonly namespaces?: readonly NriNamespace[];
  readonly devices?: readonly OciDevice[];
  readonly resources?: NriResources;
  readonly oomScoreAdj?: number;
  readonly cgroupsPath?: string;
  readonly ioPriority?: NriIoPriority;
  /** As CRI asked for it, and what came of it. */
  readonly seccompProfile?: SecurityProfile;
  readonly seccompPolicy?: OciSeccomp;
  readonly sysctl?: Readonly<Record<string, string>>;
  /** By the name of the interface on the host. */
  readonly netDevices?: Readonly<Record<string, { readonly name: string }>>;
  readonly scheduler?: NriScheduler;
  readonly rdt?: NriRdt;
}

export interface NriImage {
  /** As it was asked for. */
  readonly name: string;
  /** Of the manifest; absent: nobody knows it any more. */
  readonly digest?: string;
  readonly configDigest: string;
}

export interface NriContainer {
  readonly id: string;
  readonly podSandboxId: string;
  readonly name: string;
  readonly state: NriContainerState;
  readonly labels?: Readonly<Record<string, string>>;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly args?: readonly OciArg[];
  readonly env?: readonly OciEnv[];
  readonly mounts?: readonly OciMount[];
  readonly hooks?: OciHooks;
  readonly linux?: NriLinuxContainer;
  /** Absent: none yet, or not any more. */
  readonly pid?: number;
  readonly rlimits?: readonly NriRlimit[];
  /** Absent: it has not happened. */
  readonly createdAtNs?: Int64;
  readonly startedAtNs?: Int64;
  readonly finishedAtNs?: Int64;
  /** Absent: 0. */
  readonly exitCode?: number;
  readonly statusReason?: string;
  readonly statusMessage?: string;
  /** Fully qualified names: vendor.com/class=device. */
  readonly cdiDevices?: readonly string[];
  readonly user?: OciUser;
  readonly image?: NriImage;
}

/** Limits of a container that a plugin wants changed. */
export interface NriUpdate {
  readonly containerId: string;
  readonly resources?: NriResources;
  /** What the call that brought it does not fail for. */
  readonly ignoreFailure?: true;
}

/** A container that a plugin wants stopped. */
export interface NriEviction {
  readonly containerId: string;
  readonly reason: string;
}

/** Hooks that are told something, and answer that they heard, or fail. */
export type NriNotice =
  | 'RunPodSandbox'
  | 'StopPodSandbox'
  | 'RemovePodSandbox'
  | 'UpdatePodSandbox'
  | 'PostUpdatePodSandbox'
  | 'PostCreateContainer'
  | 'StartContainer'
  | 'PostStartContainer'
  | 'PostUpdateContainer'
  | 'RemoveContainer';

/** What a plugin wants of other containers. */
export interface NriRequests {
  readonly updates?: readonly NriUpdate[];
  readonly evictions?: readonly NriEviction[];
}

/** What a plugin answered to a hook. A failure is none of these. */
export type NriAnswer =
  | { readonly hook: NriNotice }
  | ({ readonly hook: 'CreateContainer'; readonly adjust?: ContainerAdjustment } & NriRequests)
  | ({ readonly hook: 'UpdateContainer' } & NriRequests)
  | ({ readonly hook: 'StopContainer' | 'Synchronize' } & Pick<NriRequests, 'updates'>)
  /** rejected: why the container may not be made as plugins want it. */
  | { readonly hook: 'ValidateContainerAdjustment'; readonly rejected?: { readonly reason: string } };

export type NriHook = NriAnswer['hook'];

/** A plugin as others are told of it. */
export interface NriPluginInstance {
  readonly name: string;
  /** Two digits. */
  readonly index: string;
}
