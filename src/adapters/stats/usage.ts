/**
 * What the text of cgroup files means in CRI's words, for version 1 and 2. Pure: text in, messages out.
 * A file that is missing (controller not mounted, accounting off) leaves out what it would have said.
 */
import type { CpuUsage, IoUsage, MemoryUsage, ProcessUsage, SwapUsage, UInt64Value } from '../../wire/cri/api.ts';
import { numberOf, parseNumber, parsePressure } from './parse.ts';
import type { CgroupFigures, CgroupUsage } from './types.ts';

/** File name, as in the tables below, to its text. */
export type FileTexts = { readonly [name: string]: string | undefined };

const NS_PER_US = 1000n;
/** Version 1 has no word for "no limit": the greatest number of whole pages stands for it. */
const LIMIT_MAX = 2n ** 62n;

const uint64 = (value: bigint | undefined): UInt64Value | undefined =>
  value === undefined ? undefined : { value: String(value) };

const atLeastZero = (value: bigint): bigint => (value < 0n ? 0n : value);

/** What is left below a limit; undefined without one. */
const available = (limit: bigint | undefined, used: bigint): bigint | undefined =>
  limit === undefined || limit >= LIMIT_MAX ? undefined : atLeastZero(limit - used);

/** CPU time used so far, in nanoseconds. */
export const cpuTimeNs = (version: 1 | 2, texts: FileTexts): bigint | undefined => {
  if (version === 1) return parseNumber(texts['cpuacct.usage'] ?? '');
  const usageUs = numberOf(texts['cpu.stat'] ?? '', 'usage_usec');
  return usageUs === undefined ? undefined : usageUs * NS_PER_US;
};

interface MemoryNumbers {
  readonly usage: bigint | undefined;
  readonly inactiveFile: bigint | undefined;
  readonly limit: bigint | undefined;
  readonly rss: bigint | undefined;
  readonly pageFaults: bigint | undefined;
  readonly majorPageFaults: bigint | undefined;
  readonly swapUsage: bigint | undefined;
  readonly swapLimit: bigint | undefined;
}

const memoryOfV1 = (texts: FileTexts): MemoryNumbers => {
  const stat = texts['memory.stat'] ?? '';
  const limit = numberOf(stat, 'hierarchical_memory_limit');
  const memoryAndSwapLimit = numberOf(stat, 'hierarchical_memsw_limit');
  const hasSwapLimit = limit !== undefined && memoryAndSwapLimit !== undefined && memoryAndSwapLimit < LIMIT_MAX;
  return {
    usage: parseNumber(texts['memory.usage_in_bytes'] ?? ''),
    inactiveFile: numberOf(stat, 'total_inactive_file'),
    limit,
    rss: numberOf(stat, 'total_rss'),
    pageFaults: numberOf(stat, 'total_pgfault'),
    majorPageFaults: numberOf(stat, 'total_pgmajfault'),
    swapUsage: numberOf(stat, 'total_swap'),
    swapLimit: hasSwapLimit ? atLeastZero(memoryAndSwapLimit - limit) : undefined,
  };
};

const memoryOfV2 = (texts: FileTexts): MemoryNumbers => {
  const stat = texts['memory.stat'] ?? '';
  return {
    usage: parseNumber(texts['memory.current'] ?? ''),
    inactiveFile: numberOf(stat, 'inactive_file'),
    limit: parseNumber(texts['memory.max'] ?? ''),
    rss: numberOf(stat, 'anon'),
    pageFaults: numberOf(stat, 'pgfault'),
    majorPageFaults: numberOf(stat, 'pgmajfault'),
    swapUsage: parseNumber(texts['memory.swap.current'] ?? ''),
    swapLimit: parseNumber(texts['memory.swap.max'] ?? ''),
  };
};

const memoryUsage = (timestamp: string, numbers: MemoryNumbers, texts: FileTexts): MemoryUsage | undefined => {
  const { usage, inactiveFile, limit, rss, pageFaults, majorPageFaults } = numbers;
  if (usage === undefined) return undefined;
  // What could be had back at once is no part of the working set; the two are read one after the other.
  const workingSet = atLeastZero(usage - (inactiveFile ?? 0n));
  return {
    timestamp,
    workingSetBytes: uint64(workingSet),
    availableBytes: uint64(available(limit, workingSet)),
    usageBytes: uint64(usage),
    rssBytes: uint64(rss),
    pageFaults: uint64(pageFaults),
    majorPageFaults: uint64(majorPageFaults),
    psi: parsePressure(texts['memory.pressure']),
  };
};

const swapUsage = (timestamp: string, { swapUsage: usage, swapLimit }: MemoryNumbers): SwapUsage | undefined =>
  usage === undefined
    ? undefined
    : { timestamp, swapAvailableBytes: uint64(available(swapLimit, usage)), swapUsageBytes: uint64(usage) };

const cpuUsage = (
  timestamp: string,
  cpuNs: bigint | undefined,
  nanoCores: bigint | undefined,
  texts: FileTexts,
): CpuUsage | undefined =>
  cpuNs === undefined
    ? undefined
    : {
        timestamp,
        usageCoreNanoSeconds: uint64(cpuNs),
        usageNanoCores: uint64(nanoCores),
        psi: parsePressure(texts['cpu.pressure']),
      };

const ioUsage = (timestamp: string, texts: FileTexts): IoUsage | undefined => {
  const psi = parsePressure(texts['io.pressure']);
  return psi === undefined ? undefined : { timestamp, psi };
};

const processUsage = (timestamp: string, texts: FileTexts): ProcessUsage | undefined => {
  const processCount = uint64(parseNumber(texts['pids.current'] ?? ''));
  return processCount === undefined ? undefined : { timestamp, processCount };
};

/** `timestamp`: when the files were read, in ns since 1970. `nanoCores`: CPU ns used per second of late, if known. */
export const cgroupUsage = (
  version: 1 | 2,
  texts: FileTexts,
  timestamp: string,
  nanoCores: bigint | undefined,
): CgroupUsage => {
  const memory = version === 1 ? memoryOfV1(texts) : memoryOfV2(texts);
  return {
    cpu: cpuUsage(timestamp, cpuTimeNs(version, texts), nanoCores, texts),
    memory: memoryUsage(timestamp, memory, texts),
    swap: swapUsage(timestamp, memory),
    io: ioUsage(timestamp, texts),
    process: processUsage(timestamp, texts),
  };
};

/** As cgroupUsage, of figures that somebody else has told. */
export const usageOfFigures = (
  figures: CgroupFigures,
  timestamp: string,
  nanoCores: bigint | undefined,
): CgroupUsage => {
  const numbers: MemoryNumbers = {
    usage: figures.memoryUsage,
    inactiveFile: figures.memoryInactiveFile,
    limit: figures.memoryLimit,
    rss: figures.memoryRss,
    pageFaults: figures.pageFaults,
    majorPageFaults: figures.majorPageFaults,
    swapUsage: figures.memorySwap,
    swapLimit: figures.memorySwapLimit,
  };
  return {
    cpu: cpuUsage(timestamp, figures.cpuNs, nanoCores, {}),
    memory: memoryUsage(timestamp, numbers, {}),
    swap: swapUsage(timestamp, numbers),
    io: undefined,
    process: undefined,
  };
};

const sumOf = (values: readonly (UInt64Value | undefined)[]): UInt64Value | undefined => {
  const known = values.filter((value) => value !== undefined);
  return known.length === 0 ? undefined : uint64(known.reduce((sum, { value }) => sum + BigInt(value), 0n));
};

/** undefined as soon as one is not known: less than the truth would be worse than nothing. */
const wholeSumOf = (values: readonly (UInt64Value | undefined)[]): UInt64Value | undefined =>
  values.includes(undefined) ? undefined : sumOf(values);

/** What several use together, where no cgroup of theirs alone holds them all: pressure and limits are nobody's then. */
export const usageOfAll = (
  timestamp: string,
  usages: readonly CgroupUsage[],
  processes: bigint | undefined,
): CgroupUsage => {
  const sum = <T extends object>(part: (usage: CgroupUsage) => T | undefined) => {
    const parts = usages.map(part).filter((one) => one !== undefined);
    return (field: (one: T) => UInt64Value | undefined): UInt64Value | undefined => sumOf(parts.map(field));
  };
  const cpu = sum((usage) => usage.cpu);
  const memory = sum((usage) => usage.memory);
  const swap = sum((usage) => usage.swap);
  return {
    cpu: {
      timestamp,
      usageCoreNanoSeconds: cpu((one) => one.usageCoreNanoSeconds),
      usageNanoCores: wholeSumOf(usages.map((usage) => usage.cpu?.usageNanoCores)),
      psi: undefined,
    },
    memory: {
      timestamp,
      workingSetBytes: memory((one) => one.workingSetBytes),
      availableBytes: undefined,
      usageBytes: memory((one) => one.usageBytes),
      rssBytes: memory((one) => one.rssBytes),
      pageFaults: memory((one) => one.pageFaults),
      majorPageFaults: memory((one) => one.majorPageFaults),
      psi: undefined,
    },
    swap: { timestamp, swapAvailableBytes: undefined, swapUsageBytes: swap((one) => one.swapUsageBytes) },
    io: undefined,
    process: processes === undefined ? undefined : { timestamp, processCount: uint64(processes) },
  };
};
