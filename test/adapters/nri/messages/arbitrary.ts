/** Adjustments and limits at random, as plugins may send them: every field is absent now and then, none is empty. */
import fc from 'fast-check';
import type {
  ContainerAdjustment,
  LinuxContainerAdjustment,
  NriCpu,
  NriMemory,
  NriRdt,
  NriResources,
  NriScheduler,
} from '../../../../src/domain/model/nri.ts';
import type { OciDevice, OciEnv, OciHook, OciHooks, OciSeccomp } from '../../../../src/domain/model/oci.ts';
import type { MessageFns } from '../../../../src/wire/nri/api.ts';

/** How tests stand in for the vault: the token has the value in it. */
const TOKEN = 'token:';
export const tokenOf = (value: string): string => TOKEN + value;
export const valueOf = (token: string): string => token.slice(TOKEN.length);

/** As it is after a trip over the wire. */
export const sent = <T>(codec: MessageFns<T>, message: T): T => codec.decode(codec.encode(message).finish());

type Fields<T> = { readonly [K in keyof Required<T>]: fc.Arbitrary<NonNullable<T[K]>> };

/** At least one field is set. */
const some = <T extends object>(fields: Fields<T>): fc.Arbitrary<T> =>
  (
    fc.record(fields as Record<string, fc.Arbitrary<unknown>>, {
      requiredKeys: [],
      noNullPrototype: true,
    }) as fc.Arbitrary<T>
  ).filter((made) => Object.keys(made).length > 0);

const exactly = <T extends object>(fields: Fields<T>): fc.Arbitrary<T> =>
  fc.record(fields, { noNullPrototype: true }) as fc.Arbitrary<T>;

const few = <T>(one: fc.Arbitrary<T>): fc.Arbitrary<T[]> => fc.array(one, { minLength: 1, maxLength: 3 });

const text = fc.string({ minLength: 1, maxLength: 12 }).filter((value) => !value.includes('\0'));
const name = fc.constantFrom('A', 'LONG_NAME', 'mixed.Case');
const path = fc.constantFrom('/dev/x', '/a/b/c', '/');
const marked = <T extends string>(one: fc.Arbitrary<T>): fc.Arbitrary<string> =>
  fc.tuple(fc.boolean(), one).map(([gone, value]) => (gone ? `-${value}` : value));
const map = <T>(value: fc.Arbitrary<T>): fc.Arbitrary<Record<string, T>> =>
  fc.dictionary(marked(name), value, { minKeys: 1, maxKeys: 3, noNullPrototype: true });

const int64 = fc.bigInt({ min: -1n, max: 2n ** 63n - 1n }).map(String);
const uint64 = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n }).map(String);
const uint32 = fc.integer({ min: 0, max: 2 ** 32 - 1 });
const flag = fc.boolean();
const ids = fc.constantFrom('0', '0-3,5');

const nriMemory = some<NriMemory>({
  limit: int64,
  reservation: int64,
  swap: int64,
  kernel: int64,
  kernelTcp: int64,
  swappiness: fc.integer({ min: 0, max: 100 }).map(String),
  disableOomKiller: flag,
  useHierarchy: flag,
});

const nriCpu = some<NriCpu>({
  shares: uint64,
  quota: int64,
  period: uint64,
  realtimeRuntime: int64,
  realtimePeriod: uint64,
  cpus: ids,
  mems: ids,
});

const rule = fc.constantFrom(
  { allow: true, type: 'c' as const, major: 1, minor: 3, access: 'rwm' },
  { allow: false, type: 'a' as const, access: '' },
  { allow: true, type: 'b' as const, major: -1, minor: 0, access: 'r' },
  { allow: false, access: 'w' },
);

export const resources: fc.Arbitrary<NriResources> = some<NriResources>({
  memory: nriMemory,
  cpu: nriCpu,
  hugepageLimits: few(fc.record({ pageSize: fc.constantFrom('2MB', '1GB'), limit: uint64 }, { noNullPrototype: true })),
  blockioClass: fc.constantFrom('', 'slow'),
  rdtClass: fc.constantFrom('', 'gold'),
  unified: fc.dictionary(fc.constantFrom('memory.high', 'io.weight'), text, { minKeys: 1, noNullPrototype: true }),
  devices: few(rule),
  pids: fc.record({ limit: int64 }, { noNullPrototype: true }),
});

/** As they are once they were read: a secret unless there is nothing to hide. */
const secretEnv: fc.Arbitrary<OciEnv> = fc.oneof(
  fc.tuple(name, text).map(([key, value]) => ({ name: key, token: tokenOf(value) })),
  name.map((key) => `${key}=`),
);
const env = fc.oneof(
  secretEnv,
  name.map((key) => `-${key}`),
);
const arg = fc.oneof(
  text.map((value) => ({ token: tokenOf(value) })),
  fc.constant(''),
);

const optionally = <T extends object>(required: Fields<T>, rest: fc.Arbitrary<object>): fc.Arbitrary<T> =>
  fc.tuple(exactly<T>(required), fc.option(rest, { nil: {} })).map(([one, more]) => ({ ...one, ...more }));

const hook = optionally<OciHook>(
  { path } as Fields<OciHook>,
  some<Omit<OciHook, 'path'>>({ args: few(text), env: few(secretEnv), timeout: fc.integer({ min: 1, max: 86_400 }) }),
);

const hooks: fc.Arbitrary<OciHooks> = some<OciHooks>({
  prestart: few(hook),
  createRuntime: few(hook),
  createContainer: few(hook),
  startContainer: few(hook),
  poststart: few(hook),
  poststop: few(hook),
});

const device: fc.Arbitrary<OciDevice> = fc.oneof(
  path.map((gone) => ({ path: `-${gone}`, type: 'c' as const, major: 0, minor: 0 })),
  optionally<OciDevice>(
    { path, type: fc.constantFrom('c', 'b', 'p'), major: uint32, minor: uint32 } as Fields<OciDevice>,
    some<Pick<OciDevice, 'fileMode' | 'uid' | 'gid'>>({
      fileMode: fc.integer({ min: 0, max: 0o7777 }),
      uid: uint32,
      gid: uint32,
    }),
  ),
);

const seccomp = optionally<OciSeccomp>(
  { defaultAction: text } as Fields<OciSeccomp>,
  some<Omit<OciSeccomp, 'defaultAction'>>({
    defaultErrnoRet: uint32,
    architectures: few(text),
    flags: few(text),
    listenerPath: path,
    listenerMetadata: text,
    syscalls: fc.constant([
      { names: ['openat'], action: 'SCMP_ACT_ERRNO', errnoRet: 0 },
      {
        names: ['clone', 'clone3'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 1, value: Number.MAX_SAFE_INTEGER, valueTwo: 7, op: 'SCMP_CMP_EQ' }],
      },
    ]),
  }),
);

const scheduler = optionally<NriScheduler>(
  { policy: fc.constantFrom('SCHED_NONE', 'SCHED_OTHER', 'SCHED_DEADLINE') } as Fields<NriScheduler>,
  some<Omit<NriScheduler, 'policy'>>({
    nice: fc.integer({ min: -20, max: 19 }).filter((nice) => nice !== 0),
    priority: fc.integer({ min: 1, max: 99 }),
    flags: few(fc.constantFrom('SCHED_FLAG_RESET_ON_FORK', 'SCHED_FLAG_UTIL_CLAMP_MAX')),
    runtimeNs: fc.constant('18446744073709551615'),
    deadlineNs: fc.constant('2'),
    periodNs: fc.constant('3'),
  }),
);

const linux: fc.Arbitrary<LinuxContainerAdjustment> = some<LinuxContainerAdjustment>({
  devices: few(device),
  resources,
  cgroupsPath: text,
  oomScoreAdj: fc.integer({ min: -1000, max: 1000 }),
  ioPriority: fc.record(
    { class: fc.constantFrom('IOPRIO_CLASS_NONE', 'IOPRIO_CLASS_IDLE'), priority: fc.integer({ min: 0, max: 7 }) },
    { noNullPrototype: true },
  ),
  seccompPolicy: seccomp,
  namespaces: few(fc.constantFrom({ type: '-pid' }, { type: 'ipc', path: '/proc/1/ns/ipc' }, { type: 'cgroup' })),
  sysctl: map(text),
  netDevices: map(fc.record({ name: text }, { noNullPrototype: true })),
  scheduler,
  rdt: some<NriRdt>({
    closId: fc.constantFrom('', 'gold'),
    schemata: fc.array(text, { maxLength: 2 }),
    enableMonitoring: flag,
    remove: fc.constant(true),
  }),
  memoryPolicy: fc.constantFrom(
    { mode: 'MPOL_DEFAULT', nodes: '' },
    { mode: 'MPOL_WEIGHTED_INTERLEAVE', nodes: '0-1', flags: ['MPOL_F_STATIC_NODES', 'MPOL_F_NUMA_BALANCING'] },
  ),
});

export const adjustment: fc.Arbitrary<ContainerAdjustment> = some<ContainerAdjustment>({
  annotations: map(text),
  mounts: few(
    fc.constantFrom(
      { destination: '-/data', source: '', options: [] },
      { destination: '/data', type: 'bind', source: '/srv', options: ['rbind', 'ro'] },
    ),
  ),
  env: few(env),
  hooks,
  linux,
  rlimits: few(fc.constantFrom({ type: 'RLIMIT_NOFILE', hard: '18446744073709551615', soft: '0' })),
  cdiDevices: few(fc.constant('vendor.com/net=eth0')),
  args: few(arg),
});
