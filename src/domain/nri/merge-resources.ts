/** Limits that plugins set, put together under the rules of ownership: in a container that is created, and in others. */
import type { NriCpu, NriField, NriMemory, NriResources } from '../model/nri.ts';
import { addTo, type Claims, present, single } from './claims.ts';

function addToMap(
  claims: Claims,
  field: NriField,
  before: Readonly<Record<string, string>> = {},
  answer: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> | undefined {
  for (const key of Object.keys(answer)) claims.claim(field, key);
  const all = { ...before, ...answer };
  return Object.keys(all).length === 0 ? undefined : all;
}

const MEMORY_FIELDS = {
  limit: 'MemLimit',
  reservation: 'MemReservation',
  swap: 'MemSwapLimit',
  kernel: 'MemKernelLimit',
  kernelTcp: 'MemTCPLimit',
  swappiness: 'MemSwappiness',
  disableOomKiller: 'MemDisableOomKiller',
  useHierarchy: 'MemUseHierarchy',
} as const satisfies Record<keyof NriMemory, NriField>;

const CPU_FIELDS = {
  shares: 'CPUShares',
  quota: 'CPUQuota',
  period: 'CPUPeriod',
  realtimeRuntime: 'CPURealtimeRuntime',
  realtimePeriod: 'CPURealtimePeriod',
  cpus: 'CPUSetCPUs',
  mems: 'CPUSetMems',
} as const satisfies Record<keyof NriCpu, NriField>;

function mergeValues<T extends object>(
  claims: Claims,
  fields: Readonly<Record<string, NriField>>,
  before: T | undefined,
  answer: T | undefined,
): T | undefined {
  for (const [name, value] of Object.entries(answer ?? {}))
    if (value !== undefined && fields[name] !== undefined) claims.claim(fields[name]);
  const all = { ...before, ...answer };
  return Object.keys(all).length === 0 ? undefined : (all as T);
}

/** Absent: nothing is set. */
export function mergeResources(
  claims: Claims,
  before: NriResources = {},
  answer: NriResources = {},
): NriResources | undefined {
  const devices = [...(before.devices ?? []), ...(answer.devices ?? [])];
  const merged = present<NriResources>({
    memory: mergeValues(claims, MEMORY_FIELDS, before.memory, answer.memory),
    cpu: mergeValues(claims, CPU_FIELDS, before.cpu, answer.cpu),
    hugepageLimits: addTo(
      claims,
      'HugepageLimits',
      before.hugepageLimits,
      answer.hugepageLimits,
      ({ pageSize }) => pageSize,
    ),
    blockioClass: single(claims, 'BlockioClass', before.blockioClass, answer.blockioClass),
    rdtClass: single(claims, 'RdtClass', before.rdtClass, answer.rdtClass),
    unified: addToMap(claims, 'CgroupsUnified', before.unified, answer.unified),
    devices: devices.length === 0 ? undefined : devices,
    pids: single(claims, 'PidsLimit', before.pids, answer.pids),
  });
  return Object.keys(merged).length === 0 ? undefined : merged;
}
