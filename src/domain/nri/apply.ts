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
import type {
  ContainerAdjustment,
  LinuxContainerAdjustment,
  NriNamespace,
  NriRdt,
  NriRlimit,
  NriScheduler,
} from '../model/nri.ts';
import type {
  OciDevice,
  OciDeviceCgroup,
  OciHooks,
  OciIntelRdt,
  OciIOPriority,
  OciLinux,
  OciMemory,
  OciMount,
  OciNamespace,
  OciNamespaceType,
  OciProcess,
  OciResources,
  OciRlimit,
  OciRootfsPropagation,
  OciScheduler,
  OciSpec,
} from '../model/oci.ts';
import { applyCdiEdits, withHooks } from '../oci/cdi/apply.ts';
import { blockIO } from '../oci/classes/apply.ts';
import { CLASS_WITHOUT_RESCTRL } from '../oci/classes/names.ts';
import { refuse, resultOf, shown } from '../oci/refuse.ts';
import { type Result, succeeded } from '../model/result.ts';
import { bareKey, isMarked } from './marks.ts';
import { envKey } from './merge.ts';
import { adjustedDevices, adjustedList, adjustedMap, adjustedMounts, adjustedNamespaces } from './parts.ts';
import { toOciResources } from './resources.ts';

/** What names in an adjustment stand for on this node. */
export interface AdjustmentFacts {
  readonly node: NodeFacts;
  /** Of the CDI devices that were added. */
  readonly cdi?: readonly CdiEditsFact[];
  /** Of the block I/O class; null: no classes are configured. */
  readonly blockIO?: readonly BlockIOFact[] | null;
  /** A limit of processes of which there is one already stands beside it, and not in its place. */
  readonly doublesRlimits?: boolean;
  /** As in SpecSettings. */
  readonly mountedDevices?: boolean;
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
      ...(env === undefined ? {} : { env: adjustedList(spec.process.env, env, envKey) }),
      ...(args === undefined || args.length === 0 ? {} : { args }),
    },
    ...(hooks === undefined ? {} : { hooks: withHooks(spec.hooks, readHooks(hooks)) }),
  };
  const withCdi = facts.cdi === undefined ? edited : applyCdiEdits(edited, facts.cdi, facts);
  const { ioPriority, scheduler, ...process } = withCdi.process;
  return {
    ...withCdi,
    process: {
      ...process,
      ...(linux.oomScoreAdj === undefined ? {} : { oomScoreAdj: linux.oomScoreAdj }),
      ...scheduling({ ioPriority, scheduler }, linux),
      ...(rlimits === undefined ? {} : { rlimits: limitsOfProcesses(process.rlimits, rlimits, facts) }),
    },
    mounts: mounts === undefined ? withCdi.mounts : adjustedMounts(withCdi.mounts, mounts),
    linux: adjustedLinux(withCdi.linux, linux, mounts ?? [], facts),
  };
}

/** OCI runtimes are to refuse two of one type. */
function limitsOfProcesses(
  base: readonly OciRlimit[] = [],
  changes: readonly NriRlimit[],
  { doublesRlimits = false }: AdjustmentFacts,
): readonly OciRlimit[] {
  const made = changes.map(({ type, hard, soft }) => ({ type, hard: limitOf(hard), soft: limitOf(soft) }));
  return doublesRlimits ? [...base, ...made] : adjustedList(base, made, ({ type }) => type);
}

const limitOf = (value: string): number => {
  const exact = BigInt(value);
  return exact > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(exact);
};

/** Only what has hooks: a list that is empty says nothing. */
const readHooks = (hooks: OciHooks): OciHooks =>
  Object.fromEntries(Object.entries(hooks).filter(([, list]) => (list as readonly unknown[]).length > 0));

const [NO_PRIORITY, NO_SCHEDULER] = ['IOPRIO_CLASS_NONE', 'SCHED_NONE'];

/** The protocol's names for "none" take away what there was. */
function scheduling(
  base: { readonly ioPriority: OciIOPriority | undefined; readonly scheduler: OciScheduler | undefined },
  { ioPriority, scheduler }: LinuxContainerAdjustment,
): Pick<OciProcess, 'ioPriority' | 'scheduler'> {
  const priority = ioPriority ?? base.ioPriority;
  const policy = scheduler === undefined ? base.scheduler : schedulerOf(scheduler);
  return {
    ...(priority === undefined || priority.class === NO_PRIORITY ? {} : { ioPriority: priority }),
    ...(policy === undefined || policy.policy === NO_SCHEDULER ? {} : { scheduler: policy }),
  };
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
  const made = devices === undefined ? linux.devices : adjustedDevices(linux.devices, devices);
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
    ...(namespaces === undefined ? {} : { namespaces: checkedNamespaces(linux.namespaces, namespaces) }),
    ...(sysctl === undefined ? {} : { sysctl: adjustedMap(linux.sysctl, sysctl) }),
    ...(netDevices === undefined ? {} : { netDevices: adjustedMap(linux.netDevices, netDevices) }),
    ...(memoryPolicy === undefined ? {} : { memoryPolicy }),
    ...(intelRdt === undefined ? {} : { intelRdt }),
  };
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

function checkedNamespaces(base: readonly OciNamespace[], changes: readonly NriNamespace[]): readonly OciNamespace[] {
  for (const { type } of changes) namespaceType(bareKey(type));
  return adjustedNamespaces(base, changes).map(({ type, path }) => ({
    type: namespaceType(type),
    ...(path === undefined || path === '' ? {} : { path }),
  }));
}

function adjustedResources(
  base: OciResources,
  { resources = {}, devices }: LinuxContainerAdjustment,
  { node, blockIO: classes }: AdjustmentFacts,
): OciResources {
  const { blockioClass } = resources;
  const { hugepageLimits = [], memory, ...changes } = toOciResources(resources);
  // A limit whose controller is missing is left out, as one of CRI's is.
  const pages = 'hugetlb' in node.cgroup.controllers ? hugepageLimits : [];
  const rules = [...rulesOf(devices), ...(changes.devices ?? [])];
  const { blockIO: baseBlockIO, ...others } = base;
  const limits =
    blockioClass === undefined
      ? baseBlockIO
      : blockioClass === ''
        ? undefined
        : blockIO(classOrRefuse(blockioClass, classes));
  return {
    ...others,
    ...changes,
    ...(memory === undefined ? {} : { memory: adjustedMemory(base.memory, memory) }),
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
    ...(limits === undefined ? {} : { blockIO: limits }),
  };
}

/** A limit of 0 says nothing. */
function adjustedMemory(base: OciMemory | undefined, { limit, ...changes }: OciMemory): OciMemory {
  if (limit === undefined || limit === 0) return { ...base, ...changes };
  // Without a word on swap the container has no more of it than before: none, where it is counted.
  const swap = base?.swap === undefined ? {} : { swap: limit };
  return { ...base, limit, ...swap, ...changes };
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
  const asked = [rdtClass || undefined, rdt?.closId, rdt?.schemata, rdt?.enableMonitoring].some(
    (value) => value !== undefined,
  );
  if (asked && !node.resctrl) refuse('HostLacks', `an NRI plugin asks for ${CLASS_WITHOUT_RESCTRL}`);
  // The class without a name takes away the one that there was.
  const kept = rdt?.remove === true || rdtClass === '' ? {} : (base ?? {});
  const made = { ...kept, ...(rdtClass ? { closID: rdtClass } : {}), ...rdtOf(rdt) };
  return Object.keys(made).length === 0 ? undefined : made;
}

const rdtOf = ({ closId, schemata, enableMonitoring }: NriRdt = {}): OciIntelRdt => ({
  ...(closId === undefined ? {} : { closID: closId }),
  ...(schemata === undefined ? {} : { schemata }),
  ...(enableMonitoring === undefined ? {} : { enableMonitoring }),
});

/** What a mount needs of the root: shared mounts come through a shared root only. */
function propagationOf(
  base: OciRootfsPropagation | undefined,
  mounts: readonly OciMount[],
): OciRootfsPropagation | undefined {
  const options = mounts.flatMap((mount) => mount.options);
  if (options.includes('rshared')) return 'rshared';
  return options.includes('rslave') && base !== 'rshared' ? 'rslave' : base;
}
