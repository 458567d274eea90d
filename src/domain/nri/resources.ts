/**
 * Limits in NRI's words, in OCI's and in CRI's, into each other without loss. What a node can't hold is left out or
 * refused where limits become part of a spec (oci/resources.ts), not here.
 */
import type { Int64, LinuxContainerResources } from '../model/cri.ts';
import type { NriCpu, NriMemory, NriResources } from '../model/nri.ts';
import type { OciCpu, OciMemory, OciResources } from '../model/oci.ts';

/** JSON numbers are exact to 2^53: 8 PiB stands for whatever is above. */
const numberOf = (value: Int64): number => {
  const exact = BigInt(value);
  const most = BigInt(Number.MAX_SAFE_INTEGER);
  return Number(exact > most ? most : exact);
};

type Unset<T> = { readonly [K in keyof T]: T[K] | undefined };

/** The fields that are set; undefined when none is. */
function set<T extends object>(fields: Unset<T>): T | undefined {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined);
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as T);
}

const numbered = (value: Int64 | undefined): number | undefined => (value === undefined ? undefined : numberOf(value));
const texted = (value: number | undefined): Int64 | undefined => (value === undefined ? undefined : String(value));

const toOciMemory = (memory: NriMemory): OciMemory | undefined =>
  set<OciMemory>({
    limit: numbered(memory.limit),
    reservation: numbered(memory.reservation),
    swap: numbered(memory.swap),
    kernel: numbered(memory.kernel),
    kernelTCP: numbered(memory.kernelTcp),
    swappiness: numbered(memory.swappiness),
    disableOOMKiller: memory.disableOomKiller,
    useHierarchy: memory.useHierarchy,
  });

const toOciCpu = (cpu: NriCpu): OciCpu | undefined =>
  set<OciCpu>({
    shares: numbered(cpu.shares),
    quota: numbered(cpu.quota),
    period: numbered(cpu.period),
    realtimeRuntime: numbered(cpu.realtimeRuntime),
    realtimePeriod: numbered(cpu.realtimePeriod),
    cpus: cpu.cpus,
    mems: cpu.mems,
  });

/** All but classes, which name what a node has to know. */
export const toOciResources = (resources: NriResources): OciResources => {
  const { memory, cpu, hugepageLimits, unified, devices, pids } = resources;
  return (
    set<OciResources>({
      memory: memory && toOciMemory(memory),
      cpu: cpu && toOciCpu(cpu),
      hugepageLimits: hugepageLimits?.map(({ pageSize, limit }) => ({ pageSize, limit: numberOf(limit) })),
      unified,
      devices,
      pids: pids && { limit: numberOf(pids.limit) },
    }) ?? {}
  );
};

/** What a spec says, as plugins see it. */
export const fromOciResources = (resources: OciResources): NriResources => {
  const { memory = {}, cpu = {}, hugepageLimits, unified, devices, pids } = resources;
  return (
    set<NriResources>({
      memory: set<NriMemory>({
        limit: texted(memory.limit),
        reservation: texted(memory.reservation),
        swap: texted(memory.swap),
        kernel: texted(memory.kernel),
        kernelTcp: texted(memory.kernelTCP),
        swappiness: texted(memory.swappiness),
        disableOomKiller: memory.disableOOMKiller,
        useHierarchy: memory.useHierarchy,
      }),
      cpu: set<NriCpu>({
        shares: texted(cpu.shares),
        quota: texted(cpu.quota),
        period: texted(cpu.period),
        realtimeRuntime: texted(cpu.realtimeRuntime),
        realtimePeriod: texted(cpu.realtimePeriod),
        cpus: cpu.cpus,
        mems: cpu.mems,
      }),
      hugepageLimits: hugepageLimits?.map(({ pageSize, limit }) => ({ pageSize, limit: String(limit) })),
      unified,
      devices,
      pids: pids && { limit: String(pids.limit) },
    }) ?? {}
  );
};

const NOTHING_GIVEN = '0';

/** What CRI asks for, as plugins see it: these four are always said, 0 where CRI says nothing, as containerd does. */
export const fromCriResources = (resources: LinuxContainerResources): NriResources => ({
  memory: {
    limit: resources.memoryLimitInBytes || NOTHING_GIVEN,
    ...(resources.memorySwapLimitInBytes === undefined ? {} : { swap: resources.memorySwapLimitInBytes }),
  },
  cpu: {
    shares: resources.cpuShares || NOTHING_GIVEN,
    quota: resources.cpuQuota || NOTHING_GIVEN,
    period: resources.cpuPeriod || NOTHING_GIVEN,
    ...(resources.cpusetCpus === undefined ? {} : { cpus: resources.cpusetCpus }),
    ...(resources.cpusetMems === undefined ? {} : { mems: resources.cpusetMems }),
  },
  ...(resources.hugepageLimits === undefined
    ? {}
    : {
        hugepageLimits: resources.hugepageLimits.map(({ pageSize = '', limit = NOTHING_GIVEN }) => ({
          pageSize,
          limit,
        })),
      }),
  ...(resources.unified === undefined ? {} : { unified: resources.unified }),
});

/** What a plugin answers to UpdateContainer, in place of what CRI asked for. CRI has no words for the rest. */
export const toCriResources = ({ memory, cpu, hugepageLimits, unified }: NriResources): LinuxContainerResources =>
  set<LinuxContainerResources>({
    cpuPeriod: cpu?.period,
    cpuQuota: cpu?.quota,
    cpuShares: cpu?.shares,
    memoryLimitInBytes: memory?.limit,
    cpusetCpus: cpu?.cpus,
    cpusetMems: cpu?.mems,
    hugepageLimits,
    unified,
    memorySwapLimitInBytes: memory?.swap,
  }) ?? {};
