/**
 * Configs at random: sane ones, which are mostly accepted, and nasty ones, which should be refused and never do harm.
 * Every field is absent now and then.
 */
import fc from 'fast-check';
import type {
  ContainerConfig,
  LinuxContainerResources,
  LinuxContainerSecurityContext,
  LinuxSandboxSecurityContext,
  NamespaceOption,
  PodSandboxConfig,
} from '../../../src/domain/model/cri.ts';
import type { ImageConfig } from '../../../src/domain/model/image-content.ts';

/** Stands for every secret: must be nowhere in a spec but in a token. */
export const TOKEN = 'SECRET-TOKEN';

type Fields<T> = { readonly [K in keyof T]?: fc.Arbitrary<NonNullable<T[K]>> };

const optional = <T extends object>(fields: Fields<T>): fc.Arbitrary<T> =>
  fc.record(fields as Record<string, fc.Arbitrary<unknown>>, {
    requiredKeys: [],
    noNullPrototype: true,
  }) as fc.Arbitrary<T>;

const few = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(arbitrary, { maxLength: 3 });

/** What fields are made of. */
interface Pieces {
  readonly text: fc.Arbitrary<string>;
  readonly path: fc.Arbitrary<string>;
  readonly relativePath: fc.Arbitrary<string>;
  readonly mode: fc.Arbitrary<number>;
  readonly id: fc.Arbitrary<string>;
  /** CPU periods and quotas, in microseconds. */
  readonly time: fc.Arbitrary<string>;
  readonly pageSize: fc.Arbitrary<string>;
  readonly cgroupFile: fc.Arbitrary<string>;
  readonly sysctl: fc.Arbitrary<string>;
  readonly capability: fc.Arbitrary<string>;
  readonly permissions: fc.Arbitrary<string>;
  readonly seccompPath: fc.Arbitrary<string>;
  readonly cpus: fc.Arbitrary<string>;
}

const saneText = fc.stringMatching(/^[a-z]{1,6}$/);
const joined = (part: fc.Arbitrary<string>, minLength: number): fc.Arbitrary<string> =>
  fc.array(part, { minLength, maxLength: 4 }).map((parts) => parts.join('/'));

const sane: Pieces = {
  text: saneText,
  path: joined(saneText, 1).map((path) => `/${path}`),
  relativePath: joined(saneText, 1),
  mode: fc.constantFrom(0, 1, 2),
  id: fc.integer({ min: 0, max: 1000 }).map(String),
  time: fc.integer({ min: 1000, max: 100_000 }).map(String),
  pageSize: fc.constantFrom('2MB', '1GB', '16GB'),
  cgroupFile: fc.constantFrom('memory.high', 'memory.min'),
  sysctl: fc.constantFrom('net.core.somaxconn', 'net/ipv4/ip_forward', 'kernel.shm_rmid_forced'),
  capability: fc.constantFrom('ALL', 'NET_ADMIN', 'cap_sys_admin', 'KILL'),
  permissions: fc.constantFrom('r', 'rw', 'rwm'),
  seccompPath: fc.constantFrom('', 'unconfined', 'runtime/default', 'localhost//profile'),
  cpus: fc.constantFrom('0', '0-3,5'),
};

const nastyText = fc.oneof(
  saneText,
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom('', '..', '/', '../../etc', 'a=b', 'a\nb', '\0', ' ', '/proc/self/../..', '__proto__'),
);
const nastyId = fc.oneof(fc.integer({ min: -2, max: 70_000 }), fc.bigInt({ min: -1n, max: 2n ** 63n })).map(String);

const nasty: Pieces = {
  text: nastyText,
  path: fc.oneof(
    nastyText,
    joined(nastyText, 0).map((path) => `/${path}`),
  ),
  relativePath: nastyText,
  mode: fc.integer({ min: -1, max: 5 }),
  id: nastyId,
  time: nastyId,
  pageSize: nastyText,
  cgroupFile: nastyText,
  sysctl: nastyText,
  capability: fc.oneof(sane.capability, nastyText, fc.constantFrom('SYS_RESOURCE', 'NOPE')),
  permissions: nastyText,
  seccompPath: nastyText,
  cpus: nastyText,
};

const resourcesOf = ({ id, time, cpus, pageSize, cgroupFile }: Pieces): fc.Arbitrary<LinuxContainerResources> =>
  optional<LinuxContainerResources>({
    cpuPeriod: time,
    cpuQuota: time,
    cpuShares: id,
    memoryLimitInBytes: id,
    memorySwapLimitInBytes: id,
    oomScoreAdj: id,
    cpusetCpus: cpus,
    hugepageLimits: few(optional({ pageSize, limit: id })),
    unified: fc.dictionary(cgroupFile, id, { maxKeys: 1, noNullPrototype: true }),
  });

const namespacesOf = ({ mode, text }: Pieces, network: fc.Arbitrary<number>): fc.Arbitrary<NamespaceOption> =>
  optional<NamespaceOption>({
    network,
    pid: mode,
    ipc: network,
    targetId: text,
    usernsOptions: fc.constant({ mode: 2 }),
  });

const profileOf = ({ mode, path }: Pieces) =>
  fc.record({ profileType: mode, localhostRef: path }, { noNullPrototype: true });

const containerOf = (pieces: Pieces): fc.Arbitrary<ContainerConfig> => {
  const { text, path, mode, id } = pieces;
  const securityContext = optional<LinuxContainerSecurityContext>({
    privileged: fc.boolean(),
    capabilities: optional({ addCapabilities: few(pieces.capability), dropCapabilities: few(pieces.capability) }),
    namespaceOptions: namespacesOf(pieces, mode),
    runAsUser: optional({ value: id }),
    supplementalGroups: few(id),
    readonlyRootfs: fc.boolean(),
    noNewPrivs: fc.boolean(),
    maskedPaths: few(path),
    readonlyPaths: few(path),
    seccomp: profileOf(pieces),
    seccompProfilePath: pieces.seccompPath,
  });
  return optional<ContainerConfig>({
    command: few(text),
    args: few(text),
    workingDir: path,
    envs: few(fc.record({ key: text, token: fc.constant(TOKEN) }, { noNullPrototype: true })),
    mounts: few(
      fc.record(
        { containerPath: path, hostPath: path, readonly: fc.boolean(), propagation: mode },
        { noNullPrototype: true },
      ),
    ),
    devices: few(
      fc.record({ hostPath: path, containerPath: path, permissions: pieces.permissions }, { noNullPrototype: true }),
    ),
    logPath: pieces.relativePath,
    tty: fc.boolean(),
    stopSignal: mode,
    linux: optional<NonNullable<ContainerConfig['linux']>>({ resources: resourcesOf(pieces), securityContext }),
  }).chain((config) =>
    fc.record({ metadata: fc.record({ name: text }), image: fc.record({ image: text }) }).map((named) => ({
      ...config,
      ...structuredClone(named),
    })),
  );
};

const podOf = (pieces: Pieces): fc.Arbitrary<PodSandboxConfig> => {
  const { text, path, id, mode } = pieces;
  const network = mode.map((value) => (value === 1 ? 0 : value));
  const securityContext = optional<LinuxSandboxSecurityContext>({
    namespaceOptions: namespacesOf(pieces, network),
    privileged: fc.boolean(),
    runAsUser: optional({ value: id }),
    supplementalGroups: few(id),
    seccomp: profileOf(pieces).filter(({ profileType }) => profileType !== 2),
  });
  return fc
    .record({
      metadata: fc.record({ name: text, uid: text, namespace: text }),
      rest: optional<PodSandboxConfig>({
        hostname: text,
        logDirectory: path,
        dnsConfig: optional({ servers: few(text), searches: few(text), options: few(text) }),
        portMappings: few(optional({ hostPort: mode, hostIp: text })),
        linux: optional<NonNullable<PodSandboxConfig['linux']>>({
          cgroupParent: path,
          sysctls: fc.dictionary(pieces.sysctl, id, { maxKeys: 2, noNullPrototype: true }),
          resources: resourcesOf(pieces),
          securityContext,
        }),
      }),
    })
    .map(({ metadata, rest }) => ({ ...rest, metadata: structuredClone(metadata) }));
};

const imageOf = ({ text, path }: Pieces): fc.Arbitrary<ImageConfig> =>
  optional<ImageConfig>({
    entrypoint: few(text),
    cmd: few(text),
    env: few(
      fc.oneof(
        text,
        fc.tuple(text, text).map(([name, value]) => `${name}=${value}`),
      ),
    ),
    workingDir: path,
    user: text,
  });

const either = <T>(of: (pieces: Pieces) => fc.Arbitrary<T>): fc.Arbitrary<T> => fc.oneof(of(sane), of(nasty));

export const containerConfigs = either(containerOf);
export const podConfigs = either(podOf);
export const imageConfigs = either(imageOf);
export const anyPaths = nasty.path;
