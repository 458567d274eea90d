/**
 * What a plugin is told about a pod beside its own configuration: CNI_ARGS, and runtimeConfig by the capabilities
 * that the plugin's configuration asks for (CNI CONVENTIONS.md). Pure.
 */
import { type Int64, type PortMapping, Protocol } from '../../domain/model/cri.ts';
import type { CniPluginConf, PodNetwork } from '../../domain/model/cni.ts';
import { FailureError } from '../../domain/model/errors.ts';

const PROTOCOL_NAMES: Readonly<Record<Protocol, string>> = {
  [Protocol.TCP]: 'tcp',
  [Protocol.UDP]: 'udp',
  [Protocol.SCTP]: 'sctp',
};

/** A mapping without a host port asks for nothing on the host. */
const portMappingEntry = (mapping: PortMapping): object => ({
  hostPort: mapping.hostPort,
  containerPort: mapping.containerPort ?? 0,
  protocol: PROTOCOL_NAMES[mapping.protocol ?? Protocol.TCP],
  ...(mapping.hostIp === undefined || mapping.hostIp === '' ? {} : { hostIP: mapping.hostIp }),
});

/** JSON numbers are exact only up to 2^53; a larger rate is a mistake of whoever asked for it. */
const rateBits = (name: string, value: Int64): number => {
  const bits = Number(value);
  if (Number.isSafeInteger(bits) && bits >= 0) return bits;
  throw new FailureError(
    'InvalidField',
    `The pod's bandwidth ${name} of ${value} is not a number of bits that CNI can carry.`,
  );
};

/**
 * Plugins take no rate without a burst, in bits too, and Kubernetes' annotations know no bursts: this one, some half a
 * gigabyte, is what other runtimes give.
 */
const BURST: Int64 = String(2 ** 32 - 1);

const bandwidthEntry = (bandwidth: NonNullable<PodNetwork['bandwidth']>): object => {
  const bursts = {
    ...(bandwidth.ingressRate === undefined ? {} : { ingressBurst: BURST }),
    ...(bandwidth.egressRate === undefined ? {} : { egressBurst: BURST }),
  };
  return Object.fromEntries(
    Object.entries({ ...bursts, ...bandwidth }).map(([name, value]) => [name, rateBits(name, value)]),
  );
};

/** Each capability scribe can serve, and its value for this pod; undefined when the pod has nothing of the kind. */
const providers: Readonly<Record<string, (network: PodNetwork) => unknown>> = {
  portMappings: ({ portMappings }) => {
    const mapped = portMappings.filter((mapping) => (mapping.hostPort ?? 0) > 0);
    return mapped.length === 0 ? undefined : mapped.map(portMappingEntry);
  },
  bandwidth: ({ bandwidth }) => (bandwidth === undefined ? undefined : bandwidthEntry(bandwidth)),
  dns: ({ dns }) => dns,
  cgroupPath: ({ cgroupPath }) => cgroupPath,
  'io.kubernetes.cri.pod-annotations': ({ podAnnotations }) => podAnnotations,
};

/** The union of what the plugin can take and what the pod has; null when that is nothing. */
export const runtimeConfigOf = (
  plugin: CniPluginConf,
  network: PodNetwork,
): Readonly<Record<string, unknown>> | null => {
  const wanted = Object.entries(providers).filter(([capability]) => plugin.capabilities?.[capability] === true);
  const entries = wanted
    .map(([capability, provide]) => [capability, provide(network)] as const)
    .filter(([, value]) => value !== undefined);
  return entries.length === 0 ? null : Object.fromEntries(entries);
};

/** The pod's identity in the form Kubernetes' plugins read: key=value pairs joined by semicolons. */
export const cniArgsOf = (network: PodNetwork): string =>
  Object.entries({
    IgnoreUnknown: '1',
    K8S_POD_NAMESPACE: network.namespace,
    K8S_POD_NAME: network.name,
    K8S_POD_INFRA_CONTAINER_ID: network.podSandboxId,
    K8S_POD_UID: network.uid,
  })
    .map(([key, value]) => `${key}=${value}`)
    .join(';');

/** The most that the kernel passes to a program in one variable of its environment (MAX_ARG_STRLEN), with the NUL at its end. */
const VARIABLE_BYTES_MAX = 131_072;

/** Says why a pod's identifiers can't be given to plugins, null when they can (CNI 1.1, section 2, "Parameters"). */
export const identifierProblem = (network: PodNetwork): string | null => {
  if (!/^[A-Za-z0-9][A-Za-z0-9_.-]{0,254}$/.test(network.podSandboxId)) {
    return `the id ${JSON.stringify(network.podSandboxId)} is no CNI container id`;
  }
  if (!/^[^\s/:\p{Cc}]{1,15}$/u.test(network.ifName) || network.ifName === '.' || network.ifName === '..') {
    return `${JSON.stringify(network.ifName)} is no name for a network interface`;
  }
  for (const value of [network.namespace, network.name, network.uid]) {
    // A separator in a value would smuggle further arguments in.
    if (/[;=\p{Cc}]/u.test(value)) return `${JSON.stringify(value)} holds a character that CNI_ARGS can't carry`;
  }
  const bytes = Buffer.byteLength(`CNI_ARGS=${cniArgsOf(network)}`) + 1;
  if (bytes > VARIABLE_BYTES_MAX)
    return `with its name, namespace and uid CNI_ARGS has ${bytes} bytes, and the kernel passes ${VARIABLE_BYTES_MAX}: shorten them`;
  return null;
};
