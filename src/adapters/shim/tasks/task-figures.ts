/**
 * What a task uses, as its shim says (Stats), for shims whose tasks are not in the control groups of their specs: a sandbox, or a
 * machine, holds all of a pod. Their answers are containerd's metrics of control groups, in either version, whatever the node has.
 */
import { messageOf } from '../../../domain/model/errors.ts';
import type { Any } from '../../../wire/google/protobuf/any.ts';
import { Metrics as MetricsV1 } from '../../../wire/types/cgroups/v1/metrics.ts';
import { Metrics as MetricsV2 } from '../../../wire/types/cgroups/v2/metrics.ts';
import type { CgroupFigures, TaskFiguresOf } from '../../stats/types.ts';
import type { ShimContext } from '../context.ts';

const NS_PER_US = 1000n;
/** What stands for "no limit": the greatest number, or that of whole pages. */
const LIMIT_MAX = 2n ** 62n;

const counted = (value: string | undefined): bigint | undefined => (value === undefined ? undefined : BigInt(value));

/** A shim that does not count something leaves it out, which is 0 on the wire. */
const unlessZero = (value: string | undefined): bigint | undefined =>
  value === undefined || value === '0' ? undefined : BigInt(value);

const limited = (value: string | undefined): bigint | undefined => {
  const limit = unlessZero(value);
  return limit === undefined || limit >= LIMIT_MAX ? undefined : limit;
};

const ofUs = (us: bigint | undefined): bigint | undefined => (us === undefined ? undefined : us * NS_PER_US);

/** Without what could be had back at once. */
const workingSet = (usage: bigint | undefined, inactiveFile: bigint | undefined): bigint | undefined => {
  if (usage === undefined) return undefined;
  const left = usage - (inactiveFile ?? 0n);
  return left < 0n ? 0n : left;
};

const ofV1 = ({ pids, cpu, memory }: MetricsV1): CgroupFigures => {
  const usage = counted(memory?.usage?.usage);
  const inactiveFile = unlessZero(memory?.totalInactiveFile);
  return {
    cpuNs: counted(cpu?.usage?.total),
    cpuUserNs: unlessZero(cpu?.usage?.user),
    cpuSystemNs: unlessZero(cpu?.usage?.kernel),
    cfsPeriods: unlessZero(cpu?.throttling?.periods),
    cfsThrottledPeriods: unlessZero(cpu?.throttling?.throttledPeriods),
    cfsThrottledNs: unlessZero(cpu?.throttling?.throttledTime),
    memoryUsage: usage,
    memoryWorkingSet: workingSet(usage, inactiveFile),
    memoryMaxUsage: unlessZero(memory?.usage?.max),
    memoryFailures: unlessZero(memory?.usage?.failcnt),
    memoryLimit: limited(memory?.usage?.limit),
    memoryRss: unlessZero(memory?.totalRss),
    memoryCache: unlessZero(memory?.totalCache),
    memoryMappedFile: unlessZero(memory?.totalMappedFile),
    memoryActiveFile: unlessZero(memory?.totalActiveFile),
    memoryInactiveFile: inactiveFile,
    pageFaults: unlessZero(memory?.totalPgFault),
    majorPageFaults: unlessZero(memory?.totalPgMajFault),
    threads: unlessZero(pids?.current),
    threadsMax: limited(pids?.limit),
    deviceBytes: [],
    deviceTimes: [],
  };
};

const ofV2 = ({ pids, cpu, memory }: MetricsV2): CgroupFigures => {
  const usage = counted(memory?.usage);
  const inactiveFile = unlessZero(memory?.inactiveFile);
  return {
    cpuNs: ofUs(counted(cpu?.usageUsec)),
    cpuUserNs: ofUs(unlessZero(cpu?.userUsec)),
    cpuSystemNs: ofUs(unlessZero(cpu?.systemUsec)),
    cfsPeriods: unlessZero(cpu?.nrPeriods),
    cfsThrottledPeriods: unlessZero(cpu?.nrThrottled),
    cfsThrottledNs: ofUs(unlessZero(cpu?.throttledUsec)),
    memoryUsage: usage,
    memoryWorkingSet: workingSet(usage, inactiveFile),
    memoryMaxUsage: unlessZero(memory?.maxUsage),
    memoryLimit: limited(memory?.usageLimit),
    memoryRss: unlessZero(memory?.anon),
    memoryCache: unlessZero(memory?.file),
    memoryMappedFile: unlessZero(memory?.fileMapped),
    memoryActiveFile: unlessZero(memory?.activeFile),
    memoryInactiveFile: inactiveFile,
    memorySwap: unlessZero(memory?.swapUsage),
    memorySwapLimit: limited(memory?.swapLimit),
    pageFaults: unlessZero(memory?.pgfault),
    majorPageFaults: unlessZero(memory?.pgmajfault),
    threads: unlessZero(pids?.current),
    threadsMax: limited(pids?.limit),
    deviceBytes: [],
    deviceTimes: [],
  };
};

/** null for metrics of another kind. Throws when they are none at all. */
export const figuresIn = ({ typeUrl, value }: Any): CgroupFigures | null => {
  switch (typeUrl.slice(typeUrl.lastIndexOf('/') + 1)) {
    case 'io.containerd.cgroups.v1.Metrics':
      return ofV1(MetricsV1.decode(value));
    case 'io.containerd.cgroups.v2.Metrics':
      return ofV2(MetricsV2.decode(value));
    default:
      return null;
  }
};

export const createTaskFigures =
  ({ shims, timings, log }: Pick<ShimContext, 'shims' | 'timings' | 'log'>): TaskFiguresOf =>
  async (podSandboxId, containerId) => {
    try {
      const client = await shims.clientOf(podSandboxId);
      const { stats } = await client.stats({ id: containerId }, timings.detailsMs);
      return stats === undefined ? null : figuresIn(stats);
    } catch (error) {
      log.debug({ containerId, error: messageOf(error) }, 'a shim does not tell what a task uses');
      return null;
    }
  };
