/** Limits that the kernel holds for a cgroup, read in the words of the CRI whichever version of cgroups this machine has. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';

const ROOT = '/sys/fs/cgroup';

/** Whether version 2 is all there is. */
export const isUnified = existsSync(join(ROOT, 'cgroup.controllers'));

/** Where each is: in version 1 by its controller; in version 2 by its place among the words of the file. */
const FILES = {
  cpuShares: { v1: ['cpu', 'cpu.shares'], v2: ['cpu.weight', 0] },
  cpuQuota: { v1: ['cpu', 'cpu.cfs_quota_us'], v2: ['cpu.max', 0] },
  cpuPeriod: { v1: ['cpu', 'cpu.cfs_period_us'], v2: ['cpu.max', 1] },
  cpusetCpus: { v1: ['cpuset', 'cpuset.cpus'], v2: ['cpuset.cpus', 0] },
  cpusetMems: { v1: ['cpuset', 'cpuset.mems'], v2: ['cpuset.mems', 0] },
  memoryLimitInBytes: { v1: ['memory', 'memory.limit_in_bytes'], v2: ['memory.max', 0] },
  memoryReservation: { v1: ['memory', 'memory.soft_limit_in_bytes'], v2: ['memory.low', 0] },
  memorySwapLimitInBytes: { v1: ['memory', 'memory.memsw.limit_in_bytes'], v2: ['memory.swap.max', 0] },
  pids: { v1: ['pids', 'pids.max'], v2: ['pids.max', 0] },
} as const;

export type CgroupLimit = keyof typeof FILES;

/** Of a cgroup, in version 1 in the hierarchy of a controller. */
export const cgroupDirectory = (cgroup: string, controller: string): string =>
  join(ROOT, isUnified ? '' : controller, cgroup);

const inVersion1 = async (cgroup: string, limit: CgroupLimit): Promise<string> => {
  const [controller, file] = FILES[limit].v1;
  const text = (await readFile(join(cgroupDirectory(cgroup, controller), file), 'utf8')).trim();
  // What stands for none is more than any machine has.
  return limit.startsWith('memory') && BigInt(text) > 2n ** 60n ? '-1' : text;
};

/** Shares of 2 to 262144 are weights of 1 to 10000, and several of them the same. */
const weightOf = (shares: number): number => 1 + Math.floor(((shares - 2) * 9999) / 262_142);

const inVersion2 = async (cgroup: string, limit: CgroupLimit): Promise<string> => {
  const [file, place] = FILES[limit].v2;
  const word = (await readFile(join(cgroupDirectory(cgroup, ''), file), 'utf8')).trim().split(' ')[place] ?? '';
  if (word === 'max') return limit === 'pids' ? word : '-1';
  // Version 2 counts what is swapped by itself.
  return limit === 'memorySwapLimitInBytes'
    ? String(BigInt(word) + BigInt(await inVersion2(cgroup, 'memoryLimitInBytes')))
    : word;
};

/**
 * One limit of a cgroup, as the CRI has it; "-1": none.
 * @param cgroup  below the root of a hierarchy, as an OCI spec names it
 * @param expected  shares that are given back where the cgroup has the weight that stands for them
 */
export const limitInForce = async (cgroup: string, limit: CgroupLimit, expected = ''): Promise<string> => {
  if (!isUnified) return inVersion1(cgroup, limit);
  const found = await inVersion2(cgroup, limit);
  if (limit !== 'cpuShares') return found;
  return String(weightOf(Number(expected))) === found ? expected : `the weight ${found}`;
};
