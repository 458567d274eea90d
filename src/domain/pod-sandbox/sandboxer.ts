/**
 * Which pods can do without a pause task, and where the namespaces of those are pinned. Decided once, when the pod is
 * asked for, and written down with it: what it is made with is what it is taken down with.
 */
import { NamespaceMode, type PodSandboxConfig } from '../cri.ts';
import type { NamespacePins, RuntimeHandler, Sandboxer } from '../effects.ts';
import type { DaemonFacts } from '../node/facts.ts';
import { hasHostIpc, hasHostNetwork } from '../oci/namespaces.ts';
import { hasNamespacedSysctlsOnly } from '../oci/sysctls.ts';
import { userNamespaceOf } from '../oci/user-namespace.ts';
import { netnsPath } from '../paths.ts';
import type { PodSandbox } from '../state.ts';

/**
 * A PID namespace lives as long as its first process and a user namespace has to be there before the others are, so
 * pods with one of these get a pause task. So do those with kernel parameters that the OCI runtime has to judge.
 */
export function sandboxerOf(handler: RuntimeHandler, config: PodSandboxConfig): Sandboxer {
  const { pid = NamespaceMode.POD } = config.linux?.securityContext?.namespaceOptions ?? {};
  const needsPause = pid === NamespaceMode.POD || userNamespaceOf(config) !== null || !hasNamespacedSysctlsOnly(config);
  return needsPause ? 'pause' : (handler.sandboxer ?? 'pause');
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

export const pinPaths = ({ network, ipc, uts }: NamespacePins): readonly string[] =>
  [network, ipc, uts].filter((path) => path !== null);

/** False where the pod shares all of these with the node. */
export const hasNamespaces = (config: PodSandboxConfig): boolean => !hasHostNetwork(config) || !hasHostIpc(config);

/** A shim that tasks can be started with, or that is being asked whether it is one. */
export const hasShim = ({ steps, shimContact }: Pick<PodSandbox, 'steps' | 'shimContact'>): boolean =>
  steps.shim === 'done' && shimContact !== 'gone';
