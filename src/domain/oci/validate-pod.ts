/**
 * What a PodSandboxConfig must be like before anything is made of it. Everything here holds on any node; what depends
 * on this one is found by building the spec (validate.ts).
 */
import { type DNSConfig, NamespaceMode, type PodSandboxConfig, type PortMapping, Protocol } from '../model/cri.ts';
import { checkBandwidth } from './bandwidth.ts';
import { checkAbsolutePath, checkLine, checkNoParentPart, checkRequired, checkResources, checkUser } from './checks.ts';
import { refuseField, shown } from './refuse.ts';
import { checkSeccomp } from './seccomp.ts';
import { checkSelinuxOptions } from './selinux.ts';
import { checkSysctls } from './sysctls.ts';
import { checkPodUserNamespace, NAMESPACE_FIELD } from './user-namespace.ts';

/** The kernel's limit (HOST_NAME_MAX). */
const MAX_HOSTNAME_LENGTH = 64;
const MAX_PORT = 65535;

function checkDns({ servers = [], searches = [], options = [] }: DNSConfig): void {
  for (const [name, values] of Object.entries({ servers, searches, options })) {
    for (const value of values) {
      checkRequired(`dns_config.${name}`, value);
      if (value.includes(' ')) refuseField(`dns_config.${name}`, `holds ${shown(value)}: give each word by itself`);
    }
  }
}

function checkPort({ protocol = Protocol.TCP, containerPort = 0, hostPort = 0, hostIp }: PortMapping): void {
  if (!Object.values<number>(Protocol).includes(protocol)) {
    refuseField('port_mappings.protocol', `is ${protocol}: it must be TCP, UDP or SCTP`);
  }
  for (const [name, port] of [
    ['container_port', containerPort],
    ['host_port', hostPort],
  ] as const) {
    if (!(port >= 0 && port <= MAX_PORT))
      refuseField(`port_mappings.${name}`, `is ${port}: it must be from 0 to ${MAX_PORT}`);
  }
  if (hostIp && !/^[\w.:%]+$/.test(hostIp)) refuseField('port_mappings.host_ip', `is ${shown(hostIp)}, no IP address`);
}

function checkNamespaces(config: PodSandboxConfig): void {
  const options = config.linux?.securityContext?.namespaceOptions ?? {};
  const check = (
    name: string,
    mode: NamespaceMode | undefined,
    allowed: Readonly<Record<string, NamespaceMode>>,
  ): void => {
    if (!Object.values(allowed).includes(mode ?? NamespaceMode.POD)) {
      refuseField(`${NAMESPACE_FIELD}.${name}`, `is ${mode}: a pod can have ${Object.keys(allowed).join(', ')}`);
    }
  };
  const { POD, NODE, CONTAINER } = NamespaceMode;
  check('network', options.network, { POD, NODE });
  check('ipc', options.ipc, { POD, NODE });
  check('pid', options.pid, { POD, CONTAINER, NODE });
  checkPodUserNamespace(config);
}

/** @throws {FailureError} naming the first field that is not right */
export function checkPodSandboxConfig(config: PodSandboxConfig): void {
  checkRequired('metadata.name', config.metadata?.name);
  checkRequired('metadata.namespace', config.metadata?.namespace);
  checkRequired('metadata.uid', config.metadata?.uid);
  const hostname = config.hostname ?? '';
  if (hostname.length > MAX_HOSTNAME_LENGTH) {
    refuseField(
      'hostname',
      `is longer than ${MAX_HOSTNAME_LENGTH} bytes, the most Linux takes: shorten ${shown(hostname)}`,
    );
  }
  checkLine('hostname', hostname);
  if (/[\s/]/.test(hostname)) refuseField('hostname', `is ${shown(hostname)}: it must hold no space and no slash`);
  if (config.logDirectory) {
    checkAbsolutePath('log_directory', config.logDirectory);
    checkNoParentPart('log_directory', config.logDirectory);
  }
  if (config.dnsConfig !== undefined) checkDns(config.dnsConfig);
  config.portMappings?.forEach(checkPort);
  const parent = config.linux?.cgroupParent;
  if (parent) {
    checkLine('linux.cgroup_parent', parent);
    checkNoParentPart('linux.cgroup_parent', parent);
    if (parent.includes(':')) refuseField('linux.cgroup_parent', `is ${shown(parent)}: it must hold no colon`);
  }
  const context = config.linux?.securityContext;
  checkNamespaces(config);
  checkUser(context);
  checkSelinuxOptions(config);
  checkSeccomp(context);
  checkSysctls(config);
  checkBandwidth(config);
  checkResources('linux.resources', config.linux?.resources);
  checkResources('linux.overhead', config.linux?.overhead);
}
