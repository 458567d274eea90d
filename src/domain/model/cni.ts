/** A pod's network, in the words of CNI: what the configuration says, and what plugins are told of a pod. Data only. */
import type { Int64, PortMapping } from './cri.ts';

/** What the CNI plugins of a pod are told; chosen before ADD, the same for DEL (C2, C6). */
export interface PodNetwork {
  readonly podSandboxId: string;
  readonly netnsPath: string;
  readonly ifName: string;
  /** The whole network configuration list as it was when the pod was made. */
  readonly confList: CniConfList;
  readonly name: string;
  readonly namespace: string;
  readonly uid: string;
  readonly portMappings: readonly PortMapping[];
  readonly dns?: {
    readonly servers: readonly string[];
    readonly searches: readonly string[];
    readonly options: readonly string[];
  };
  readonly bandwidth?: {
    readonly ingressRate?: Int64;
    readonly ingressBurst?: Int64;
    readonly egressRate?: Int64;
    readonly egressBurst?: Int64;
  };
  readonly cgroupPath?: string;
  readonly podAnnotations: Readonly<Record<string, string>>;
}

export interface CniConfList {
  readonly cniVersion: string;
  readonly name: string;
  readonly plugins: readonly CniPluginConf[];
  readonly disableCheck?: boolean;
}

/** What a configuration directory says: a network, or why there is none. */
export interface ConfiguredNetwork {
  readonly confList: CniConfList | null;
  readonly problem: string | null;
}

export interface CniPluginConf {
  readonly type: string;
  readonly capabilities?: Readonly<Record<string, boolean>>;
  readonly [key: string]: unknown;
}
