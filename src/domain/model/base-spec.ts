/** What the configuration gives a runtime handler's containers to begin with. Types only. */
import type {
  OciDevice,
  OciDeviceCgroup,
  OciHooks,
  OciIntelRdt,
  OciMount,
  OciResources,
  OciRlimit,
  OciRootfsPropagation,
} from './oci.ts';

export interface BaseSpec {
  readonly env?: readonly string[];
  /** What a container that adds and drops nothing gets. */
  readonly capabilities?: readonly string[];
  readonly noNewPrivileges?: boolean;
  readonly rlimits?: readonly OciRlimit[];
  readonly mounts?: readonly OciMount[];
  readonly hooks?: OciHooks;
  readonly annotations?: Readonly<Record<string, string>>;
  readonly sysctl?: Readonly<Record<string, string>>;
  /** Without the rules of devices. */
  readonly resources?: OciResources;
  /** Those that allow something. */
  readonly deviceRules?: readonly OciDeviceCgroup[];
  readonly devices?: readonly OciDevice[];
  readonly rootfsPropagation?: OciRootfsPropagation;
  readonly intelRdt?: OciIntelRdt;
}
