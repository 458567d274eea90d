/** Parts of containers and of adjustments, from the domain's words to the wire. What is absent is the protocol's default. */
import type {
  NriIoPriority,
  NriMemoryPolicy,
  NriNamespace,
  NriRdt,
  NriRlimit,
  NriScheduler,
} from '../../../domain/model/nri.ts';
import type {
  OciDevice,
  OciHook,
  OciHooks,
  OciMount,
  OciSeccomp,
  OciSeccompArg,
  OciSyscall,
} from '../../../domain/model/oci.ts';
import { rlimitText } from '../../../domain/oci/rlimits.ts';
import * as wire from '../../../wire/nri/api.ts';
import { numberIn } from './enums.ts';
import { filledEnv, type ValueOf } from './secrets.ts';

const ZERO = '0';

/** A message around a value, which is there also when the value is 0. */
export const optional = <T>(value: T | undefined): { value: T } | undefined =>
  value === undefined ? undefined : { value };

export const mountToWire = ({ destination, type = '', source, options }: OciMount): wire.Mount => ({
  destination,
  type,
  source,
  options: [...options],
});

export const namespaceToWire = ({ type, path = '' }: NriNamespace): wire.LinuxNamespace => ({ type, path });

export const deviceToWire = ({ path, type, major, minor, fileMode, uid, gid }: OciDevice): wire.LinuxDevice => ({
  path,
  type,
  major: String(major),
  minor: String(minor),
  fileMode: optional(fileMode),
  uid: optional(uid),
  gid: optional(gid),
});

const hookToWire =
  (valueOf: ValueOf) =>
  ({ path, args = [], env = [], timeout }: OciHook): wire.Hook => ({
    path,
    args: [...args],
    env: filledEnv(env, valueOf),
    timeout: optional(timeout === undefined ? undefined : String(timeout)),
  });

export function hooksToWire(hooks: OciHooks, valueOf: ValueOf): wire.Hooks {
  const convert = (some: readonly OciHook[] = []): wire.Hook[] => some.map(hookToWire(valueOf));
  return {
    prestart: convert(hooks.prestart),
    createRuntime: convert(hooks.createRuntime),
    createContainer: convert(hooks.createContainer),
    startContainer: convert(hooks.startContainer),
    poststart: convert(hooks.poststart),
    poststop: convert(hooks.poststop),
  };
}

const seccompArgToWire = ({ index, value, valueTwo = 0, op }: OciSeccompArg): wire.LinuxSeccompArg => ({
  index,
  value: String(value),
  valueTwo: String(valueTwo),
  op,
});

const syscallToWire = ({ names, action, errnoRet, args = [] }: OciSyscall): wire.LinuxSyscall => ({
  names: [...names],
  action,
  errnoRet: optional(errnoRet),
  args: args.map(seccompArgToWire),
});

export const seccompToWire = (seccomp: OciSeccomp): wire.LinuxSeccomp => ({
  defaultAction: seccomp.defaultAction,
  defaultErrno: optional(seccomp.defaultErrnoRet),
  architectures: [...(seccomp.architectures ?? [])],
  flags: [...(seccomp.flags ?? [])],
  listenerPath: seccomp.listenerPath ?? '',
  listenerMetadata: seccomp.listenerMetadata ?? '',
  syscalls: (seccomp.syscalls ?? []).map(syscallToWire),
});

export const ioPriorityToWire = ({ class: name, priority }: NriIoPriority): wire.LinuxIOPriority => ({
  class: numberIn(wire.IOPrioClass, name),
  priority,
});

export const schedulerToWire = (scheduler: NriScheduler): wire.LinuxScheduler => ({
  policy: numberIn(wire.LinuxSchedulerPolicy, scheduler.policy),
  nice: scheduler.nice ?? 0,
  priority: scheduler.priority ?? 0,
  flags: (scheduler.flags ?? []).map((flag) => numberIn(wire.LinuxSchedulerFlag, flag)),
  runtime: scheduler.runtimeNs ?? ZERO,
  deadline: scheduler.deadlineNs ?? ZERO,
  period: scheduler.periodNs ?? ZERO,
});

export const memoryPolicyToWire = ({ mode, nodes, flags = [] }: NriMemoryPolicy): wire.LinuxMemoryPolicy => ({
  mode: numberIn(wire.MpolMode, mode),
  nodes,
  flags: flags.map((flag) => numberIn(wire.MpolFlag, flag)),
});

export const rlimitToWire = ({ type, hard, soft }: NriRlimit): wire.POSIXRlimit => ({
  type,
  hard: rlimitText(hard),
  soft: rlimitText(soft),
});

export const rdtToWire = ({ closId, schemata, enableMonitoring, remove = false }: NriRdt): wire.LinuxRdt => ({
  closId: optional(closId),
  schemata: schemata && { value: [...schemata] },
  enableMonitoring: optional(enableMonitoring),
  remove,
});

export const netDevicesToWire = (
  devices: Readonly<Record<string, { readonly name: string }>> = {},
): Record<string, wire.LinuxNetDevice> =>
  Object.fromEntries(Object.entries(devices).map(([host, { name }]) => [host, { name }]));
