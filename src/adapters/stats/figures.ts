/**
 * What cgroup files say beyond what stats messages hold: the figures that metrics are made of, for version 1 and 2. Read
 * when somebody asks for metrics, and not kept open. Pure but for reading; what is not there is left out.
 */
import { join } from 'node:path';
import type { CgroupFacts } from '../../domain/model/node-facts.ts';
import { cgroupDirectory } from '../../platform/linux/cgroup-path.ts';
import type { WithBuffer } from './buffer-pool.ts';
import { numberOf, parseNumber, parsePressure } from './parse.ts';
import { readStart } from './read-start.ts';
import { processFigures } from './processes.ts';
import { deviceName } from './device-name.ts';
import type { CgroupFigures, DeviceCount, DeviceOperation, FiguresWanted, StatsTarget } from './types.ts';

type Cgroup = Pick<CgroupFacts, 'version' | 'controllers'>;

const NS_PER_US = 1000n;
/** Version 1 counts CPU time of user and kernel in ticks of a hundredth of a second. */
const NS_PER_TICK = 10_000_000n;
/** Version 1 has no word for "no limit". */
const LIMIT_MAX = 2n ** 62n;

const FILES_V1 = [
  ['cpuacct', 'cpuacct.usage'],
  ['cpuacct', 'cpuacct.stat'],
  ['cpu', 'cpu.stat'],
  ['cpu', 'cpu.shares'],
  ['cpu', 'cpu.cfs_quota_us'],
  ['cpu', 'cpu.cfs_period_us'],
  ['memory', 'memory.usage_in_bytes'],
  ['memory', 'memory.max_usage_in_bytes'],
  ['memory', 'memory.failcnt'],
  ['memory', 'memory.soft_limit_in_bytes'],
  ['memory', 'memory.stat'],
  ['memory', 'memory.kmem.usage_in_bytes'],
  ['memory', 'memory.oom_control'],
  ['pids', 'cgroup.procs'],
  ['pids', 'pids.current'],
  ['pids', 'pids.max'],
  ['blkio', 'blkio.throttle.io_service_bytes_recursive'],
  ['blkio', 'blkio.throttle.io_serviced_recursive'],
] as const;

const FILES_V2 = [
  'cpu.stat',
  'cpu.max',
  'cpu.weight',
  'cpu.pressure',
  'memory.current',
  'memory.peak',
  'memory.max',
  'memory.low',
  'memory.events',
  'memory.stat',
  'memory.swap.current',
  'memory.swap.max',
  'memory.pressure',
  'io.stat',
  'io.pressure',
  'cgroup.procs',
  'pids.current',
  'pids.max',
] as const;

const UNIFIED_ROOT = '/sys/fs/cgroup';

type Texts = Readonly<Record<string, string>>;

const times = (value: bigint | undefined, factor: bigint): bigint | undefined =>
  value === undefined ? undefined : value * factor;
const minus = (value: bigint | undefined, other: bigint | undefined): bigint | undefined => {
  if (value === undefined) return undefined;
  const left = value - (other ?? 0n);
  return left < 0n ? 0n : left;
};
const limited = (limit: bigint | undefined): bigint | undefined =>
  limit === undefined || limit >= LIMIT_MAX ? undefined : limit;

/** Of the files' own words, those that have a meaning beyond one kernel version. */
type Words = Readonly<Record<string, DeviceOperation>>;

const WORDS_V1: Words = { Read: 'Read', Write: 'Write', Discard: 'Discard' };
const BYTES_V2: Words = { rbytes: 'Read', wbytes: 'Write', dbytes: 'Discard' };
const TIMES_V2: Words = { rios: 'Read', wios: 'Write', dios: 'Discard' };

type Counted = Omit<DeviceCount, 'device'>;

/** From "8:0 Read 4096" or "8:0 rbytes=4096 wbytes=0 …", a device each line. */
const devicesIn = (text: string | undefined, words: Words): readonly Counted[] =>
  [...(text ?? '').matchAll(/^(\d+):(\d+) (.+)$/gm)].flatMap(([, major = '', minor = '', counts = '']) =>
    [...counts.matchAll(/(\w+)[ =](\d+)/g)].flatMap(([, word = '', count = '0']) => {
      const operation = words[word];
      return operation === undefined ? [] : [{ major, minor, operation, count: BigInt(count) }];
    }),
  );

const named = async (counted: readonly Counted[]): Promise<readonly DeviceCount[]> => {
  const names = new Map<string, string>();
  for (const device of counted) {
    const numbers = `${device.major}:${device.minor}`;
    if (!names.has(numbers)) names.set(numbers, await deviceName(device));
  }
  return counted.map((one) => ({ ...one, device: names.get(`${one.major}:${one.minor}`) ?? '' }));
};

/** Of very many, as many as are read of a file. */
const linesIn = (text: string | undefined): bigint | undefined =>
  text === undefined ? undefined : BigInt(text.split('\n').length - 1);

/** Before its devices have names. */
type Unnamed = Omit<CgroupFigures, 'deviceBytes' | 'deviceTimes'> & {
  readonly deviceBytes: readonly Counted[];
  readonly deviceTimes: readonly Counted[];
};

const figuresOfV1 = (texts: Texts): Unnamed => {
  const memory = texts['memory.stat'] ?? '';
  const cpu = texts['cpu.stat'] ?? '';
  const usage = parseNumber(texts['memory.usage_in_bytes'] ?? '');
  const limit = limited(numberOf(memory, 'hierarchical_memory_limit'));
  const memoryAndSwap = limited(numberOf(memory, 'hierarchical_memsw_limit'));
  return {
    cpuNs: parseNumber(texts['cpuacct.usage'] ?? ''),
    cpuUserNs: times(numberOf(texts['cpuacct.stat'] ?? '', 'user'), NS_PER_TICK),
    cpuSystemNs: times(numberOf(texts['cpuacct.stat'] ?? '', 'system'), NS_PER_TICK),
    cfsPeriods: numberOf(cpu, 'nr_periods'),
    cfsThrottledPeriods: numberOf(cpu, 'nr_throttled'),
    cfsThrottledNs: numberOf(cpu, 'throttled_time'),
    cpuShares: parseNumber(texts['cpu.shares'] ?? ''),
    cpuQuotaUs: parseNumber(texts['cpu.cfs_quota_us'] ?? ''),
    cpuPeriodUs: parseNumber(texts['cpu.cfs_period_us'] ?? ''),
    memoryUsage: usage,
    memoryWorkingSet: minus(usage, numberOf(memory, 'total_inactive_file')),
    memoryMaxUsage: parseNumber(texts['memory.max_usage_in_bytes'] ?? ''),
    memoryFailures: parseNumber(texts['memory.failcnt'] ?? ''),
    memoryLimit: limit,
    memoryRss: numberOf(memory, 'total_rss'),
    memoryCache: numberOf(memory, 'total_cache'),
    memoryMappedFile: numberOf(memory, 'total_mapped_file'),
    memoryActiveFile: numberOf(memory, 'total_active_file'),
    memoryInactiveFile: numberOf(memory, 'total_inactive_file'),
    memoryReservation: limited(parseNumber(texts['memory.soft_limit_in_bytes'] ?? '')),
    memoryKernel: parseNumber(texts['memory.kmem.usage_in_bytes'] ?? ''),
    memorySwap: numberOf(memory, 'total_swap'),
    memorySwapLimit: memoryAndSwap === undefined ? undefined : minus(memoryAndSwap, limit),
    pageFaults: numberOf(memory, 'total_pgfault'),
    majorPageFaults: numberOf(memory, 'total_pgmajfault'),
    oomKills: numberOf(texts['memory.oom_control'] ?? '', 'oom_kill'),
    processes: linesIn(texts['cgroup.procs']),
    threads: parseNumber(texts['pids.current'] ?? ''),
    threadsMax: parseNumber(texts['pids.max'] ?? ''),
    deviceBytes: devicesIn(texts['blkio.throttle.io_service_bytes_recursive'], WORDS_V1),
    deviceTimes: devicesIn(texts['blkio.throttle.io_serviced_recursive'], WORDS_V1),
  };
};

const pressureNs = (text: string | undefined, kind: 'Some' | 'Full'): bigint | undefined => {
  const total = parsePressure(text)?.[kind]?.Total;
  return total === undefined ? undefined : BigInt(total);
};

const figuresOfV2 = (texts: Texts): Unnamed => {
  const memory = texts['memory.stat'] ?? '';
  const cpu = texts['cpu.stat'] ?? '';
  const usage = parseNumber(texts['memory.current'] ?? '');
  const [quota = '', period = ''] = (texts['cpu.max'] ?? '').trim().split(' ');
  return {
    cpuNs: times(numberOf(cpu, 'usage_usec'), NS_PER_US),
    cpuUserNs: times(numberOf(cpu, 'user_usec'), NS_PER_US),
    cpuSystemNs: times(numberOf(cpu, 'system_usec'), NS_PER_US),
    cfsPeriods: numberOf(cpu, 'nr_periods'),
    cfsThrottledPeriods: numberOf(cpu, 'nr_throttled'),
    cfsThrottledNs: times(numberOf(cpu, 'throttled_usec'), NS_PER_US),
    cpuShares: sharesOfWeight(parseNumber(texts['cpu.weight'] ?? '')),
    cpuQuotaUs: parseNumber(quota),
    cpuPeriodUs: parseNumber(period),
    memoryUsage: usage,
    memoryWorkingSet: minus(usage, numberOf(memory, 'inactive_file')),
    memoryMaxUsage: parseNumber(texts['memory.peak'] ?? ''),
    memoryFailures: numberOf(texts['memory.events'] ?? '', 'max'),
    memoryLimit: parseNumber(texts['memory.max'] ?? ''),
    memoryRss: numberOf(memory, 'anon'),
    memoryCache: numberOf(memory, 'file'),
    memoryMappedFile: numberOf(memory, 'file_mapped'),
    memoryActiveFile: numberOf(memory, 'active_file'),
    memoryInactiveFile: numberOf(memory, 'inactive_file'),
    memoryReservation: parseNumber(texts['memory.low'] ?? ''),
    memoryKernel: numberOf(memory, 'kernel'),
    memorySwap: parseNumber(texts['memory.swap.current'] ?? ''),
    memorySwapLimit: parseNumber(texts['memory.swap.max'] ?? ''),
    pageFaults: numberOf(memory, 'pgfault'),
    majorPageFaults: numberOf(memory, 'pgmajfault'),
    oomKills: numberOf(texts['memory.events'] ?? '', 'oom_kill'),
    processes: linesIn(texts['cgroup.procs']),
    threads: parseNumber(texts['pids.current'] ?? ''),
    threadsMax: parseNumber(texts['pids.max'] ?? ''),
    deviceBytes: devicesIn(texts['io.stat'], BYTES_V2),
    deviceTimes: devicesIn(texts['io.stat'], TIMES_V2),
    cpuWaitingNs: pressureNs(texts['cpu.pressure'], 'Some'),
    cpuStalledNs: pressureNs(texts['cpu.pressure'], 'Full'),
    memoryWaitingNs: pressureNs(texts['memory.pressure'], 'Some'),
    memoryStalledNs: pressureNs(texts['memory.pressure'], 'Full'),
    ioWaitingNs: pressureNs(texts['io.pressure'], 'Some'),
    ioStalledNs: pressureNs(texts['io.pressure'], 'Full'),
  };
};

/** The shares that OCI runtimes turn into this weight: 2 to 262144 onto 1 to 10000, in a straight line. */
const sharesOfWeight = (weight: bigint | undefined): bigint | undefined =>
  weight === undefined ? undefined : 2n + ((weight - 1n) * 262_142n) / 9_999n;

const pathsIn = ({ version, controllers }: Cgroup, directory: string): readonly (readonly [string, string])[] => {
  if (version === 2) {
    const root = Object.values(controllers)[0] ?? UNIFIED_ROOT;
    return FILES_V2.map((name) => [name, join(root, directory, name)]);
  }
  return FILES_V1.flatMap(([controller, name]) => {
    const root = controllers[controller];
    return root === undefined ? [] : [[name, join(root, directory, name)] as const];
  });
};

/** null when its cgroups are gone, or can't be known from its path. */
export const readFigures = async (
  cgroup: Cgroup,
  { cgroupPath }: StatsTarget,
  wanted: FiguresWanted,
  withBuffer: WithBuffer,
): Promise<CgroupFigures | null> => {
  const directory = cgroupDirectory(cgroupPath);
  if (directory === null) return null;
  return withBuffer(async (buffer) => {
    const texts: Record<string, string> = {};
    for (const [name, path] of pathsIn(cgroup, directory)) {
      const text = await readStart(path, buffer);
      if (text !== undefined) texts[name] = text;
    }
    if (Object.keys(texts).length === 0) return null;
    const unnamed = cgroup.version === 1 ? figuresOfV1(texts) : figuresOfV2(texts);
    const [deviceBytes, deviceTimes] = [await named(unnamed.deviceBytes), await named(unnamed.deviceTimes)];
    const figures = { ...unnamed, deviceBytes, deviceTimes };
    return wanted === 'cgroup' ? figures : { ...figures, ...(await processFigures(texts['cgroup.procs'], buffer)) };
  });
};
