/**
 * What plugins change in one container, put together answer by answer, in the order in which they were asked (ascending
 * index). Every field, or key of a field, has one owner; two that set the same thing are a conflict, which names both.
 * Whoever takes away what another set may then set it. Pure: the same answers in the same order give the same.
 *
 *   field                                         key            rule
 *   annotations, sysctl, env, mounts, devices,    its key        one owner; "-key" clears
 *     net devices
 *   namespaces                                    type           one owner, also who takes away; nothing clears
 *   CDI devices, rlimits, hugepages, unified      name or size   one owner; nothing clears
 *   args                                          -              one owner; an empty first argument clears
 *   RDT's class, schemata, monitoring             -              one owner each; `remove` clears all three
 *   other values                                  -              one owner
 *   hooks, rules of devices                       -              all, one behind the other
 */
import { FailureError } from '../model/errors.ts';
import type {
  ContainerAdjustment,
  FieldOwners,
  LinuxContainerAdjustment,
  NriCpu,
  NriField,
  NriMemory,
  NriRdt,
  NriResources,
} from '../model/nri.ts';
import { HOOK_NAMES } from '../model/cdi.ts';
import type { OciArg, OciEnv, OciHooks } from '../model/oci.ts';
import type { Result } from '../model/result.ts';
import { resultOf } from '../oci/refuse.ts';
import { bareKey, isMarked, MARK } from './marks.ts';

export interface Merged {
  readonly adjust: ContainerAdjustment;
  readonly owners: FieldOwners;
}

export const NOTHING_MERGED: Merged = { adjust: {}, owners: { simple: {}, compound: {} } };

/** `plugin` is "NN-name". Refused with PluginConflict. */
export const withAdjustment = (
  { adjust, owners }: Merged,
  plugin: string,
  answer: ContainerAdjustment,
): Result<Merged> =>
  resultOf(() => {
    const claims = claimsOf(owners, plugin);
    return { adjust: mergeAdjustment(claims, adjust, answer), owners: claims.owners() };
  });

/** What one plugin claims while its answer is read. */
interface Claims {
  readonly plugin: string;
  /** @throws {FailureError} PluginConflict where it has an owner */
  readonly claim: (field: NriField, key?: string) => void;
  readonly clear: (field: NriField, key?: string) => void;
  /** One of several who add to it. */
  readonly share: (field: NriField) => void;
  readonly owners: () => FieldOwners;
}

function claimsOf({ simple, compound }: FieldOwners, plugin: string): Claims {
  const fields = new Map(Object.entries(simple));
  const keys = new Map(Object.entries(compound).map(([field, owners]) => [field, new Map(Object.entries(owners))]));
  const keysOf = (field: NriField): Map<string, string> => {
    const known = keys.get(field) ?? new Map<string, string>();
    keys.set(field, known);
    return known;
  };
  const place = (field: NriField, key: string | undefined): readonly [Map<string, string>, string] =>
    key === undefined ? [fields, field] : [keysOf(field), key];
  return {
    plugin,
    claim: (field, key) => {
      const [owners, name] = place(field, key);
      const owner = owners.get(name);
      if (owner !== undefined && !isMarked(owner)) {
        const what = key === undefined ? field : `${field} ${key}`;
        throw new FailureError(
          'PluginConflict',
          `NRI plugins "${owner}" and "${plugin}" both tried to set ${what}: let one of them leave it, or take away first what the other set.`,
        );
      }
      owners.set(name, plugin);
    },
    clear: (field, key) => {
      const [owners, name] = place(field, key);
      owners.set(name, `${MARK}${plugin}`);
    },
    share: (field) => {
      const before = fields.get(field);
      fields.set(field, before === undefined ? plugin : `${before},${plugin}`);
    },
    owners: () => ({
      simple: Object.fromEntries(fields),
      compound: Object.fromEntries([...keys].map(([field, owners]) => [field, Object.fromEntries(owners)])),
    }),
  };
}

/** Without the fields that are undefined. */
const present = <T extends object>(fields: { readonly [K in keyof T]: T[K] | undefined }): T =>
  Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as T;

function mergeAdjustment(
  claims: Claims,
  before: ContainerAdjustment,
  answer: ContainerAdjustment,
): ContainerAdjustment {
  return present<ContainerAdjustment>({
    annotations: mergeMap(claims, 'Annotations', before.annotations, answer.annotations, ''),
    mounts: mergeList(claims, 'Mounts', before.mounts, answer.mounts, ({ destination }) => destination),
    env: mergeList(claims, 'Env', before.env, answer.env, envKey),
    hooks: mergeHooks(claims, before.hooks, answer.hooks),
    linux: mergeLinux(claims, before.linux, answer.linux),
    rlimits: addTo(claims, 'Rlimits', before.rlimits, answer.rlimits, ({ type }) => type),
    cdiDevices: addTo(claims, 'CdiDevices', before.cdiDevices, answer.cdiDevices, (name) => name),
    args: mergeArgs(claims, before.args, answer.args),
  });
}

/** The name of an entry, with its mark. */
export const envKey = (env: OciEnv): string => (typeof env === 'string' ? (env.split('=', 1)[0] ?? '') : env.name);

/** Entries by their keys: what is taken away and not set again stays as its mark. */
function mergeEntries<T>(
  claims: Claims,
  field: NriField,
  before: readonly (readonly [key: string, item: T])[],
  answer: readonly (readonly [key: string, item: T])[],
): readonly T[] {
  const items = new Map(before.map(([key, item]) => [bareKey(key), item]));
  for (const [key, item] of answer) {
    if (!isMarked(key)) continue;
    claims.clear(field, bareKey(key));
    items.delete(bareKey(key));
    items.set(bareKey(key), item);
  }
  for (const [key, item] of answer) {
    if (isMarked(key)) continue;
    claims.claim(field, key);
    items.delete(key);
    items.set(key, item);
  }
  return [...items.values()];
}

function mergeList<T>(
  claims: Claims,
  field: NriField,
  before: readonly T[] = [],
  answer: readonly T[] | undefined,
  keyOf: (item: T) => string,
): readonly T[] | undefined {
  const keyed = (items: readonly T[]) => items.map((item) => [keyOf(item), item] as const);
  if (answer === undefined || answer.length === 0) return before.length === 0 ? undefined : before;
  return mergeEntries(claims, field, keyed(before), keyed(answer));
}

function mergeMap<T>(
  claims: Claims,
  field: NriField,
  before: Readonly<Record<string, T>> = {},
  answer: Readonly<Record<string, T>> = {},
  removed: T,
): Readonly<Record<string, T>> | undefined {
  const keyed = (map: Readonly<Record<string, T>>) =>
    Object.entries(map).map(([key, value]) => [key, [key, isMarked(key) ? removed : value] as const] as const);
  const entries = mergeEntries(claims, field, keyed(before), keyed(answer));
  return entries.length === 0 ? undefined : Object.fromEntries(entries);
}

/** Nobody takes these away. */
function addTo<T>(
  claims: Claims,
  field: NriField,
  before: readonly T[] = [],
  answer: readonly T[] = [],
  keyOf: (item: T) => string,
): readonly T[] | undefined {
  for (const item of answer) claims.claim(field, keyOf(item));
  return before.length + answer.length === 0 ? undefined : [...before, ...answer];
}

function addToMap(
  claims: Claims,
  field: NriField,
  before: Readonly<Record<string, string>> = {},
  answer: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> | undefined {
  for (const key of Object.keys(answer)) claims.claim(field, key);
  const all = { ...before, ...answer };
  return Object.keys(all).length === 0 ? undefined : all;
}

/** One value, whoever sets it first. */
function single<T>(claims: Claims, field: NriField, before: T | undefined, answer: T | undefined): T | undefined {
  if (answer === undefined) return before;
  claims.claim(field);
  return answer;
}

/** Stands first in what is to take another's place. */
const OVERRIDE = '';

function mergeArgs(
  claims: Claims,
  before: readonly OciArg[] | undefined,
  answer: readonly OciArg[] = [],
): readonly OciArg[] | undefined {
  if (answer.length === 0) return before;
  const overrides = answer[0] === OVERRIDE;
  if (overrides) claims.clear('Args');
  claims.claim('Args');
  return overrides ? answer.slice(1) : answer;
}

function mergeHooks(claims: Claims, before: OciHooks = {}, answer: OciHooks = {}): OciHooks | undefined {
  if (HOOK_NAMES.some((name) => (answer[name] ?? []).length > 0)) claims.share('OciHooks');
  const all = HOOK_NAMES.map((name) => [name, [...(before[name] ?? []), ...(answer[name] ?? [])]] as const);
  const some = all.filter(([, hooks]) => hooks.length > 0);
  return some.length === 0 ? undefined : Object.fromEntries(some);
}

function mergeLinux(
  claims: Claims,
  before: LinuxContainerAdjustment = {},
  answer: LinuxContainerAdjustment = {},
): LinuxContainerAdjustment | undefined {
  const merged = present<LinuxContainerAdjustment>({
    devices: mergeList(claims, 'Devices', before.devices, answer.devices, ({ path }) => path),
    resources: mergeResources(claims, before.resources, answer.resources),
    cgroupsPath: single(claims, 'CgroupsPath', before.cgroupsPath, answer.cgroupsPath),
    oomScoreAdj: single(claims, 'OomScoreAdj', before.oomScoreAdj, answer.oomScoreAdj),
    ioPriority: single(claims, 'IoPriority', before.ioPriority, answer.ioPriority),
    seccompPolicy: single(claims, 'SeccompPolicy', before.seccompPolicy, answer.seccompPolicy),
    namespaces: addTo(claims, 'Namespace', before.namespaces, answer.namespaces, ({ type }) => bareKey(type)),
    sysctl: mergeMap(claims, 'Sysctl', before.sysctl, answer.sysctl, ''),
    netDevices: mergeMap(claims, 'LinuxNetDevices', before.netDevices, answer.netDevices, { name: '' }),
    scheduler: single(claims, 'LinuxSched', before.scheduler, answer.scheduler),
    rdt: mergeRdt(claims, before.rdt, answer.rdt),
    memoryPolicy: single(claims, 'MemoryPolicy', before.memoryPolicy, answer.memoryPolicy),
  });
  return Object.keys(merged).length === 0 ? undefined : merged;
}

function mergeRdt(claims: Claims, before: NriRdt = {}, answer: NriRdt | undefined): NriRdt | undefined {
  if (answer === undefined) return Object.keys(before).length === 0 ? undefined : before;
  if (answer.remove === true) for (const field of RDT_FIELDS) claims.clear(field);
  const kept: NriRdt = answer.remove === true ? { remove: true } : before;
  return present<NriRdt>({
    ...kept,
    closId: single(claims, 'RdtClosID', kept.closId, answer.closId),
    schemata: single(claims, 'RdtSchemata', kept.schemata, answer.schemata),
    enableMonitoring: single(claims, 'RdtEnableMonitoring', kept.enableMonitoring, answer.enableMonitoring),
  });
}

const RDT_FIELDS = ['RdtClosID', 'RdtSchemata', 'RdtEnableMonitoring'] as const;

const MEMORY_FIELDS = {
  limit: 'MemLimit',
  reservation: 'MemReservation',
  swap: 'MemSwapLimit',
  kernel: 'MemKernelLimit',
  kernelTcp: 'MemTCPLimit',
  swappiness: 'MemSwappiness',
  disableOomKiller: 'MemDisableOomKiller',
  useHierarchy: 'MemUseHierarchy',
} as const satisfies Record<keyof NriMemory, NriField>;

const CPU_FIELDS = {
  shares: 'CPUShares',
  quota: 'CPUQuota',
  period: 'CPUPeriod',
  realtimeRuntime: 'CPURealtimeRuntime',
  realtimePeriod: 'CPURealtimePeriod',
  cpus: 'CPUSetCPUs',
  mems: 'CPUSetMems',
} as const satisfies Record<keyof NriCpu, NriField>;

function mergeValues<T extends object>(
  claims: Claims,
  fields: Readonly<Record<string, NriField>>,
  before: T | undefined,
  answer: T | undefined,
): T | undefined {
  for (const [name, value] of Object.entries(answer ?? {}))
    if (value !== undefined && fields[name] !== undefined) claims.claim(fields[name]);
  const all = { ...before, ...answer };
  return Object.keys(all).length === 0 ? undefined : (all as T);
}

function mergeResources(
  claims: Claims,
  before: NriResources = {},
  answer: NriResources = {},
): NriResources | undefined {
  const devices = [...(before.devices ?? []), ...(answer.devices ?? [])];
  const merged = present<NriResources>({
    memory: mergeValues(claims, MEMORY_FIELDS, before.memory, answer.memory),
    cpu: mergeValues(claims, CPU_FIELDS, before.cpu, answer.cpu),
    hugepageLimits: addTo(
      claims,
      'HugepageLimits',
      before.hugepageLimits,
      answer.hugepageLimits,
      ({ pageSize }) => pageSize,
    ),
    blockioClass: single(claims, 'BlockioClass', before.blockioClass, answer.blockioClass),
    rdtClass: single(claims, 'RdtClass', before.rdtClass, answer.rdtClass),
    unified: addToMap(claims, 'CgroupsUnified', before.unified, answer.unified),
    devices: devices.length === 0 ? undefined : devices,
    pids: single(claims, 'PidsLimit', before.pids, answer.pids),
  });
  return Object.keys(merged).length === 0 ? undefined : merged;
}
