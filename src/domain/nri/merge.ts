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
import type { ContainerAdjustment, FieldOwners, LinuxContainerAdjustment, NriField, NriRdt } from '../model/nri.ts';
import { HOOK_NAMES } from '../model/cdi.ts';
import type { OciArg, OciEnv, OciHooks } from '../model/oci.ts';
import type { Result } from '../model/result.ts';
import { resultOf } from '../oci/refuse.ts';
import { addTo, type Claims, claimsOf, NOBODY, present, single } from './claims.ts';
import { bareKey, isMarked } from './marks.ts';
import { mergeResources } from './merge-resources.ts';

export interface Merged {
  readonly adjust: ContainerAdjustment;
  readonly owners: FieldOwners;
}

export const NOTHING_MERGED: Merged = { adjust: {}, owners: NOBODY };

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
