/**
 * Devices of a container: which nodes are made in its /dev, and what its device cgroup allows. A privileged container
 * gets every device of the node and may use any. Must not look at the host: DeviceFact says what is there.
 */
import type { PrivilegedDevices } from '../model/runtime-handler.ts';
import type { ContainerConfig } from '../model/cri.ts';
import type { DeviceFact } from '../model/container-facts.ts';
import { refuse } from './refuse.ts';
import type { OciDevice, OciDeviceCgroup, OciMount } from '../model/oci.ts';
import type { SpecSettings } from '../model/spec-settings.ts';
import { cleanPath } from './paths.ts';

const ALL_ACCESS = 'rwm';

const denyAll: OciDeviceCgroup = { allow: false, access: ALL_ACCESS };
const allowAll: OciDeviceCgroup = { allow: true, access: ALL_ACCESS };

const allow = (type: 'c' | 'b', major: number, minor: number | undefined, access: string): OciDeviceCgroup => ({
  allow: true,
  type,
  major,
  ...(minor === undefined ? {} : { minor }),
  access,
});

/**
 * What every OCI runtime makes in /dev: null, zero, full, random, urandom, tty, console, ptmx and pts/*. It allows their use
 * by itself, whatever a spec says; specs of decision rules before 7 said it once more.
 */
const standard: readonly OciDeviceCgroup[] = [
  allow('c', 1, 3, ALL_ACCESS),
  allow('c', 1, 5, ALL_ACCESS),
  allow('c', 1, 7, ALL_ACCESS),
  allow('c', 1, 8, ALL_ACCESS),
  allow('c', 1, 9, ALL_ACCESS),
  allow('c', 5, 0, ALL_ACCESS),
  allow('c', 5, 1, ALL_ACCESS),
  allow('c', 5, 2, ALL_ACCESS),
  allow('c', 136, undefined, ALL_ACCESS),
];

interface GrantedDevice {
  readonly device: OciDevice;
  readonly access: string;
  /** Its path on the node. */
  readonly hostPath: string;
}

/**
 * In a user namespace no node can be made: OCI runtimes mount that of the node which has the container's name for it. A
 * device of another name is mounted by this instead.
 */
export const mountedDevice = (hostPath: string, path: string): OciMount => ({
  destination: cleanPath(path),
  type: 'bind',
  source: hostPath,
  options: ['bind'],
});

export const isRenamed = (hostPath: string, path: string): boolean => cleanPath(hostPath) !== cleanPath(path);

const grant = (fact: DeviceFact, path: string, access: string): GrantedDevice => ({
  device: {
    path,
    type: fact.type,
    major: fact.major,
    minor: fact.minor,
    fileMode: fact.fileMode,
    uid: fact.uid,
    gid: fact.gid,
  },
  access,
  hostPath: fact.path,
});

function requested(config: ContainerConfig, facts: readonly DeviceFact[]): readonly GrantedDevice[] {
  const factsOf = Map.groupBy(facts, ({ hostPath }) => hostPath);
  return (config.devices ?? []).flatMap(({ hostPath = '', containerPath, permissions }) => {
    const found = factsOf.get(hostPath);
    if (found === undefined) return refuse('HostLacks', `devices.host_path ${hostPath} is no device and holds none`);
    return found.map((fact) =>
      grant(fact, (containerPath || hostPath) + fact.path.slice(hostPath.length), permissions || ALL_ACCESS),
    );
  });
}

export const DEV = '/dev';

export interface ContainerDevices {
  readonly devices: readonly OciDevice[];
  /** In place of devices. */
  readonly mounts: readonly OciMount[];
  readonly rules: readonly OciDeviceCgroup[];
}

const rule = ({ device, access }: GrantedDevice): readonly OciDeviceCgroup[] =>
  device.type === 'p' ? [] : [allow(device.type, device.major, device.minor, access)];

/**
 * `nodes` says what the container gets of the node's devices: given, all of them, as a privileged one does. `ownUsers`: it is
 * in a user namespace.
 * @throws {FailureError} HostLacks when a device that was asked for is not there.
 */
export function containerDevices(
  config: ContainerConfig,
  facts: readonly DeviceFact[],
  nodes: PrivilegedDevices | 'given',
  settings: Pick<SpecSettings, 'standardDeviceRules' | 'mountedDevices'>,
  ownUsers = false,
): ContainerDevices {
  const asked = requested(config, facts);
  const hosts =
    nodes === 'given'
      ? facts.filter((fact) => fact.hostPath === DEV).map((fact) => grant(fact, fact.path, ALL_ACCESS))
      : [];
  const byPath = new Map([...hosts, ...asked].map((granted) => [granted.device.path, granted]));
  const isMounted = ({ device: { path }, hostPath }: GrantedDevice): boolean =>
    ownUsers && settings.mountedDevices === true && isRenamed(hostPath, path);
  const all = [...byPath.values()];
  return {
    devices: all.filter((granted) => !isMounted(granted)).map(({ device }) => device),
    mounts: all.filter(isMounted).map(({ device, hostPath }) => mountedDevice(hostPath, device.path)),
    rules: nodes === 'asked' ? [...standardRules(settings), ...asked.flatMap(rule)] : [allowAll],
  };
}

/** Of a container that asks for no device. */
export const standardRules = ({
  standardDeviceRules = false,
}: Pick<SpecSettings, 'standardDeviceRules'>): readonly OciDeviceCgroup[] =>
  standardDeviceRules ? [denyAll, ...standard] : [denyAll];
