/**
 * Puts what plugins changed into the OCI spec of the container that is being created. Pure, so that a journal decides the
 * same spec again without any plugin (C13). What a name stands for on this node (CDI devices, classes) comes in as
 * facts. An empty adjustment gives back the very spec.
 *
 * In the order in which the reference adaptation does it: annotations, env, arguments, hooks, CDI devices, devices, cgroups
 * path, OOM score, I/O priority, scheduler, seccomp, namespaces, sysctls, network devices, memory policy, limits, classes,
 * RDT, mounts, rlimits.
 */
import type { CdiEditsFact } from '../model/cdi.ts';
import type { BlockIOFact } from '../model/classes.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import type { ContainerAdjustment, LinuxContainerAdjustment, NriRdt, NriScheduler } from '../model/nri.ts';
import type {
  OciDevice,
  OciDeviceCgroup,
  OciEnv,
  OciHooks,
  OciIntelRdt,
  OciLinux,
  OciMount,
  OciNamespace,
  OciNamespaceType,
  OciResources,
  OciRootfsPropagation,
  OciScheduler,
  OciSpec,
} from '../model/oci.ts';
import { applyCdiEdits, withHooks } from '../oci/cdi/apply.ts';
import { blockIO } from '../oci/classes/apply.ts';
import { cleanPath, pathDepth } from '../oci/paths.ts';
import { refuse, resultOf, shown } from '../oci/refuse.ts';
import { type Result, succeeded } from '../model/result.ts';
import { bareKey, isMarked } from './marks.ts';
import { envKey } from './merge.ts';
import { toOciResources } from './resources.ts';

/** What names in an adjustment stand for on this node. */
export interface AdjustmentFacts {
  readonly node: NodeFacts;
  /** Of the CDI devices that were added. */
  readonly cdi?: readonly CdiEditsFact[];
  /** Of the block I/O class; null: no classes are configured. */
  readonly blockIO?: readonly BlockIOFact[] | null;
}

/** Fails with HostLacks or InvalidField, in words that name what of the adjustment can't be. */
export function withAdjustmentApplied(
  spec: OciSpec,
  adjust: ContainerAdjustment,
  facts: AdjustmentFacts,
): Result<OciSpec> {
  if (Object.keys(adjust).length === 0) return succeeded(spec);
  return resultOf(() => applied(spec, adjust, facts));
}

function applied(spec: OciSpec, adjust: ContainerAdjustment, facts: AdjustmentFacts): OciSpec {
  const { annotations, env, args, hooks, linux = {}, mounts, rlimits } = adjust;
  const edited: OciSpec = {
    ...spec,
    ...(annotations === undefined ? {} : { annotations: adjustedMap(spec.annotations, annotations) }),
    process: {
      ...spec.process,
      ...(env === undefined ? {} : { env: adjustedEnv(spec.process.env, env) }),
      ...(args === undefined || args.length === 0 ? {} : { args }),
    },
    ...(hooks === undefined ? {} : { hooks: withHooks(spec.hooks, readHooks(hooks)) }),
  };
  const withCdi = facts.cdi === undefined ? edited : applyCdiEdits(edited, facts.cdi);
  return {
    ...withCdi,
    process: {
      ...withCdi.process,
      ...(linux.oomScoreAdj === undefined ? {} : { oomScoreAdj: linux.oomScoreAdj }),
      ...(linux.ioPriority === undefined ? {} : { ioPriority: linux.ioPriority }),
      ...(linux.scheduler === undefined ? {} : { scheduler: schedulerOf(linux.scheduler) }),
      ...(rlimits === undefined
        ? {}
        : {
            rlimits: [
              ...(withCdi.process.rlimits ?? []),
              ...rlimits.map(({ type, hard, soft }) => ({ type, hard: limitOf(hard), soft: limitOf(soft) })),
            ],
          }),
    },
    mounts: mounts === undefined ? withCdi.mounts : adjustedMounts(withCdi.mounts, mounts),
    linux: adjustedLinux(withCdi.linux, linux, mounts ?? [], facts),
  };
}

const limitOf = (value: string): number => {
  const exact = BigInt(value);
  return exact > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(exact);
};

/** Only what has hooks: a list that is empty says nothing. */
const readHooks = (hooks: OciHooks): OciHooks =>
  Object.fromEntries(Object.entries(hooks).filter(([, list]) => (list as readonly unknown[]).length > 0));

function adjustedMap<T>(
  base: Readonly<Record<string, T>> | undefined,
  changes: Readonly<Record<string, T>>,
): Readonly<Record<string, T>> {
  const all = new Map(Object.entries(base ?? {}));
  for (const key of Object.keys(changes)) if (isMarked(key)) all.delete(bareKey(key));
  for (const [key, value] of Object.entries(changes)) if (!isMarked(key)) all.set(key, value);
  return Object.fromEntries(all);
}

/** What is there is replaced in its place; what is new comes last. */
function adjustedEnv(base: readonly OciEnv[], changes: readonly OciEnv[]): readonly OciEnv[] {
  const all = new Map(base.map((env) => [envKey(env), env]));
  for (const env of changes) if (isMarked(envKey(env))) all.delete(bareKey(envKey(env)));
  for (const env of changes) if (!isMarked(envKey(env))) all.set(envKey(env), env);
  return [...all.values()];
}

function schedulerOf({ runtimeNs, deadlineNs, periodNs, ...rest }: NriScheduler): OciScheduler {
  return {
    ...rest,
    ...(runtimeNs === undefined ? {} : { runtime: limitOf(runtimeNs) }),
    ...(deadlineNs === undefined ? {} : { deadline: limitOf(deadlineNs) }),
    ...(periodNs === undefined ? {} : { period: limitOf(periodNs) }),
  };
}

function adjustedLinux(
  linux: OciLinux,
  adjust: LinuxContainerAdjustment,
  mounts: readonly OciMount[],
  facts: AdjustmentFacts,
): OciLinux {
  const { devices, cgroupsPath, seccompPolicy, namespaces, sysctl, netDevices, memoryPolicy } = adjust;
  const made = devices === undefined ? linux.devices : adjustedDevices(linux.devices ?? [], devices);
  const intelRdt = adjustedRdt(linux.intelRdt, adjust, facts.node);
  const rootfsPropagation = propagationOf(linux.rootfsPropagation, mounts);
  const { intelRdt: _rdt, devices: _devices, ...rest } = linux;
  return {
    ...rest,
    ...(made === undefined || made.length === 0 ? {} : { devices: made }),
    ...(rootfsPropagation === undefined ? {} : { rootfsPropagation }),
    resources: adjustedResources(linux.resources, adjust, facts),
    ...(cgroupsPath === undefined ? {} : { cgroupsPath }),
    ...(seccompPolicy === undefined ? {} : { seccomp: seccompPolicy }),
    ...(namespaces === undefined ? {} : { namespaces: adjustedNamespaces(linux.namespaces, namespaces) }),
    ...(sysctl === undefined ? {} : { sysctl: adjustedMap(linux.sysctl, sysctl) }),
    ...(netDevices === undefined ? {} : { netDevices: adjustedMap(linux.netDevices, netDevices) }),
    ...(memoryPolicy === undefined ? {} : { memoryPolicy }),
    ...(intelRdt === undefined ? {} : { intelRdt }),
  };
}

function adjustedDevices(base: readonly OciDevice[], changes: readonly OciDevice[]): readonly OciDevice[] {
  const all = new Map(base.map((device) => [cleanPath(device.path), device]));
  for (const { path } of changes) if (isMarked(path)) all.delete(cleanPath(bareKey(path)));
  for (const device of changes) if (!isMarked(device.path)) all.set(cleanPath(device.path), device);
  return [...all.values()];
}

const ALL_ACCESS = 'rwm';

/** The container may use what it is given. */
const rulesOf = (devices: readonly OciDevice[] = []): readonly OciDeviceCgroup[] =>
  devices.flatMap(({ path, type, major, minor }) =>
    isMarked(path) || type === 'p' ? [] : [{ allow: true, type, major, minor, access: ALL_ACCESS }],
  );

const NAMESPACE_TYPES = ['pid', 'network', 'ipc', 'uts', 'mount', 'cgroup', 'user'] as const;

function namespaceType(type: string): OciNamespaceType {
  const known = NAMESPACE_TYPES.find((one) => one === type);
  return known ?? refuse('InvalidField', `an NRI plugin names the namespace ${shown(type)}, which is none`);
}

function adjustedNamespaces(
  base: readonly OciNamespace[],
  changes: readonly { readonly type: string; readonly path?: string }[],
): readonly OciNamespace[] {
  const all = new Map(base.map((namespace) => [namespace.type, namespace]));
  for (const { type, path } of changes) {
    const known = namespaceType(bareKey(type));
    if (isMarked(type)) all.delete(known);
    else all.set(known, { type: known, ...(path === undefined || path === '' ? {} : { path }) });
  }
  return [...all.values()];
}

function adjustedResources(
  base: OciResources,
  { resources = {}, devices }: LinuxContainerAdjustment,
  { node, blockIO: classes }: AdjustmentFacts,
): OciResources {
  const { hugepageLimits = [], ...changes } = toOciResources(resources);
  // A limit whose controller is missing is left out, as one of CRI's is.
  const pages = 'hugetlb' in node.cgroup.controllers ? hugepageLimits : [];
  const rules = [...rulesOf(devices), ...(changes.devices ?? [])];
  const limit = changes.memory?.limit;
  // Without a word on swap the container has no more of it than before: none, where it is counted.
  const swap =
    limit === undefined || limit === 0 || changes.memory?.swap !== undefined || base.memory?.swap === undefined
      ? {}
      : { swap: limit };
  const { blockioClass } = resources;
  return {
    ...base,
    ...changes,
    ...(changes.memory === undefined ? {} : { memory: { ...base.memory, ...changes.memory, ...swap } }),
    ...(changes.cpu === undefined ? {} : { cpu: { ...base.cpu, ...changes.cpu } }),
    ...(changes.unified === undefined ? {} : { unified: { ...base.unified, ...changes.unified } }),
    ...(pages.length === 0
      ? {}
      : {
          hugepageLimits: [
            ...(base.hugepageLimits ?? []).filter(({ pageSize }) => !pages.some((page) => page.pageSize === pageSize)),
            ...pages,
          ],
        }),
    ...(rules.length === 0 ? {} : { devices: [...(base.devices ?? []), ...rules] }),
    ...(blockioClass === undefined ? {} : { blockIO: blockIO(classOrRefuse(blockioClass, classes)) }),
  };
}

const classOrRefuse = (name: string, facts: AdjustmentFacts['blockIO']): readonly BlockIOFact[] =>
  facts ??
  refuse(
    'HostLacks',
    `an NRI plugin asks for the class ${shown(name)} of block I/O, but no classes are configured: name a file of classes in runtime.blockio_config_file`,
  );

function adjustedRdt(
  base: OciIntelRdt | undefined,
  { rdt, resources }: LinuxContainerAdjustment,
  node: NodeFacts,
): OciIntelRdt | undefined {
  const rdtClass = resources?.rdtClass;
  if (rdt === undefined && rdtClass === undefined) return base;
  const asked = [rdtClass, rdt?.closId, rdt?.schemata, rdt?.enableMonitoring].some((value) => value !== undefined);
  if (asked && !node.resctrl)
    refuse(
      'HostLacks',
      'an NRI plugin asks for a class of Intel RDT, but this node has no resctrl: mount it at /sys/fs/resctrl',
    );
  const kept = rdt?.remove === true ? {} : (base ?? {});
  const made = { ...kept, ...(rdtClass === undefined ? {} : { closID: rdtClass }), ...rdtOf(rdt) };
  return Object.keys(made).length === 0 ? undefined : made;
}

const rdtOf = ({ closId, schemata, enableMonitoring }: NriRdt = {}): OciIntelRdt => ({
  ...(closId === undefined ? {} : { closID: closId }),
  ...(schemata === undefined ? {} : { schemata }),
  ...(enableMonitoring === undefined ? {} : { enableMonitoring }),
});

/** None hides another: all are made again in the order of their depth, then of their names. */
function adjustedMounts(base: readonly OciMount[], changes: readonly OciMount[]): readonly OciMount[] {
  const all = new Map(base.map((mount) => [cleanPath(mount.destination), mount]));
  for (const { destination } of changes) if (isMarked(destination)) all.delete(cleanPath(bareKey(destination)));
  for (const mount of changes) if (!isMarked(mount.destination)) all.set(cleanPath(mount.destination), mount);
  const depth = ({ destination }: OciMount): number => pathDepth(destination);
  return [...all.values()].toSorted((a, b) => depth(a) - depth(b) || (a.destination < b.destination ? -1 : 1));
}

/** What a mount needs of the root: shared mounts come through a shared root only. */
function propagationOf(
  base: OciRootfsPropagation | undefined,
  mounts: readonly OciMount[],
): OciRootfsPropagation | undefined {
  const options = mounts.flatMap((mount) => mount.options);
  if (options.includes('rshared')) return 'rshared';
  return options.includes('rslave') && base !== 'rshared' ? 'rslave' : base;
}
