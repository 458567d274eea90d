/**
 * Shapes of the domain back into CRI messages, for status and list replies: what a client sent comes back as it was,
 * byte for byte once encoded. Only the parts that replies hold. Must not add anything a client did not say.
 */
import type * as domain from '../../../domain/model/cri.ts';
import type { ContainerFacts } from '../../../domain/model/container-facts.ts';
import type * as wire from '../../../wire/cri/api.ts';
import { int32, int64, uint32, uint64 } from './numbers.ts';

const ZERO = '0';

export const labelsOf = (labels: Readonly<Record<string, string>> | undefined): Record<string, string> => ({
  ...labels,
});

export const podSandboxMetadata = (metadata: domain.PodSandboxMetadata): wire.PodSandboxMetadata => ({
  name: metadata.name ?? '',
  uid: metadata.uid ?? '',
  namespace: metadata.namespace ?? '',
  attempt: uint32(metadata.attempt ?? 0),
});

export const containerMetadata = (metadata: domain.ContainerMetadata): wire.ContainerMetadata => ({
  name: metadata.name ?? '',
  attempt: uint32(metadata.attempt ?? 0),
});

export const imageSpec = (spec: domain.ImageSpec): wire.ImageSpec => ({
  image: spec.image ?? '',
  annotations: labelsOf(spec.annotations),
  userSpecifiedImage: spec.userSpecifiedImage ?? '',
  runtimeHandler: spec.runtimeHandler ?? '',
  imageRef: spec.imageRef ?? '',
});

const idMapping = ({ hostId = 0, containerId = 0, length = 0 }: domain.IDMapping): wire.IDMapping => ({
  hostId: uint32(hostId),
  containerId: uint32(containerId),
  length: uint32(length),
});

/** An enum value of a newer contract is passed through as the number it is. */
const mode = (value: domain.NamespaceMode | undefined): wire.NamespaceMode => int32(value ?? 0) as wire.NamespaceMode;

const userNamespace = (options: domain.UserNamespace): wire.UserNamespace => ({
  mode: mode(options.mode),
  uids: (options.uids ?? []).map(idMapping),
  gids: (options.gids ?? []).map(idMapping),
});

export const namespaceOption = (options: domain.NamespaceOption): wire.NamespaceOption => ({
  network: mode(options.network),
  pid: mode(options.pid),
  ipc: mode(options.ipc),
  targetId: options.targetId ?? '',
  usernsOptions: options.usernsOptions === undefined ? undefined : userNamespace(options.usernsOptions),
});

export const mount = (fields: domain.Mount): wire.Mount => ({
  containerPath: fields.containerPath ?? '',
  hostPath: fields.hostPath ?? '',
  readonly: fields.readonly ?? false,
  selinuxRelabel: fields.selinuxRelabel ?? false,
  propagation: int32(fields.propagation ?? 0) as wire.MountPropagation,
  uidMappings: (fields.uidMappings ?? []).map(idMapping),
  gidMappings: (fields.gidMappings ?? []).map(idMapping),
  recursiveReadOnly: fields.recursiveReadOnly ?? false,
  image: fields.image === undefined ? undefined : imageSpec(fields.image),
  imageSubPath: fields.imageSubPath ?? '',
  mountOptions: [...(fields.mountOptions ?? [])],
});

export const linuxContainerResources = (resources: domain.LinuxContainerResources): wire.LinuxContainerResources => ({
  cpuPeriod: int64(resources.cpuPeriod ?? ZERO),
  cpuQuota: int64(resources.cpuQuota ?? ZERO),
  cpuShares: int64(resources.cpuShares ?? ZERO),
  memoryLimitInBytes: int64(resources.memoryLimitInBytes ?? ZERO),
  oomScoreAdj: int64(resources.oomScoreAdj ?? ZERO),
  cpusetCpus: resources.cpusetCpus ?? '',
  cpusetMems: resources.cpusetMems ?? '',
  hugepageLimits: (resources.hugepageLimits ?? []).map(({ pageSize = '', limit = ZERO }) => ({
    pageSize,
    limit: uint64(limit),
  })),
  unified: { ...resources.unified },
  memorySwapLimitInBytes: int64(resources.memorySwapLimitInBytes ?? ZERO),
});

/** The ids the container's process runs with, as they were found in its image. */
export const containerUser = ({ uid, gid, additionalGids }: ContainerFacts['user']): wire.ContainerUser => ({
  linux: {
    uid: int64(String(uid)),
    gid: int64(String(gid)),
    supplementalGroups: additionalGids.map(String).map(int64),
  },
});

/** A value of the enum, as domain/oci/signals.ts gives it. */
export const signal = (value: domain.Signal): wire.Signal => int32(value) as wire.Signal;
