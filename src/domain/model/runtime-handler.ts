/** Runtime handlers: what the configuration says of them, and what their OCI runtimes can do. */
import type { BaseSpec } from './base-spec.ts';
import type { Sandboxer } from './sandboxer.ts';

/**
 * What a privileged container gets where it is not given all devices of the node.
 * allowed: none, but any may be made and used; asked: those that are asked for and no other.
 */
export type PrivilegedDevices = 'allowed' | 'asked';

/** Of containerd.runc.v1.Options, in its words. */
export interface RuncShimOptions {
  readonly noPivotRoot?: boolean;
  readonly noNewKeyring?: boolean;
  readonly ioUid?: number;
  readonly ioGid?: number;
}

/** runtimeoptions.v1.Options, in its words. */
export interface GenericShimOptions {
  readonly typeUrl: string;
  readonly configPath: string;
  /** TOML. */
  readonly configBody: string;
}

/** How a runtime handler runs its tasks; from the configuration, fixed for the life of the pod. */
export interface RuntimeHandler {
  readonly name: string;
  /** For instance io.containerd.runc.v2: the binary is containerd-shim-runc-v2. */
  readonly runtimeType: string;
  /** Path of the shim binary when the configuration gives one; else it is looked up in PATH. */
  readonly shimPath?: string;
  /** OCI runtime by name or path: runc, crun. */
  readonly binaryName: string;
  readonly systemdCgroup: boolean;
  /** What else runc's shim is told; absent: nothing. */
  readonly runcOptions?: RuncShimOptions;
  /** What another shim is told; absent: nothing. */
  readonly shimOptions?: GenericShimOptions;
  /** Patterns of the pods' annotations that are handed on with every task of the pod; absent: none. */
  readonly podAnnotations?: readonly string[];
  /** Patterns of the containers' annotations that are handed on with their tasks; absent: none. */
  readonly containerAnnotations?: readonly string[];
  /** What the specs of its pods' containers begin with; absent: nothing. */
  readonly baseSpec?: BaseSpec;
  /** Where its pods' network is configured, if not where everybody's is; the network's name if not the first. */
  readonly cni?: { readonly confDir: string; readonly networkName?: string };
  /** What a privileged container gets of the node's devices; absent: all of them. */
  readonly privilegedDevices?: PrivilegedDevices;
  /** What its pods have where they can do with it; absent (in older journals): pause. */
  readonly sandboxer?: Sandboxer;
  /** How many of its pods may have one shim together; absent: each has its own. */
  readonly podsPerShim?: number;
  /** Its OCI runtime and the kernel know recursive read-only mounts; absent (in older journals): they do not. */
  readonly recursiveReadOnlyMounts?: boolean;
  /** They can give a pod users of its own; absent (in older journals): they cannot. */
  readonly userNamespaces?: boolean;
  /** Its OCI runtime can move network interfaces into a container; absent (in older journals): it cannot. */
  readonly netDevices?: boolean;
  /** Its OCI runtime can set a container's memory policy; absent (in older journals): it cannot. */
  readonly memoryPolicy?: boolean;
}

/** Runtimes whose shims take containerd.runc.v1.Options; others would refuse a message that they do not know. */
export const takesRuncOptions = ({ runtimeType }: Pick<RuntimeHandler, 'runtimeType'>): boolean =>
  runtimeType.startsWith('io.containerd.runc.');

/** Runtimes that run a pod in a machine of its own: Kata's shims start one as a process of the node. */
export const startsMachines = ({ runtimeType }: Pick<RuntimeHandler, 'runtimeType'>): boolean =>
  runtimeType.startsWith('io.containerd.kata');
