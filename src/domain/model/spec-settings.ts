/** What the configuration says of OCI specs, in the words of facts and records. Types only. */
import type { RuntimeHandler } from './runtime-handler.ts';

export type CgroupDriver = 'cgroupfs' | 'systemd';

export interface SpecSettings
  extends Pick<RuntimeHandler, 'podAnnotations' | 'containerAnnotations' | 'privilegedDevices' | 'baseSpec'> {
  readonly cgroupDriver: CgroupDriver;
  /** Never set an oom_score_adj below the daemon's own. */
  readonly restrictOomScoreAdj: boolean;
  /** Pods with a network of their own may bind ports below 1024 without a capability. */
  readonly enableUnprivilegedPorts: boolean;
  /** Pods with a network of their own may open ICMP echo sockets without CAP_NET_RAW. */
  readonly enableUnprivilegedIcmp: boolean;
  /** The runtime handler knows the "rro" mount option; absent: it does not. */
  readonly recursiveReadOnlyMounts?: boolean;
  /** The runtime handler's OCI runtime can move network interfaces into a container; absent: it cannot. */
  readonly netDevices?: boolean;
  /** Specs name the devices that every OCI runtime allows by itself; absent: they do not. */
  readonly standardDeviceRules?: boolean;
  /** In pods with users of their own, devices of other names than the node's are mounts; absent: they are devices. */
  readonly mountedDevices?: boolean;
  /** A class of RDT that a node without resctrl cannot give is not given, instead of refused. */
  readonly ignoreRdtNotEnabledErrors?: boolean;
  /** A class of block I/O is not given, instead of refused, where no classes are configured. */
  readonly ignoreBlockIONotEnabledErrors?: boolean;
}
