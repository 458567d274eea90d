/**
 * Which pods can do without a pause task, and where the namespaces of those are pinned. Decided once, when the pod is
 * asked for, and written down with it: what it is made with is what it is taken down with.
 */
import { NamespaceMode, type PodSandboxConfig } from '../model/cri.ts';
import type { RuntimeHandler } from '../model/runtime-handler.ts';
import type { NamespacePins, Sandboxer } from '../model/sandboxer.ts';
import { hasHostIpc, hasHostNetwork } from '../oci/namespaces.ts';
import { hasNamespacedSysctlsOnly } from '../oci/sysctls.ts';
import { hasOwnUsers } from '../oci/user-namespace.ts';

/** Something runs that ends when the pod falls over, and that stands for it: null where nothing does. */
export const holderOf = (sandboxer: Sandboxer): string | null => {
  switch (sandboxer) {
    case 'pause':
      return 'its pause task';
    case 'shim':
      return 'its sandbox';
    case 'none':
      return null;
  }
};

/**
 * A PID namespace lives as long as its first process and a user namespace has to be there before the others are, so
 * pods with one of these get a pause task. So do those with kernel parameters that the OCI runtime has to judge. A shim
 * with a sandbox service is given every pod: what of it the shim cannot do is for the shim to say.
 */
export function sandboxerOf(handler: RuntimeHandler, config: PodSandboxConfig): Sandboxer {
  if (handler.sandboxer === 'shim') return 'shim';
  const { pid = NamespaceMode.POD } = config.linux?.securityContext?.namespaceOptions ?? {};
  const needsPause = pid === NamespaceMode.POD || hasOwnUsers(config) || !hasNamespacedSysctlsOnly(config);
  return needsPause ? 'pause' : (handler.sandboxer ?? 'pause');
}

/** A network namespace belongs to a user namespace that scribe would have to make before the shim's sandbox is there. */
export const givesUserNamespaces = ({ userNamespaces = false, sandboxer }: RuntimeHandler): boolean =>
  userNamespaces && sandboxer !== 'shim';

export const pinPaths = ({ network, ipc, uts }: NamespacePins): readonly string[] =>
  [network, ipc, uts].filter((path) => path !== null);

/** False where the pod shares all of these with the node. */
export const hasNamespaces = (config: PodSandboxConfig): boolean => !hasHostNetwork(config) || !hasHostIpc(config);
