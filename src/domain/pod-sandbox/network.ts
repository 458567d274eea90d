/** What the CNI plugins of a pod will be told, from its configuration and the network configuration in force. */
import { NamespaceMode, type PodSandboxConfig } from '../cri.ts';
import type { CniConfList, ConfiguredNetwork, PodNetwork } from '../cni.ts';
import type { DaemonFacts } from '../node/daemon-facts.ts';
import { netnsPath } from '../paths.ts';
import type { RuntimeHandler } from '../runtime-handler.ts';
import type { NodeState } from '../state.ts';

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
    ...rate('ingressRate', annotations['kubernetes.io/ingress-bandwidth']),
    ...rate('egressRate', annotations['kubernetes.io/egress-bandwidth']),
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

const SUFFIXES: Readonly<Record<string, bigint>> = {
  '': 1n,
  k: 1000n,
  K: 1000n,
  M: 1000n ** 2n,
  G: 1000n ** 3n,
  T: 1000n ** 4n,
  Ki: 1024n,
  Mi: 1024n ** 2n,
  Gi: 1024n ** 3n,
  Ti: 1024n ** 4n,
};

/** A whole Kubernetes quantity ("10M", "1Gi") in bits per second; anything else is no limit, as kubelet validated it. */
function rate(key: 'ingressRate' | 'egressRate', quantity: string | undefined): Record<string, string> {
  const match = /^(\d{1,15})(k|K|M|G|T|Ki|Mi|Gi|Ti)?$/.exec(quantity ?? '');
  const unit = SUFFIXES[match?.[2] ?? ''];
  if (match?.[1] === undefined || unit === undefined) return {};
  return { [key]: String(BigInt(match[1]) * unit) };
}
