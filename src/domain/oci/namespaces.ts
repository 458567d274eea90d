/**
 * Namespaces of a pod's processes. The sandbox's own choice decides about network, UTS and IPC for every container in
 * it, so that no container can reach further than its pod; only the PID namespace is each container's own choice.
 * With a user namespace, the pause task makes it and the network namespace in it: a namespace belongs to the users of who
 * made it, and root of the pod is to be root of the pod's network.
 */
import { NamespaceMode, type NamespaceOption, type PodSandboxConfig } from '../model/cri.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import { netnsPath } from '../model/paths.ts';
import type { NamespacePins } from '../model/sandboxer.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import { refuse } from './refuse.ts';
import type { OciNamespace, OciNamespaceType } from '../model/oci.ts';
import { hasOwnUsers } from './user-namespace.ts';

const optionsOf = (config: PodSandboxConfig): NamespaceOption => config.linux?.securityContext?.namespaceOptions ?? {};

const isNode = (mode: number | undefined): boolean => mode === NamespaceMode.NODE;

export const hasHostNetwork = (config: PodSandboxConfig): boolean => isNode(optionsOf(config).network);
export const hasHostIpc = (config: PodSandboxConfig): boolean => isNode(optionsOf(config).ipc);
const hasHostPid = (config: PodSandboxConfig): boolean => isNode(optionsOf(config).pid);

/** Its processes see those of the node, or share memory with them. */
export const sharesProcessesOrIpc = (config: PodSandboxConfig): boolean => hasHostPid(config) || hasHostIpc(config);

const fresh = (type: OciNamespaceType): OciNamespace => ({ type });
const joined = (type: OciNamespaceType, path: string): OciNamespace => ({ type, path });
const ofProcess = (type: OciNamespaceType, pid: number, file: string): OciNamespace =>
  joined(type, `/proc/${pid}/ns/${file}`);

/** Where the pod is no process of this node, its shim knows which of its namespaces is meant. */
const ofSandbox = (type: OciNamespaceType, pid: number | null): OciNamespace =>
  pid === null ? fresh(type) : ofProcess(type, pid, type);

const network = (config: PodSandboxConfig, netnsPath: string | null): readonly OciNamespace[] => {
  if (hasHostNetwork(config)) return [];
  if (netnsPath === null) return refuse('Bug', 'a pod with a network of its own was given no network namespace');
  return [joined('network', netnsPath)];
};

/** The pause task's: it holds the pod's IPC and UTS namespaces, and a PID namespace that containers may share. */
export function sandboxNamespaces(config: PodSandboxConfig, netnsPath: string | null): readonly OciNamespace[] {
  const users = hasOwnUsers(config);
  return [
    ...(users ? [fresh('user')] : []),
    ...(hasHostPid(config) ? [] : [fresh('pid')]),
    ...(users ? [fresh('network')] : network(config, netnsPath)),
    ...(hasHostIpc(config) ? [] : [fresh('ipc')]),
    ...(hasHostNetwork(config) ? [] : [fresh('uts')]),
    fresh('mount'),
  ];
}

export interface NamespaceProcesses {
  readonly netnsPath: string | null;
  readonly sandboxPid: number | null;
  /** null: sandboxPid has them. */
  readonly pins: NamespacePins | null;
  readonly targetPid: number | null;
}

function pidNamespace(
  sandboxConfig: PodSandboxConfig,
  mode: NamespaceMode,
  { sandboxPid, pins, targetPid }: NamespaceProcesses,
): readonly OciNamespace[] {
  switch (mode) {
    case NamespaceMode.CONTAINER:
      return [fresh('pid')];
    case NamespaceMode.TARGET:
      if (targetPid === null) {
        return refuse(
          'WrongState',
          'the container that namespace_options.target_id names is not running: start it first',
        );
      }
      return [ofProcess('pid', targetPid, 'pid')];
    default:
      // POD and NODE both mean the sandbox's own: a container gets the node's processes only if its pod does.
      if (hasHostPid(sandboxConfig)) return [];
      // A pod without a pause task shares no PID namespace.
      return [pins === null ? ofSandbox('pid', sandboxPid) : fresh('pid')];
  }
}

export function containerNamespaces(
  sandboxConfig: PodSandboxConfig,
  options: NamespaceOption | undefined,
  processes: NamespaceProcesses,
  node: NodeFacts,
  privileged: boolean,
): readonly OciNamespace[] {
  const { sandboxPid, pins } = processes;
  const ofPod = (type: 'ipc' | 'uts'): OciNamespace =>
    pins === null ? ofSandbox(type, sandboxPid) : joined(type, pins[type] ?? refuse('Bug', `no ${type} pin`));
  return [
    ...(hasOwnUsers(sandboxConfig) ? [ofSandbox('user', sandboxPid)] : []),
    ...pidNamespace(sandboxConfig, options?.pid ?? NamespaceMode.POD, processes),
    ...network(sandboxConfig, processes.netnsPath),
    ...(hasHostIpc(sandboxConfig) ? [] : [ofPod('ipc')]),
    ...(hasHostNetwork(sandboxConfig) ? [] : [ofPod('uts')]),
    fresh('mount'),
    // Version 1 shows a container its own hierarchy by bind mounts instead; privileged ones are to see the node's.
    ...(node.cgroup.version === 2 && !privileged ? [fresh('cgroup')] : []),
  ];
}

/** Where the pod's namespaces are pinned, as far as it has its own. */
export const namespacePins = (
  facts: Pick<DaemonFacts, 'stateDir'>,
  podSandboxId: string,
  config: PodSandboxConfig,
): NamespacePins => ({
  network: hasHostNetwork(config) ? null : netnsPath(facts, podSandboxId),
  ipc: hasHostIpc(config) ? null : `${facts.stateDir}/ipcns/${podSandboxId}`,
  uts: hasHostNetwork(config) ? null : `${facts.stateDir}/utsns/${podSandboxId}`,
});
