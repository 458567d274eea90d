/**
 * What plugins are told, from the domain's words to the messages of the wire: pods and containers, and to validators what
 * others want to change and who wants it. Secrets get their values here (C12), so what these functions give is never
 * recorded or logged.
 */
import { ProfileType, type SecurityProfile } from '../../../domain/model/cri.ts';
import {
  type ContainerAdjustment,
  type FieldOwners,
  type LinuxContainerAdjustment,
  NRI_FIELDS,
} from '../../../domain/model/nri.ts';
import type {
  NriContainer,
  NriLinuxContainer,
  NriLinuxPodSandbox,
  NriPodSandbox,
  NriUpdate,
} from '../../../domain/model/nri-views.ts';
import type { OciEnv } from '../../../domain/model/oci.ts';
import * as wire from '../../../wire/nri/api.ts';
import { numberIn } from './enums.ts';
import {
  deviceToWire,
  hooksToWire,
  ioPriorityToWire,
  memoryPolicyToWire,
  mountToWire,
  namespaceToWire,
  netDevicesToWire,
  optional,
  rdtToWire,
  rlimitToWire,
  schedulerToWire,
  seccompToWire,
} from './parts-to-wire.ts';
import { resourcesToWire } from './resources.ts';
import { filledArgs, filledEnv, type ValueOf } from './secrets.ts';

const ZERO = '0';

const linuxSandbox = (linux: NriLinuxPodSandbox): wire.LinuxPodSandbox => ({
  podOverhead: linux.podOverhead && resourcesToWire(linux.podOverhead),
  podResources: linux.podResources && resourcesToWire(linux.podResources),
  cgroupParent: linux.cgroupParent ?? '',
  cgroupsPath: linux.cgroupsPath ?? '',
  namespaces: (linux.namespaces ?? []).map(namespaceToWire),
  resources: linux.resources && resourcesToWire(linux.resources),
});

export const podSandboxToWire = (pod: NriPodSandbox): wire.PodSandbox => ({
  id: pod.id,
  name: pod.name ?? '',
  uid: pod.uid ?? '',
  namespace: pod.namespace ?? '',
  labels: { ...pod.labels },
  annotations: { ...pod.annotations },
  runtimeHandler: pod.runtimeHandler ?? '',
  linux: pod.linux && linuxSandbox(pod.linux),
  pid: pod.pid ?? 0,
  ips: [...(pod.ips ?? [])],
});

const PROFILES: readonly (readonly [number, wire.SecurityProfile_ProfileType])[] = [
  [ProfileType.RuntimeDefault, wire.SecurityProfile_ProfileType.RUNTIME_DEFAULT],
  [ProfileType.Unconfined, wire.SecurityProfile_ProfileType.UNCONFINED],
  [ProfileType.Localhost, wire.SecurityProfile_ProfileType.LOCALHOST],
];

const securityProfile = ({ profileType = ProfileType.RuntimeDefault, localhostRef = '' }: SecurityProfile) => ({
  profileType: PROFILES.find(([type]) => type === profileType)?.[1] ?? wire.SecurityProfile_ProfileType.RUNTIME_DEFAULT,
  localhostRef,
});

const linuxContainer = (linux: NriLinuxContainer): wire.LinuxContainer => ({
  namespaces: (linux.namespaces ?? []).map(namespaceToWire),
  devices: (linux.devices ?? []).map(deviceToWire),
  resources: linux.resources && resourcesToWire(linux.resources),
  oomScoreAdj: optional(linux.oomScoreAdj === undefined ? undefined : String(linux.oomScoreAdj)),
  cgroupsPath: linux.cgroupsPath ?? '',
  ioPriority: linux.ioPriority && ioPriorityToWire(linux.ioPriority),
  seccompProfile: linux.seccompProfile && securityProfile(linux.seccompProfile),
  seccompPolicy: linux.seccompPolicy && seccompToWire(linux.seccompPolicy),
  sysctl: { ...linux.sysctl },
  netDevices: netDevicesToWire(linux.netDevices),
  scheduler: linux.scheduler && schedulerToWire(linux.scheduler),
  rdt: linux.rdt && rdtToWire(linux.rdt),
});

export const containerToWire = (container: NriContainer, valueOf: ValueOf): wire.Container => ({
  id: container.id,
  podSandboxId: container.podSandboxId,
  name: container.name,
  state: numberIn(wire.ContainerState, container.state),
  labels: { ...container.labels },
  annotations: { ...container.annotations },
  args: filledArgs(container.args, valueOf),
  env: filledEnv(container.env, valueOf),
  mounts: (container.mounts ?? []).map(mountToWire),
  hooks: container.hooks && hooksToWire(container.hooks, valueOf),
  linux: container.linux && linuxContainer(container.linux),
  pid: container.pid ?? 0,
  rlimits: (container.rlimits ?? []).map(rlimitToWire),
  createdAt: container.createdAtNs ?? ZERO,
  startedAt: container.startedAtNs ?? ZERO,
  finishedAt: container.finishedAtNs ?? ZERO,
  exitCode: (container.exitCode ?? 0) | 0,
  statusReason: container.statusReason ?? '',
  statusMessage: container.statusMessage ?? '',
  CDIDevices: (container.cdiDevices ?? []).map((name) => ({ name })),
  user: container.user && {
    uid: container.user.uid,
    gid: container.user.gid,
    additionalGids: [...(container.user.additionalGids ?? [])],
  },
  image: container.image && {
    name: container.image.name,
    digest: container.image.digest ?? '',
    configDigest: container.image.configDigest,
  },
});

/** A mark stays with its key, and has no value. */
const keyValues = (env: readonly OciEnv[], valueOf: ValueOf): wire.KeyValue[] =>
  filledEnv(env, valueOf).map((entry) => {
    const at = entry.indexOf('=');
    return at < 0 ? { key: entry, value: '' } : { key: entry.slice(0, at), value: entry.slice(at + 1) };
  });

const linuxAdjustment = (linux: LinuxContainerAdjustment): wire.LinuxContainerAdjustment => ({
  devices: (linux.devices ?? []).map(deviceToWire),
  resources: linux.resources && resourcesToWire(linux.resources),
  cgroupsPath: linux.cgroupsPath ?? '',
  oomScoreAdj: optional(linux.oomScoreAdj === undefined ? undefined : String(linux.oomScoreAdj)),
  ioPriority: linux.ioPriority && ioPriorityToWire(linux.ioPriority),
  seccompPolicy: linux.seccompPolicy && seccompToWire(linux.seccompPolicy),
  namespaces: (linux.namespaces ?? []).map(namespaceToWire),
  sysctl: { ...linux.sysctl },
  netDevices: netDevicesToWire(linux.netDevices),
  scheduler: linux.scheduler && schedulerToWire(linux.scheduler),
  rdt: linux.rdt && rdtToWire(linux.rdt),
  memoryPolicy: linux.memoryPolicy && memoryPolicyToWire(linux.memoryPolicy),
});

export const adjustmentToWire = (adjust: ContainerAdjustment, valueOf: ValueOf): wire.ContainerAdjustment => ({
  annotations: { ...adjust.annotations },
  mounts: (adjust.mounts ?? []).map(mountToWire),
  env: keyValues(adjust.env ?? [], valueOf),
  hooks: adjust.hooks && hooksToWire(adjust.hooks, valueOf),
  linux: adjust.linux && linuxAdjustment(adjust.linux),
  rlimits: (adjust.rlimits ?? []).map(rlimitToWire),
  CDIDevices: (adjust.cdiDevices ?? []).map((name) => ({ name })),
  args: filledArgs(adjust.args, valueOf),
});

export const updateToWire = ({ containerId, resources, ignoreFailure }: NriUpdate): wire.ContainerUpdate => ({
  containerId,
  linux: resources && { resources: resourcesToWire(resources) },
  ignoreFailure: ignoreFailure === true,
});

const fieldNumber = (field: string): number => (NRI_FIELDS as Readonly<Record<string, number>>)[field] ?? 0;

/** By container. */
export const ownersToWire = (owners: Readonly<Record<string, FieldOwners>>): wire.OwningPlugins => ({
  owners: Object.fromEntries(
    Object.entries(owners).map(([containerId, { simple, compound }]) => [
      containerId,
      {
        simple: Object.fromEntries(Object.entries(simple).map(([field, owner]) => [fieldNumber(field), owner])),
        compound: Object.fromEntries(
          Object.entries(compound).map(([field, keys]) => [fieldNumber(field), { owners: { ...keys } }]),
        ),
      },
    ]),
  ),
});
