/** Stats messages of containers and pods, from what the cgroup files and interfaces said. */
import type { Container, PodSandbox } from '../../domain/model/state.ts';
import type { CgroupUsage, InterfaceCounters } from '../stats/types.ts';
import type * as wire from '../../wire/cri/api.ts';
import { containerMetadata, labelsOf, podSandboxMetadata } from './messages/to-wire.ts';

export const containerStats = (
  container: Container,
  usage: CgroupUsage,
  writableLayer: wire.FilesystemUsage | undefined,
): wire.ContainerStats => ({
  attributes: {
    id: container.id,
    metadata: containerMetadata(container.config.metadata ?? {}),
    labels: labelsOf(container.config.labels),
    annotations: labelsOf(container.config.annotations),
  },
  cpu: usage.cpu,
  memory: usage.memory,
  writableLayer,
  swap: usage.swap,
  io: usage.io,
});

/** The interface that CNI plugins are told to make; what kubelet shows as the pod's. */
const DEFAULT_INTERFACE = 'eth0';

const interfaceUsage = (counters: InterfaceCounters): wire.NetworkInterfaceUsage => ({
  name: counters.name,
  rxBytes: { value: String(counters.rxBytes) },
  rxErrors: { value: String(counters.rxErrors) },
  txBytes: { value: String(counters.txBytes) },
  txErrors: { value: String(counters.txErrors) },
});

/** undefined without an interface: kubelet takes for granted that a network has one. */
const networkUsage = (timestamp: string, interfaces: readonly InterfaceCounters[]): wire.NetworkUsage | undefined => {
  const byDefault = interfaces.find(({ name }) => name === DEFAULT_INTERFACE) ?? interfaces[0];
  if (byDefault === undefined) return undefined;
  return {
    timestamp,
    defaultInterface: interfaceUsage(byDefault),
    interfaces: interfaces.filter((one) => one !== byDefault).map(interfaceUsage),
  };
};

export interface PodUsage {
  /** ns since 1970. */
  readonly timestamp: string;
  readonly usage: CgroupUsage;
  /** null: it has the node's network, or no process is there to ask about its own. */
  readonly interfaces: readonly InterfaceCounters[] | null;
  readonly containers: readonly wire.ContainerStats[];
}

export const podSandboxStats = (
  { id, config }: PodSandbox,
  { timestamp, usage, interfaces, containers }: PodUsage,
): wire.PodSandboxStats => ({
  attributes: {
    id,
    metadata: podSandboxMetadata(config.metadata ?? {}),
    labels: labelsOf(config.labels),
    annotations: labelsOf(config.annotations),
  },
  linux: {
    cpu: usage.cpu,
    memory: usage.memory,
    network: networkUsage(timestamp, interfaces ?? []),
    process: usage.process,
    containers: [...containers],
    io: usage.io,
  },
  windows: undefined,
});
