/** What the CNI plugins of a pod will be told, from its configuration and the network configuration in force. */
import { NamespaceMode, type PodSandboxConfig } from '../model/cri.ts';
import type { CniConfList, ConfiguredNetwork, PodNetwork } from '../model/cni.ts';
import type { DaemonFacts } from '../model/daemon-facts.ts';
import { BANDWIDTH_KEYS } from '../oci/bandwidth.ts';
import { netnsPath } from '../model/paths.ts';
import { parseQuantity } from '../values/quantity.ts';
import type { RuntimeHandler } from '../model/runtime-handler.ts';
import type { NodeState } from '../model/state.ts';

export const usesHostNetwork = (config: PodSandboxConfig): boolean =>
  config.linux?.securityContext?.namespaceOptions?.network === NamespaceMode.NODE;

/** The network that a handler's new pods get. */
export const networkOf = ({ network }: Pick<NodeState, 'network'>, { name, cni }: RuntimeHandler): ConfiguredNetwork =>
  cni === undefined
    ? network
    : (network.handlers?.[name] ?? { confList: null, problem: `${cni.confDir} was not read yet` });

/** Some new pods would be refused for want of a network. */
export const lacksNetwork = (state: NodeState): boolean =>
  state.network.confList === null ||
  (state.facts?.handlers.some((handler) => networkOf(state, handler).confList === null) ?? false);

export function podNetwork(
  facts: DaemonFacts,
  podSandboxId: string,
  config: PodSandboxConfig,
  confList: CniConfList,
): PodNetwork {
  const { metadata, dnsConfig, annotations = {} } = config;
  const bandwidth = {
    ...rate('ingressRate', annotations[BANDWIDTH_KEYS.ingress]),
    ...rate('egressRate', annotations[BANDWIDTH_KEYS.egress]),
  };
  return {
    podSandboxId,
    netnsPath: netnsPath(facts, podSandboxId),
    ifName: 'eth0',
    confList,
    name: metadata?.name ?? '',
    namespace: metadata?.namespace ?? '',
    uid: metadata?.uid ?? '',
    portMappings: (config.portMappings ?? []).filter((mapping) => (mapping.hostPort ?? 0) > 0),
    ...(dnsConfig === undefined
      ? {}
      : {
          dns: {
            servers: dnsConfig.servers ?? [],
            searches: dnsConfig.searches ?? [],
            options: dnsConfig.options ?? [],
          },
        }),
    ...(Object.keys(bandwidth).length === 0 ? {} : { bandwidth }),
    ...(config.linux?.cgroupParent ? { cgroupPath: config.linux.cgroupParent } : {}),
    podAnnotations: annotations,
  };
}

/** A quantity in bits per second; what is none was refused, or is of a journal from before that was checked. */
function rate(key: 'ingressRate' | 'egressRate', quantity: string | undefined): Record<string, string> {
  const bits = quantity === undefined ? null : parseQuantity(quantity);
  return bits === null || bits <= 0n ? {} : { [key]: String(bits) };
}
