/**
 * Limits of containers that plugins want changed: those of one whose limits CRI changes, and those of others, in answers to
 * the hooks of a container and unasked. Put together under the same rules of ownership as what is created, container by
 * container. Pure: what is to be put in force, where, and what of it stays when CRI changes limits later.
 */
import { FailureError } from '../model/errors.ts';
import type { Int64, LinuxContainerResources } from '../model/cri.ts';
import type { ContainerAdjustment, FieldOwners, NriCpu, NriMemory, NriResources } from '../model/nri.ts';
import type { NriUpdate } from '../model/nri-views.ts';
import { type Result, succeeded } from '../model/result.ts';
import { resultOf } from '../oci/refuse.ts';
import { mergedResources } from '../oci/resources.ts';
import { beyondCri, beyondOver, some } from './beyond-cri.ts';
import { claimsOf, NOBODY, present } from './claims.ts';
import { mergeResources } from './merge-resources.ts';
import { resourcesOver } from './parts.ts';
import { fromCriResources, toCriResources } from './resources.ts';

/** Of one plugin, in its answer. */
export interface PluginUpdates {
  /** "NN-name". */
  readonly plugin: string;
  readonly updates?: readonly NriUpdate[];
}

export interface MergedUpdates {
  /** One for each container, in the order in which they were first named. */
  readonly updates: readonly NriUpdate[];
  /** By container. */
  readonly owners: Readonly<Record<string, FieldOwners>>;
}

const NO_UPDATES: MergedUpdates = { updates: [], owners: {} };

/**
 * In the order in which the plugins were asked. `created`: a container that is being created, whose limits are part of its
 * adjustment. Refused with PluginConflict, unless the update that comes too late is one that may fail, and with
 * PluginInvalid for an update of `created`.
 */
export function mergedUpdates(answers: readonly PluginUpdates[], created?: string): Result<MergedUpdates> {
  let merged = NO_UPDATES;
  for (const { plugin, updates = [] } of answers)
    for (const update of updates) {
      const next = resultOf(() => withUpdate(merged, plugin, update, created));
      if (next.ok) merged = next.value;
      else if (update.ignoreFailure !== true || next.failure.reason !== 'PluginConflict') return next;
    }
  return succeeded(merged);
}

function withUpdate(
  { updates, owners }: MergedUpdates,
  plugin: string,
  { containerId, resources, ignoreFailure }: NriUpdate,
  created: string | undefined,
): MergedUpdates {
  if (containerId === created)
    throw new FailureError(
      'PluginInvalid',
      `NRI plugin "${plugin}" wants an update of container ${containerId}, which is being created: put its limits into the adjustment.`,
    );
  const known = updates.find((update) => update.containerId === containerId);
  const claims = claimsOf((Object.hasOwn(owners, containerId) ? owners[containerId] : undefined) ?? NOBODY, plugin);
  const merged = mergeResources(claims, known?.resources, resources);
  const mayFail = ignoreFailure === true && (known === undefined || known.ignoreFailure === true);
  const update: NriUpdate = {
    containerId,
    ...(merged === undefined ? {} : { resources: merged }),
    ...(mayFail ? { ignoreFailure: true } : {}),
  };
  return {
    updates: known === undefined ? [...updates, update] : updates.map((one) => (one === known ? update : one)),
    owners: { ...owners, [containerId]: claims.owners() },
  };
}

/** What CRI asks for. */
export interface RequestedUpdate {
  readonly containerId: string;
  readonly resources: LinuxContainerResources;
}

export interface UpdatedResources {
  /** What the next plugin is told that was asked for. */
  readonly told: NriResources;
  /** What is to be put in force, in CRI's words. */
  readonly resources: LinuxContainerResources;
  /** What plugins want beyond what CRI has words for; absent: nothing. */
  readonly beyond?: NriResources;
  /** The change is not to fail for what a plugin wants of it and can't have. */
  readonly mayFail?: true;
  /** Of other containers. */
  readonly others: readonly NriUpdate[];
}

/** What plugins answered to UpdateContainer takes the place of what CRI asked for. Refused with PluginConflict. */
export function updatedResources(
  { containerId, resources }: RequestedUpdate,
  answers: readonly PluginUpdates[],
): Result<UpdatedResources> {
  const merged = mergedUpdates(answers);
  if (!merged.ok) return merged;
  const others = merged.value.updates.filter((update) => update.containerId !== containerId);
  const update = merged.value.updates.find((one) => one.containerId === containerId);
  const own = update?.resources;
  if (own === undefined) return succeeded({ told: fromCriResources(resources), resources, others });
  const told = resourcesOver(fromCriResources(limitsBefore(resources, toCriResources(own))), own);
  const beyond = beyondCri(own);
  return succeeded({
    told,
    // NRI has no word for oom_score_adj here, so that plugins leave it as it was asked for.
    resources: limitsUnder(resources, own),
    ...(beyond === undefined ? {} : { beyond }),
    ...(update?.ignoreFailure === true ? { mayFail: true } : {}),
    others,
  });
}

/** CRI's limits with those of plugins over them, so far as CRI has words for them. */
export function limitsUnder(limits: LinuxContainerResources, plugins: NriResources): LinuxContainerResources {
  const changes = toCri(plugins);
  return mergedResources(limitsBefore(limits, changes), changes);
}

/** What a change begins with: without a word on swap, a limit of memory is one of swap too. */
export function limitsBefore(
  limits: LinuxContainerResources,
  { memoryLimitInBytes, memorySwapLimitInBytes }: LinuxContainerResources,
): LinuxContainerResources {
  if (!isGiven(memoryLimitInBytes) || memorySwapLimitInBytes !== undefined) return limits;
  const { memorySwapLimitInBytes: _swap, ...rest } = limits;
  return rest;
}

/** Limits that a plugin wants for a container, as a request that CRI could have made; `beyond` as above. */
export function updateInCri(resources: NriResources): Pick<UpdatedResources, 'resources' | 'beyond'> {
  const beyond = beyondCri(resources);
  return { resources: toCri(resources), ...(beyond === undefined ? {} : { beyond }) };
}

const UNSET = '0';

const isGiven = (value: Int64 | undefined): value is Int64 => value !== undefined && value !== '' && value !== UNSET;

/** Without numbers that are 0: they say nothing in CRI, and are not to take the place of what there is. */
function toCri(resources: NriResources): LinuxContainerResources {
  const { cpuPeriod, cpuQuota, cpuShares, memoryLimitInBytes, memorySwapLimitInBytes, ...rest } =
    toCriResources(resources);
  const numbers = { cpuPeriod, cpuQuota, cpuShares, memoryLimitInBytes, memorySwapLimitInBytes };
  return { ...rest, ...Object.fromEntries(Object.entries(numbers).filter(([, value]) => isGiven(value))) };
}

/**
 * What stays of what plugins set in a container when its limits are changed: all but what the change names. `beyond`, what
 * plugins said to this change, lies over it.
 */
export function adjustmentAfterUpdate(
  adjust: ContainerAdjustment,
  changes: LinuxContainerResources,
  beyond: NriResources = {},
): ContainerAdjustment {
  const { linux = {}, ...rest } = adjust;
  const { resources, oomScoreAdj, ...others } = linux;
  const kept = some(beyondOver(unnamed(resources ?? {}, changes), beyond));
  const left = some({
    ...others,
    ...(kept === undefined ? {} : { resources: kept }),
    ...(oomScoreAdj === undefined || isGiven(changes.oomScoreAdj) ? {} : { oomScoreAdj }),
  });
  return { ...rest, ...(left === undefined ? {} : { linux: left }) };
}

/** A limit of memory is one of swap too: without a word on swap, there is to be no more of it than before. */
function unnamed(resources: NriResources, changes: LinuxContainerResources): NriResources {
  const { memory = {}, cpu = {}, hugepageLimits = [], unified = {}, ...rest } = resources;
  const namesMemory = isGiven(changes.memoryLimitInBytes);
  const unless = <T>(named: boolean, value: T | undefined): T | undefined => (named ? undefined : value);
  const pages = hugepageLimits.filter(
    ({ pageSize }) => !(changes.hugepageLimits ?? []).some((change) => change.pageSize === pageSize),
  );
  const files = Object.entries(unified).filter(([file]) => !Object.hasOwn(changes.unified ?? {}, file));
  return {
    ...rest,
    ...present<Omit<NriResources, keyof typeof rest>>({
      memory: some(
        present<NriMemory>({
          ...memory,
          limit: unless(namesMemory, memory.limit),
          swap: unless(namesMemory || isGiven(changes.memorySwapLimitInBytes), memory.swap),
        }),
      ),
      cpu: some(
        present<NriCpu>({
          ...cpu,
          shares: unless(isGiven(changes.cpuShares), cpu.shares),
          quota: unless(isGiven(changes.cpuQuota), cpu.quota),
          period: unless(isGiven(changes.cpuPeriod), cpu.period),
          cpus: unless(Boolean(changes.cpusetCpus), cpu.cpus),
          mems: unless(Boolean(changes.cpusetMems), cpu.mems),
        }),
      ),
      hugepageLimits: pages.length === 0 ? undefined : pages,
      unified: files.length === 0 ? undefined : Object.fromEntries(files),
    }),
  };
}
