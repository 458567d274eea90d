/**
 * CRI messages as they were decoded, into the shapes of the domain: proto3 defaults are left out, so that the journal
 * carries none, and a message that is present stays present even when it is empty (an empty SecurityProfile means
 * RuntimeDefault, a missing one means none). Env values become tokens on the way. Must not judge: checks of what the
 * fields say are the domain's, but for the few that it can't make (of what is behind tokens, by what Node knows).
 */
import { isIP } from 'node:net';
import type * as domain from '../../../domain/model/cri.ts';
import { SupplementalGroupsPolicy } from '../../../domain/model/cri.ts';
import { FailureError } from '../../../domain/model/errors.ts';
import { shown } from '../../../domain/oci/refuse.ts';
import type * as wire from '../../../wire/cri/api.ts';

/** Keeps an env value and gives the token that stands for it. */
export type TokenOf = (value: Uint8Array) => string;

type Unset<T> = { readonly [K in keyof Required<T>]: T[K] | undefined };

/** The fields that are set. Every field has to be named, so that none of a newer contract is forgotten. */
const present = <T extends object>(fields: Unset<T>): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

const ZERO = '0';

const text = (value: string): string | undefined => (value === '' ? undefined : value);
const whole = (value: number): number | undefined => (value === 0 ? undefined : value);
const long = (value: string): domain.Int64 | undefined => (value === ZERO ? undefined : value);
const flag = (value: boolean): boolean | undefined => (value ? true : undefined);
const list = <T>(values: readonly T[]): readonly T[] | undefined => (values.length === 0 ? undefined : values);
const map = (values: Readonly<Record<string, string>>): Readonly<Record<string, string>> | undefined =>
  Object.keys(values).length === 0 ? undefined : values;
const message = <W, D>(value: W | undefined, convert: (value: W) => D): D | undefined =>
  value === undefined ? undefined : convert(value);
const messages = <W, D>(values: readonly W[], convert: (value: W) => D): readonly D[] | undefined =>
  list(values.map(convert));

/** @throws {FailureError} InvalidField when the client has left it out; `field` is CRI's name of it */
export function required<T>(value: T | undefined, field: string): T {
  if (value === undefined)
    throw new FailureError('InvalidField', `${field} is missing; a request without it says nothing.`);
  return value;
}

const int64Value = ({ value }: wire.Int64Value): domain.Int64Value =>
  present<domain.Int64Value>({ value: long(value) });

const idMapping = ({ hostId, containerId, length }: wire.IDMapping): domain.IDMapping =>
  present<domain.IDMapping>({ hostId: whole(hostId), containerId: whole(containerId), length: whole(length) });

const userNamespace = ({ mode, uids, gids }: wire.UserNamespace): domain.UserNamespace =>
  present<domain.UserNamespace>({
    mode: whole(mode),
    uids: messages(uids, idMapping),
    gids: messages(gids, idMapping),
  });

const namespaceOption = (options: wire.NamespaceOption): domain.NamespaceOption =>
  present<domain.NamespaceOption>({
    network: whole(options.network),
    pid: whole(options.pid),
    ipc: whole(options.ipc),
    targetId: text(options.targetId),
    usernsOptions: message(options.usernsOptions, userNamespace),
  });

const selinuxOption = ({ user, role, type, level }: wire.SELinuxOption): domain.SELinuxOption =>
  present<domain.SELinuxOption>({ user: text(user), role: text(role), type: text(type), level: text(level) });

const securityProfile = ({ profileType, localhostRef }: wire.SecurityProfile): domain.SecurityProfile =>
  present<domain.SecurityProfile>({ profileType: whole(profileType), localhostRef: text(localhostRef) });

const hugepageLimit = ({ pageSize, limit }: wire.HugepageLimit): domain.HugepageLimit =>
  present<domain.HugepageLimit>({ pageSize: text(pageSize), limit: long(limit) });

export const linuxContainerResources = (resources: wire.LinuxContainerResources): domain.LinuxContainerResources =>
  present<domain.LinuxContainerResources>({
    cpuPeriod: long(resources.cpuPeriod),
    cpuQuota: long(resources.cpuQuota),
    cpuShares: long(resources.cpuShares),
    memoryLimitInBytes: long(resources.memoryLimitInBytes),
    oomScoreAdj: long(resources.oomScoreAdj),
    cpusetCpus: text(resources.cpusetCpus),
    cpusetMems: text(resources.cpusetMems),
    hugepageLimits: messages(resources.hugepageLimits, hugepageLimit),
    unified: map(resources.unified),
    memorySwapLimitInBytes: long(resources.memorySwapLimitInBytes),
  });

const sandboxSecurityContext = (context: wire.LinuxSandboxSecurityContext): domain.LinuxSandboxSecurityContext =>
  present<domain.LinuxSandboxSecurityContext>({
    namespaceOptions: message(context.namespaceOptions, namespaceOption),
    selinuxOptions: message(context.selinuxOptions, selinuxOption),
    runAsUser: message(context.runAsUser, int64Value),
    runAsGroup: message(context.runAsGroup, int64Value),
    readonlyRootfs: flag(context.readonlyRootfs),
    supplementalGroups: list(context.supplementalGroups),
    supplementalGroupsPolicy: whole(context.supplementalGroupsPolicy),
    privileged: flag(context.privileged),
    seccomp: message(context.seccomp, securityProfile),
    apparmor: message(context.apparmor, securityProfile),
    seccompProfilePath: text(context.seccompProfilePath),
  });

const linuxPodSandboxConfig = (config: wire.LinuxPodSandboxConfig): domain.LinuxPodSandboxConfig =>
  present<domain.LinuxPodSandboxConfig>({
    cgroupParent: text(config.cgroupParent),
    securityContext: message(config.securityContext, sandboxSecurityContext),
    sysctls: map(config.sysctls),
    overhead: message(config.overhead, linuxContainerResources),
    resources: message(config.resources, linuxContainerResources),
  });

const podSandboxMetadata = (metadata: wire.PodSandboxMetadata): domain.PodSandboxMetadata =>
  present<domain.PodSandboxMetadata>({
    name: text(metadata.name),
    uid: text(metadata.uid),
    namespace: text(metadata.namespace),
    attempt: whole(metadata.attempt),
  });

const dnsConfig = ({ servers, searches, options }: wire.DNSConfig): domain.DNSConfig =>
  present<domain.DNSConfig>({ servers: list(servers), searches: list(searches), options: list(options) });

const portMapping = ({ protocol, containerPort, hostPort, hostIp }: wire.PortMapping): domain.PortMapping => {
  // Plugins put it into rules of the firewall, and what is no address there fails, or means another one.
  if (hostIp !== '' && isIP(hostIp) === 0) {
    const problem = `port_mappings.host_ip is ${shown(hostIp)}, no IP address: leave it empty for all of the node's`;
    throw new FailureError('InvalidField', problem);
  }
  // The port mapper would refuse it, when the rest of the network is made already.
  if (hostPort > 0 && containerPort === 0) {
    const problem = `port_mappings.container_port is 0: name the port of the pod that host_port ${hostPort} leads to`;
    throw new FailureError('InvalidField', problem);
  }
  return present<domain.PortMapping>({
    protocol: whole(protocol),
    containerPort: whole(containerPort),
    hostPort: whole(hostPort),
    hostIp: text(hostIp),
  });
};

/**
 * `windows` is left out: scribe runs on Linux.
 * @throws {FailureError} InvalidField for a host IP that is none, and for a host port that leads nowhere
 */
export const podSandboxConfig = (config: wire.PodSandboxConfig): domain.PodSandboxConfig =>
  present<domain.PodSandboxConfig>({
    metadata: message(config.metadata, podSandboxMetadata),
    hostname: text(config.hostname),
    logDirectory: text(config.logDirectory),
    dnsConfig: message(config.dnsConfig, dnsConfig),
    portMappings: messages(config.portMappings, portMapping),
    labels: map(config.labels),
    annotations: map(config.annotations),
    linux: message(config.linux, linuxPodSandboxConfig),
  });

const containerMetadata = ({ name, attempt }: wire.ContainerMetadata): domain.ContainerMetadata =>
  present<domain.ContainerMetadata>({ name: text(name), attempt: whole(attempt) });

export const imageSpec = (spec: wire.ImageSpec): domain.ImageSpec =>
  present<domain.ImageSpec>({
    image: text(spec.image),
    annotations: map(spec.annotations),
    userSpecifiedImage: text(spec.userSpecifiedImage),
    runtimeHandler: text(spec.runtimeHandler),
    imageRef: text(spec.imageRef),
  });

function keyValue({ key, value }: wire.KeyValue, tokenOf: TokenOf): domain.KeyValue {
  // Behind the token nobody looks at the value again.
  if (value.includes(0)) {
    throw new FailureError('InvalidField', `envs[${shown(key)}].value holds a NUL byte: no program can be given one`);
  }
  return present<domain.KeyValue>({ key: text(key), token: value.length === 0 ? undefined : tokenOf(value) });
}

const mount = (fields: wire.Mount): domain.Mount =>
  present<domain.Mount>({
    containerPath: text(fields.containerPath),
    hostPath: text(fields.hostPath),
    readonly: flag(fields.readonly),
    selinuxRelabel: flag(fields.selinuxRelabel),
    propagation: whole(fields.propagation),
    uidMappings: messages(fields.uidMappings, idMapping),
    gidMappings: messages(fields.gidMappings, idMapping),
    recursiveReadOnly: flag(fields.recursiveReadOnly),
    image: message(fields.image, imageSpec),
    imageSubPath: text(fields.imageSubPath),
    mountOptions: list(fields.mountOptions),
  });

const device = ({ containerPath, hostPath, permissions }: wire.Device): domain.Device =>
  present<domain.Device>({
    containerPath: text(containerPath),
    hostPath: text(hostPath),
    permissions: text(permissions),
  });

const capability = (fields: wire.Capability): domain.Capability =>
  present<domain.Capability>({
    addCapabilities: list(fields.addCapabilities),
    dropCapabilities: list(fields.dropCapabilities),
    addAmbientCapabilities: list(fields.addAmbientCapabilities),
  });

/** One of a later contract is there to keep groups from a process: it is not to be taken for the one that gives the most. */
const groupsPolicy = (policy: number): number | undefined => {
  if (!Object.values<number>(SupplementalGroupsPolicy).includes(policy)) {
    const problem = `linux.security_context.supplemental_groups_policy is ${policy}: it must be Merge or Strict`;
    throw new FailureError('InvalidField', problem);
  }
  return whole(policy);
};

const containerSecurityContext = (context: wire.LinuxContainerSecurityContext): domain.LinuxContainerSecurityContext =>
  present<domain.LinuxContainerSecurityContext>({
    capabilities: message(context.capabilities, capability),
    privileged: flag(context.privileged),
    namespaceOptions: message(context.namespaceOptions, namespaceOption),
    selinuxOptions: message(context.selinuxOptions, selinuxOption),
    runAsUser: message(context.runAsUser, int64Value),
    runAsGroup: message(context.runAsGroup, int64Value),
    runAsUsername: text(context.runAsUsername),
    readonlyRootfs: flag(context.readonlyRootfs),
    supplementalGroups: list(context.supplementalGroups),
    supplementalGroupsPolicy: groupsPolicy(context.supplementalGroupsPolicy),
    noNewPrivs: flag(context.noNewPrivs),
    maskedPaths: list(context.maskedPaths),
    readonlyPaths: list(context.readonlyPaths),
    seccomp: message(context.seccomp, securityProfile),
    apparmor: message(context.apparmor, securityProfile),
    apparmorProfile: text(context.apparmorProfile),
    seccompProfilePath: text(context.seccompProfilePath),
  });

const linuxContainerConfig = ({ resources, securityContext }: wire.LinuxContainerConfig): domain.LinuxContainerConfig =>
  present<domain.LinuxContainerConfig>({
    resources: message(resources, linuxContainerResources),
    securityContext: message(securityContext, containerSecurityContext),
  });

const cdiDevice = ({ name }: wire.CDIDevice): domain.CDIDevice => present<domain.CDIDevice>({ name: text(name) });

/**
 * `windows` is left out: scribe runs on Linux. `tokenOf` is called once per env value that is not empty.
 * @throws {FailureError} InvalidField for an env value with a NUL byte, and for a policy of groups that there is none of
 */
export const containerConfig = (config: wire.ContainerConfig, tokenOf: TokenOf): domain.ContainerConfig =>
  present<domain.ContainerConfig>({
    metadata: message(config.metadata, containerMetadata),
    image: message(config.image, imageSpec),
    command: list(config.command),
    args: list(config.args),
    workingDir: text(config.workingDir),
    envs: messages(config.envs, (entry) => keyValue(entry, tokenOf)),
    mounts: messages(config.mounts, mount),
    devices: messages(config.devices, device),
    labels: map(config.labels),
    annotations: map(config.annotations),
    logPath: text(config.logPath),
    stdin: flag(config.stdin),
    stdinOnce: flag(config.stdinOnce),
    tty: flag(config.tty),
    linux: message(config.linux, linuxContainerConfig),
    CDIDevices: messages(config.CDIDevices, cdiDevice),
    stopSignal: whole(config.stopSignal),
  });
