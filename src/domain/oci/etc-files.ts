/**
 * The files of /etc that a pod's containers share: hosts, hostname, resolv.conf. Content only; PreparePodSandbox
 * writes them. The texts come from kubelet and are checked in validate-pod.ts: no field here can add a line.
 */
import type { DNSConfig, PodSandboxConfig } from '../model/cri.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import { hasHostNetwork } from './namespaces.ts';

/** For pods with a network of their own: its addresses are not known yet, and kubelet mounts its own file anyway. */
const LOCAL_HOSTS = `127.0.0.1\tlocalhost
::1\tlocalhost ip6-localhost ip6-loopback
fe00::0\tip6-localnet
ff00::0\tip6-mcastprefix
ff02::1\tip6-allnodes
ff02::2\tip6-allrouters
`;

const resolvConf = ({ servers = [], searches = [], options = [] }: DNSConfig): string =>
  [
    ...(searches.length === 0 ? [] : [`search ${searches.join(' ')}`]),
    ...servers.map((server) => `nameserver ${server}`),
    ...(options.length === 0 ? [] : [`options ${options.join(' ')}`]),
  ]
    .map((line) => `${line}\n`)
    .join('');

/** The name a pod's processes see; the node's own when the pod names none. */
export const podHostname = (config: PodSandboxConfig, node: NodeFacts): string => config.hostname || node.hostname;

/** File name to content, as PreparePodSandbox takes them; null copies the host's. */
export const etcFiles = (config: PodSandboxConfig, node: NodeFacts): Readonly<Record<string, string | null>> => ({
  hosts: hasHostNetwork(config) ? null : LOCAL_HOSTS,
  hostname: `${podHostname(config, node)}\n`,
  'resolv.conf': config.dnsConfig === undefined ? null : resolvConf(config.dnsConfig),
});
