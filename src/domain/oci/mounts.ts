/**
 * Mounts of a spec: the file systems every container has, the pod's shared files, and what CRI asks for. A CRI mount
 * takes the place of any other at the same destination. Host paths are the resolved ones of the facts: a link that is
 * changed between the look and the mount leads nowhere else.
 */
import { type ContainerConfig, type Mount, MountPropagation, type PodSandboxConfig } from '../model/cri.ts';
import type { ContainerFacts, MountFact } from '../model/container-facts.ts';
import { DEV } from './devices.ts';
import type { ImageMount, ImageVolume, SandboxPaths } from './input.ts';
import type { SpecSettings } from '../model/spec-settings.ts';
import { hasHostIpc } from './namespaces.ts';
import { cleanPath, pathDepth } from './paths.ts';
import { refuse, shown } from './refuse.ts';
import type { OciMount, OciRootfsPropagation } from '../model/oci.ts';
import { hasOwnUsers, userNamespaceOf } from './user-namespace.ts';
import type { MappedMount } from '../model/user-namespace.ts';

const DEV_SHM = '/dev/shm';
const ETC_RESOLV_CONF = '/etc/resolv.conf';
const INERT = ['nosuid', 'noexec', 'nodev'];

const proc: OciMount = { destination: '/proc', type: 'proc', source: 'proc', options: INERT };
const dev: OciMount = {
  destination: DEV,
  type: 'tmpfs',
  source: 'tmpfs',
  options: ['nosuid', 'strictatime', 'mode=755', 'size=65536k'],
};
/** The group tty in every distribution. */
const TTY_GROUP = 5;
const devpts: OciMount = {
  destination: '/dev/pts',
  type: 'devpts',
  source: 'devpts',
  options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666', 'mode=0620', `gid=${TTY_GROUP}`],
};
/** A group that a pod does not have can own nothing in it. */
const devptsFor = (config: PodSandboxConfig): OciMount => {
  const users = userNamespaceOf(config);
  if (users === null || users.gids.length > TTY_GROUP) return devpts;
  return { ...devpts, options: devpts.options.filter((option) => !option.startsWith('gid=')) };
};
const mqueue: OciMount = { destination: '/dev/mqueue', type: 'mqueue', source: 'mqueue', options: INERT };
const sysfs = (access: string): OciMount => ({
  destination: '/sys',
  type: 'sysfs',
  source: 'sysfs',
  options: [...INERT, access],
});
const cgroup = (access: string): OciMount => ({
  destination: '/sys/fs/cgroup',
  type: 'cgroup',
  source: 'cgroup',
  options: [...INERT, 'relatime', access],
});

const accessOf = (readonly: boolean): string => (readonly ? 'ro' : 'rw');

const bind = (source: string, destination: string, options: readonly string[]): OciMount => ({
  destination,
  type: 'bind',
  source,
  options: ['rbind', ...options],
});

const shmOf = (config: PodSandboxConfig, paths: SandboxPaths): string => (hasHostIpc(config) ? DEV_SHM : paths.shm);

/** The pause task needs no more than what OCI runtimes need themselves; runtimes that start a machine want the DNS. */
export const sandboxMounts = (config: PodSandboxConfig, paths: SandboxPaths): readonly OciMount[] => [
  proc,
  dev,
  bind(shmOf(config, paths), DEV_SHM, ['ro', ...INERT]),
  bind(paths.resolvConf, ETC_RESOLV_CONF, ['ro', ...INERT]),
];

const defaultMounts = (config: PodSandboxConfig, privileged: boolean): readonly OciMount[] => [
  proc,
  dev,
  devptsFor(config),
  mqueue,
  sysfs(accessOf(!privileged)),
  cgroup(accessOf(!privileged)),
];

function podMounts(config: PodSandboxConfig, paths: SandboxPaths, readonlyRootfs: boolean): readonly OciMount[] {
  // In a user namespace, mounting again may take no such bit away that the node's mount may have.
  const access = ['rprivate', accessOf(readonlyRootfs), ...(readonlyRootfs && hasOwnUsers(config) ? INERT : [])];
  return [
    bind(paths.hostname, '/etc/hostname', access),
    bind(paths.hosts, '/etc/hosts', access),
    bind(paths.resolvConf, ETC_RESOLV_CONF, access),
    bind(shmOf(config, paths), DEV_SHM, ['rprivate', 'rw', ...INERT]),
  ];
}

function propagation(mount: Mount, fact: MountFact): 'rprivate' | 'rslave' | 'rshared' {
  const path = fact.realPath;
  switch (mount.propagation ?? MountPropagation.PROPAGATION_PRIVATE) {
    case MountPropagation.PROPAGATION_BIDIRECTIONAL:
      if (fact.propagation === 'shared') return 'rshared';
      return refuse(
        'HostLacks',
        `mounts.propagation of ${path} is bidirectional, but it lies on a mount that is not shared: run mount --make-rshared on it`,
      );
    case MountPropagation.PROPAGATION_HOST_TO_CONTAINER:
      if (fact.propagation !== 'private') return 'rslave';
      return refuse(
        'HostLacks',
        `mounts.propagation of ${path} is host-to-container, but it lies on a mount that is neither shared nor slave: run mount --make-rshared on it`,
      );
    default:
      return 'rprivate';
  }
}

function access(mount: Mount, settings: SpecSettings): string {
  if (!mount.recursiveReadOnly) return accessOf(mount.readonly ?? false);
  if (settings.recursiveReadOnlyMounts) return 'rro';
  return refuse(
    'HostLacks',
    `RROUnsupported: mounts.recursive_read_only of ${mount.containerPath ?? ''} is not supported by this runtime handler: use readonly`,
  );
}

/** Where images and directories in them are, by name. */
interface ImagePlaces {
  readonly roots: ReadonlyMap<string, string>;
  readonly insides: ReadonlyMap<string, string>;
}

const subPathKey = (image: string, subPath: string): string => JSON.stringify([image, subPath]);

const imagePlaces = ({ imageMounts, facts: { imageSubPaths = [] } }: ContainerMountsInput): ImagePlaces => ({
  roots: new Map(imageMounts.map(({ image, hostPath }) => [image, hostPath])),
  insides: new Map(imageSubPaths.map(({ image, subPath, realPath }) => [subPathKey(image, subPath), realPath])),
});

/**
 * A mount of an image is private whatever propagation is asked for: nothing is ever mounted in what stands for it on the
 * host.
 */
function imageMount(mount: Mount, places: ImagePlaces, { settings }: ContainerMountsInput): OciMount {
  const { containerPath = '', imageSubPath } = mount;
  const image = mount.image?.image ?? '';
  const root = places.roots.get(image);
  const inside = imageSubPath === undefined ? '/' : places.insides.get(subPathKey(image, imageSubPath));
  if (root === undefined || inside === undefined)
    return refuse('Bug', `nothing was found out about mounts.image ${shown(image)}`);
  const options = ['rprivate', access(mount, settings), ...(mount.mountOptions ?? [])];
  return bind(inside === '/' ? root : root + inside, cleanPath(containerPath), options);
}

const factsByPath = (facts: Pick<ContainerFacts, 'mounts'> | null): ReadonlyMap<string, MountFact> =>
  new Map((facts?.mounts ?? []).map((fact) => [fact.hostPath, fact]));

const isMapped = ({ uidMappings = [], gidMappings = [] }: Mount): boolean =>
  uidMappings.length + gidMappings.length > 0;

const mappedPath = (dir: string, index: number): string => `${dir}/${index}`;
const mappedVolumePath = (dir: string, index: number): string => `${dir}/volume-${index}`;

function criMount(
  mount: Mount,
  index: number,
  facts: ReadonlyMap<string, MountFact>,
  { settings, mappedDir }: ContainerMountsInput,
): OciMount {
  const { containerPath = '', hostPath = '' } = mount;
  const fact = facts.get(hostPath);
  if (fact === undefined) return refuse('Bug', `nothing was found out about mounts.host_path ${hostPath}`);
  const source = mappedDir !== null && isMapped(mount) ? mappedPath(mappedDir, index) : fact.realPath;
  const options = [access(mount, settings), ...(mount.mountOptions ?? [])];
  // Whoever is root of the pod only has to keep the flags of the mount when setting others.
  const kept = mappedDir === null || options.every((option) => option === accessOf(false)) ? [] : fact.flags;
  return bind(source, cleanPath(containerPath), [propagation(mount, fact), ...options, ...kept]);
}

/** What a container is to have mapped: the mounts that ask for it, and the volumes of its image, which root owns. */
export function mappedMounts(
  config: ContainerConfig,
  facts: Pick<ContainerFacts, 'mounts'> | null,
  imageVolumes: readonly ImageVolume[],
  dir: string,
): readonly MappedMount[] {
  const factOf = factsByPath(facts);
  const asked = (config.mounts ?? []).flatMap((mount, index) => {
    const fact = factOf.get(mount.hostPath ?? '');
    return fact === undefined || !isMapped(mount) ? [] : [{ source: fact.realPath, target: mappedPath(dir, index) }];
  });
  const volumes = imageVolumes.map(({ hostPath }, index) => ({
    source: hostPath,
    target: mappedVolumePath(dir, index),
  }));
  return [...asked, ...volumes];
}

const destinations = (mounts: readonly OciMount[]): ReadonlySet<string> =>
  new Set(mounts.map(({ destination }) => destination));

export interface ContainerMountsInput {
  readonly config: ContainerConfig;
  readonly sandboxConfig: PodSandboxConfig;
  readonly paths: SandboxPaths;
  readonly settings: SpecSettings;
  readonly facts: Pick<ContainerFacts, 'mounts' | 'imageSubPaths'>;
  readonly imageVolumes: readonly ImageVolume[];
  readonly imageMounts: readonly ImageMount[];
  readonly mappedDir: string | null;
  readonly privileged: boolean;
}

export interface ContainerMounts {
  readonly mounts: readonly OciMount[];
  readonly rootfsPropagation: OciRootfsPropagation | undefined;
}

/**
 * In the order they are made: the defaults, then the others by depth, so that none hides another. Two CRI mounts on
 * one destination keep their order: the later one is seen.
 * @throws {FailureError} HostLacks when a source has not the propagation that was asked for.
 */
export function containerMounts(input: ContainerMountsInput): ContainerMounts {
  const { config, sandboxConfig, paths, facts, imageVolumes, mappedDir, privileged } = input;
  const factOf = factsByPath(facts);
  const places = imagePlaces(input);
  const asked = (config.mounts ?? []).map((mount, index) =>
    mount.image === undefined ? criMount(mount, index, factOf, input) : imageMount(mount, places, input),
  );
  const taken = destinations(asked);
  const volumes = imageVolumes.map(({ imagePath, hostPath }, index) =>
    bind(mappedDir === null ? hostPath : mappedVolumePath(mappedDir, index), cleanPath(imagePath), ['rprivate', 'rw']),
  );
  const shared = podMounts(sandboxConfig, paths, config.linux?.securityContext?.readonlyRootfs ?? false);
  const free = (mounts: readonly OciMount[], occupied: ReadonlySet<string>): readonly OciMount[] =>
    mounts.filter(({ destination }) => !occupied.has(destination));
  const freeShared = free(shared, taken);
  const supplied = [...asked, ...freeShared, ...free(volumes, destinations([...asked, ...freeShared]))];
  const suppliedAt = destinations(supplied);
  const base = free(defaultMounts(sandboxConfig, privileged), suppliedAt)
    // A /dev of the caller's own is not to be covered by ours.
    .filter(({ destination }) => !(suppliedAt.has(DEV) && destination.startsWith(`${DEV}/`)));
  const byDepth = supplied.toSorted((a, b) => pathDepth(a.destination) - pathDepth(b.destination));
  return { mounts: [...base, ...byDepth], rootfsPropagation: rootfsPropagation(asked) };
}

/** Mounts can only pass through a root that lets them. */
function rootfsPropagation(mounts: readonly OciMount[]): OciRootfsPropagation | undefined {
  const passes = (kind: 'rshared' | 'rslave'): boolean => mounts.some(({ options }) => options.includes(kind));
  if (passes('rshared')) return 'rshared';
  return passes('rslave') ? 'rslave' : undefined;
}

/** Volumes the image declares that no CRI mount covers, each with a directory below `dir`. */
export function imageVolumesOf(
  config: ContainerConfig,
  volumes: readonly string[] | undefined,
  dir: string,
): readonly ImageVolume[] {
  const taken = new Set((config.mounts ?? []).map(({ containerPath = '' }) => cleanPath(containerPath)));
  const paths = new Set((volumes ?? []).map((volume) => cleanPath(`/${volume}`)));
  return [...paths]
    .filter((path) => path !== '/' && !taken.has(path))
    .map((imagePath, index) => ({ imagePath, hostPath: `${dir}/${index}` }));
}
