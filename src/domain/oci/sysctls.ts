/**
 * Kernel parameters of a pod. They are set once, by the pause task or as the namespaces are pinned, in the namespaces its
 * containers then join. Those of a namespace that the pod shares with the node are refused here; whether a parameter is
 * namespaced at all is the OCI runtime's to say, for one that starts a machine per pod can set any.
 */
import type { PodSandboxConfig } from '../model/cri.ts';
import type { SpecSettings } from '../model/spec-settings.ts';
import { hasHostIpc, hasHostNetwork } from './namespaces.ts';
import { refuseField, shown } from './refuse.ts';
import { userNamespaceOf } from './user-namespace.ts';

const FIELD = 'linux.sysctls';
/** sysctl(8) takes both separators; a name has to be more than one part, and cannot climb out of /proc/sys. */
const NAME = /^[a-z0-9][-_a-z0-9]*([./][a-zA-Z0-9][-_a-zA-Z0-9]*)+$/;
const MAX_VALUE_LENGTH = 1024;

const IPC_NAMES = new Set([
  'kernel.msgmax',
  'kernel.msgmnb',
  'kernel.msgmni',
  'kernel.sem',
  'kernel.shmall',
  'kernel.shmmax',
  'kernel.shmmni',
  'kernel.shm_rmid_forced',
]);

/** Dots between the parts, as runtimes want it. The first separator says which of the two a name uses (sysctl(8)). */
function dotted(name: string): string {
  if (/[./]/.exec(name)?.[0] !== '/') return name;
  return name.replace(/[./]/g, (separator) => (separator === '/' ? '.' : '/'));
}

const isOfNetwork = (plain: string): boolean => plain.startsWith('net.');
const isOfIpc = (plain: string): boolean => IPC_NAMES.has(plain) || plain.startsWith('fs.mqueue.');

/** Whether each of the pod's own is one of its network or IPC namespace for certain. */
export const hasNamespacedSysctlsOnly = (config: PodSandboxConfig): boolean =>
  Object.keys(config.linux?.sysctls ?? {})
    .map(dotted)
    .every((plain) => isOfNetwork(plain) || isOfIpc(plain));

/** Refuses malformed names and values, and parameters of a namespace that the pod shares with the node. */
export function checkSysctls(config: PodSandboxConfig): void {
  for (const [name, value] of Object.entries(config.linux?.sysctls ?? {})) {
    if (!NAME.test(name)) refuseField(FIELD, `names ${shown(name)}, which is no kernel parameter`);
    if (value.length > MAX_VALUE_LENGTH || /[\x00-\x08\x0a-\x1f\x7f]/.test(value)) {
      refuseField(`${FIELD}[${name}]`, `is ${shown(value)}: it must be one line of at most ${MAX_VALUE_LENGTH} bytes`);
    }
    const plain = dotted(name);
    if (isOfNetwork(plain) && hasHostNetwork(config)) {
      refuseField(
        `${FIELD}[${name}]`,
        'can not be set in a pod with the network of the node: it would change the node',
      );
    }
    if (isOfIpc(plain) && hasHostIpc(config)) {
      refuseField(`${FIELD}[${name}]`, 'can not be set in a pod with the IPC of the node: it would change the node');
    }
  }
}

const PORT_START = 'net.ipv4.ip_unprivileged_port_start';
const PING_GROUPS = 'net.ipv4.ping_group_range';
/** All groups: the kernel takes them as signed. */
const ANY_GROUP = '0 2147483647';

/** A pod with users of its own can name no others. */
const pingGroups = (config: PodSandboxConfig): string => {
  const length = userNamespaceOf(config)?.gids.length;
  return length === undefined ? ANY_GROUP : `0 ${Math.min(length - 1, 2147483647)}`;
};

/** The pod's own, over what settings give every pod with a network of its own. undefined when there are none. */
export function podSysctls(
  config: PodSandboxConfig,
  settings: SpecSettings,
): Readonly<Record<string, string>> | undefined {
  const given = Object.entries(config.linux?.sysctls ?? {}).map(([name, value]) => [dotted(name), value] as const);
  const sysctls: Record<string, string> = {
    ...(settings.enableUnprivilegedPorts && !hasHostNetwork(config) ? { [PORT_START]: '0' } : {}),
    ...(settings.enableUnprivilegedIcmp && !hasHostNetwork(config) ? { [PING_GROUPS]: pingGroups(config) } : {}),
    ...Object.fromEntries(given),
  };
  return Object.keys(sysctls).length === 0 ? undefined : sysctls;
}
