/**
 * Limits: CRI's LinuxContainerResources as the OCI runtime wants them, for cgroup v1 and v2, and the cgroup a task
 * lives in. A limit whose controller the node lacks is left out, as kubelet relies on (it sends hugepage limits and
 * shares unasked); a memory limit is refused, because a container nobody holds back takes its neighbours with it.
 */
import type { HugepageLimit, Int64, LinuxContainerResources } from '../model/cri.ts';
import type { NodeFacts } from '../model/node-facts.ts';
import type { CgroupDriver } from '../model/spec-settings.ts';
import { baseName, cleanPath } from './paths.ts';
import { refuse, refuseField, shown } from './refuse.ts';
import type { OciCpu, OciHugepageLimit, OciMemory, OciResources } from '../model/oci.ts';

export const RESOURCES_FIELD = 'linux.resources';

/** 0 and absent both mean "no limit given". JSON numbers are exact to 2^53: 8 PiB stands for whatever is above. */
function limitOf(value: Int64 | undefined): number | undefined {
  if (value === undefined || value === '' || value === '0') return undefined;
  const exact = BigInt(value);
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  return Number(exact > most ? most : exact);
}

/** What the kernel (v1) and the runtimes' conversion to cpu.weight (v2) can hold. */
const MIN_SHARES = 2;
const MAX_SHARES = 262144;

type Unset<T> = { readonly [K in keyof T]: T[K] | undefined };

/** The fields that are set; undefined when none is, so that the spec holds no empty objects. */
function set<T extends object>(fields: Unset<T>): T | undefined {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as T);
}

function cpu(resources: LinuxContainerResources, has: (controller: string) => boolean): OciCpu | undefined {
  const shares = limitOf(resources.cpuShares);
  return set<OciCpu>({
    ...(has('cpu')
      ? {
          shares: shares === undefined ? undefined : Math.min(Math.max(shares, MIN_SHARES), MAX_SHARES),
          quota: limitOf(resources.cpuQuota),
          period: limitOf(resources.cpuPeriod),
        }
      : {}),
    ...(has('cpuset') ? { cpus: resources.cpusetCpus || undefined, mems: resources.cpusetMems || undefined } : {}),
  });
}

function memory(resources: LinuxContainerResources, node: NodeFacts, field: string): OciMemory | undefined {
  const limit = limitOf(resources.memoryLimitInBytes);
  const swap = limitOf(resources.memorySwapLimitInBytes);
  if (limit === undefined && swap === undefined) return undefined;
  if (!('memory' in node.cgroup.controllers)) {
    refuse('HostLacks', `${field}.memory_limit_in_bytes can not be kept: this node has no memory controller`);
  }
  // Memory and swap together: equal to the limit means that the container does not swap.
  return set<OciMemory>({ limit, swap: node.cgroup.swapAccounting ? (swap ?? limit) : undefined });
}

const hugepages = (resources: LinuxContainerResources, node: NodeFacts): readonly OciHugepageLimit[] =>
  (resources.hugepageLimits ?? [])
    .filter(({ pageSize }) => pageSize !== undefined && node.hugepageSizes.includes(pageSize))
    .map(({ pageSize = '', limit }) => ({ pageSize, limit: limitOf(limit) ?? 0 }));

/**
 * @throws {FailureError} HostLacks for a memory limit without a memory controller, and for `unified` on cgroup v1.
 */
export function ociResources(
  resources: LinuxContainerResources | undefined,
  node: NodeFacts,
  field = RESOURCES_FIELD,
): OciResources {
  if (resources === undefined) return {};
  const has = (controller: string): boolean => controller in node.cgroup.controllers;
  const unified = resources.unified;
  if (unified !== undefined && Object.keys(unified).length > 0 && node.cgroup.version !== 2) {
    refuse('HostLacks', `${field}.unified needs cgroup v2, and this node runs v1: leave it empty`);
  }
  const limits = has('hugetlb') ? hugepages(resources, node) : [];
  return (
    set<OciResources>({
      memory: memory(resources, node, field),
      cpu: cpu(resources, has),
      hugepageLimits: limits.length === 0 ? undefined : limits,
      unified: unified !== undefined && Object.keys(unified).length > 0 ? unified : undefined,
    }) ?? {}
  );
}

/** Limits with others on top: fields that are not set keep their values, lists and maps theirs entry by entry. */
export function mergedResources(
  current: LinuxContainerResources,
  changes: LinuxContainerResources,
): LinuxContainerResources {
  const pages = new Map([...(current.hugepageLimits ?? []), ...(changes.hugepageLimits ?? [])].map(bySize));
  return {
    ...current,
    ...changes,
    ...(pages.size === 0 ? {} : { hugepageLimits: [...pages.values()] }),
    ...(changes.unified === undefined ? {} : { unified: { ...current.unified, ...changes.unified } }),
  };
}

const bySize = (limit: HugepageLimit): [string, HugepageLimit] => [limit.pageSize ?? '', limit];

/** @throws {FailureError} InvalidField for less memory and swap together than memory alone: the kernel takes no such limits. */
export function checkSwap(field: string, resources: LinuxContainerResources): void {
  const limit = limitOf(resources.memoryLimitInBytes);
  const swap = limitOf(resources.memorySwapLimitInBytes);
  if (limit === undefined || swap === undefined || swap < 0 || (limit >= 0 && swap >= limit)) return;
  refuseField(
    `${field}.memory_swap_limit_in_bytes`,
    `is ${swap} with a memory limit of ${limit}: it counts memory and swap together, so give at least as much`,
  );
}

const NO_LIMIT = -1;
/** The kernel's own, as a new cgroup has them. */
const DEFAULT_SHARES = 1024;
const DEFAULT_PERIOD = 100_000;

/** Limits that undo others: where there was none before, the kernel's default is named, or the other would stay. */
export function undoingResources(previous: OciResources, undone: OciResources): OciResources {
  const missing = <T extends object>(defaults: T, now: object | undefined): Partial<T> =>
    Object.fromEntries(Object.entries(defaults).filter(([name]) => now !== undefined && name in now)) as Partial<T>;
  const cpu = {
    ...missing({ shares: DEFAULT_SHARES, quota: NO_LIMIT, period: DEFAULT_PERIOD }, undone.cpu),
    ...previous.cpu,
  };
  const memoryLimits = { ...missing({ limit: NO_LIMIT, swap: NO_LIMIT }, undone.memory), ...previous.memory };
  const pids = undone.pids === undefined ? {} : { pids: { limit: NO_LIMIT } };
  return { ...pids, ...previous, cpu, memory: memoryLimits };
}

/** The pause task does nothing: it gets the least share there is. */
export const sandboxResources = (node: NodeFacts): OciResources =>
  'cpu' in node.cgroup.controllers ? { cpu: { shares: MIN_SHARES } } : {};

const UNIT_PREFIX = 'cri-scribe';
const DEFAULT_PARENT = { cgroupfs: '/scribe', systemd: 'system.slice' } as const satisfies Record<CgroupDriver, string>;

/**
 * linux.cgroupsPath of a task: a path below the hierarchies' roots with cgroupfs, slice:prefix:name with systemd.
 * @throws {FailureError} InvalidField for a parent that is no slice, with systemd.
 */
export function cgroupsPath(driver: CgroupDriver, cgroupParent: string | undefined, id: string): string {
  const parent = cgroupParent || DEFAULT_PARENT[driver];
  if (driver === 'cgroupfs') return cleanPath(`/${parent}/${id}`);
  const slice = baseName(parent);
  if (!slice.endsWith('.slice')) {
    refuseField(
      'linux.cgroup_parent',
      `is ${shown(parent)}, which is no systemd slice: name one (x.slice), or set the cgroup driver to cgroupfs`,
    );
  }
  return `${slice}:${UNIT_PREFIX}:${id}`;
}

/**
 * The cgroup that a client has made for a pod and all that is in it, in the form of a task's; null when it named none, and
 * where the name is no cgroup's (an older daemon took what is refused today).
 */
export function podCgroupPath(driver: CgroupDriver, cgroupParent: string | undefined): string | null {
  if (cgroupParent === undefined || cgroupParent === '') return null;
  if (driver === 'cgroupfs') return cleanPath(`/${cgroupParent}`);
  const slice = baseName(cgroupParent);
  if (!slice.endsWith('.slice')) return null;
  const above = slice.slice(0, Math.max(0, slice.lastIndexOf('-')));
  return `${above === '' ? '-' : above}.slice::${slice}`;
}

/**
 * oom_score_adj as it can be set: lowering it below the daemon's own takes CAP_SYS_RESOURCE, and an administrator may
 * forbid it altogether.
 */
export function oomScoreAdj(wanted: number, node: NodeFacts, restrict: boolean): number {
  return restrict || !node.canRaiseLimits ? Math.max(wanted, node.ownOomScoreAdj) : wanted;
}
