/** Limits in the words of the domain and on the wire, both ways. */
import type { Int64 } from '../../../domain/model/cri.ts';
import type { NriCpu, NriHugepageLimit, NriMemory, NriResources } from '../../../domain/model/nri.ts';
import type { OciDeviceCgroup } from '../../../domain/model/oci.ts';
import { shown } from '../../../domain/oci/refuse.ts';
import type * as wire from '../../../wire/nri/api.ts';
import { optional } from './parts-to-wire.ts';
import {
  fileName,
  list,
  map,
  MAX_INT64,
  MAX_UINT32,
  MAX_UINT64,
  message,
  optionalText,
  present,
  refuseAnswer,
  text,
  whole,
  wholeNumber,
} from './reading.ts';

const memoryToWire = (memory: NriMemory): wire.LinuxMemory => ({
  limit: optional(memory.limit),
  reservation: optional(memory.reservation),
  swap: optional(memory.swap),
  kernel: optional(memory.kernel),
  kernelTcp: optional(memory.kernelTcp),
  swappiness: optional(memory.swappiness),
  disableOomKiller: optional(memory.disableOomKiller),
  useHierarchy: optional(memory.useHierarchy),
});

const cpuToWire = (cpu: NriCpu): wire.LinuxCPU => ({
  shares: optional(cpu.shares),
  quota: optional(cpu.quota),
  period: optional(cpu.period),
  realtimeRuntime: optional(cpu.realtimeRuntime),
  realtimePeriod: optional(cpu.realtimePeriod),
  cpus: cpu.cpus ?? '',
  mems: cpu.mems ?? '',
});

const ruleToWire = ({ allow, type, major, minor, access }: OciDeviceCgroup): wire.LinuxDeviceCgroup => ({
  allow,
  type: type ?? '',
  major: optional(major === undefined ? undefined : String(major)),
  minor: optional(minor === undefined ? undefined : String(minor)),
  access,
});

export const resourcesToWire = (resources: NriResources): wire.LinuxResources => ({
  memory: resources.memory && memoryToWire(resources.memory),
  cpu: resources.cpu && cpuToWire(resources.cpu),
  hugepageLimits: (resources.hugepageLimits ?? []).map(({ pageSize, limit }) => ({ pageSize, limit })),
  blockioClass: optional(resources.blockioClass),
  rdtClass: optional(resources.rdtClass),
  unified: { ...resources.unified },
  devices: (resources.devices ?? []).map(ruleToWire),
  pids: resources.pids && { limit: resources.pids.limit },
});

/** -1 is no limit. */
const limitOf = (field: string, given: wire.OptionalInt64 | undefined): Int64 | undefined =>
  message(given, ({ value }) => whole(field, value, -1n, MAX_INT64));
const amount = (field: string, given: wire.OptionalUInt64 | undefined, most = MAX_UINT64): Int64 | undefined =>
  message(given, ({ value }) => whole(field, value, 0n, most));
const flag = (given: wire.OptionalBool | undefined): boolean | undefined => given?.value;

const MAX_SWAPPINESS = 100n;

const memoryFromWire = (at: string, memory: wire.LinuxMemory): NriMemory | undefined =>
  present<NriMemory>({
    limit: limitOf(`${at}.limit`, memory.limit),
    reservation: limitOf(`${at}.reservation`, memory.reservation),
    swap: limitOf(`${at}.swap`, memory.swap),
    kernel: limitOf(`${at}.kernel`, memory.kernel),
    kernelTcp: limitOf(`${at}.kernel_tcp`, memory.kernelTcp),
    swappiness: amount(`${at}.swappiness`, memory.swappiness, MAX_SWAPPINESS),
    disableOomKiller: flag(memory.disableOomKiller),
    useHierarchy: flag(memory.useHierarchy),
  });

/** Of CPUs, or of memory nodes. */
function idList(field: string, value: string): string | undefined {
  if (value !== '' && !/^[0-9,-]+$/.test(value))
    return refuseAnswer(field, `is ${shown(value)}: it must be a list like 0-3,5`);
  return optionalText(field, value);
}

const cpuFromWire = (at: string, cpu: wire.LinuxCPU): NriCpu | undefined =>
  present<NriCpu>({
    shares: amount(`${at}.shares`, cpu.shares),
    quota: limitOf(`${at}.quota`, cpu.quota),
    period: amount(`${at}.period`, cpu.period),
    realtimeRuntime: limitOf(`${at}.realtime_runtime`, cpu.realtimeRuntime),
    realtimePeriod: amount(`${at}.realtime_period`, cpu.realtimePeriod),
    cpus: idList(`${at}.cpus`, cpu.cpus),
    mems: idList(`${at}.mems`, cpu.mems),
  });

const pagesFromWire = (at: string, pages: wire.HugepageLimit): NriHugepageLimit => {
  if (!/^\d+[KMGT]B$/.test(pages.pageSize))
    return refuseAnswer(`${at}.page_size`, `is ${shown(pages.pageSize)}: it must be like 2MB`);
  return { pageSize: pages.pageSize, limit: whole(`${at}.limit`, pages.limit, 0n, MAX_UINT64) };
};

const RULE_TYPES = ['a', 'c', 'b'] as const;

/** -1 is any. */
const deviceNumber = (field: string, given: wire.OptionalInt64 | undefined): number | undefined =>
  message(given, ({ value }) => wholeNumber(field, value, -1n, MAX_UINT32));

function ruleFromWire(at: string, { allow, type, major, minor, access }: wire.LinuxDeviceCgroup): OciDeviceCgroup {
  const known = RULE_TYPES.find((one) => one === type);
  if (known === undefined && type !== '') refuseAnswer(`${at}.type`, `is ${shown(type)}: it must be a, b or c`);
  if (!/^[rwm]*$/.test(access)) refuseAnswer(`${at}.access`, `is ${shown(access)}: it must be made of r, w and m`);
  const numbers = { major: deviceNumber(`${at}.major`, major), minor: deviceNumber(`${at}.minor`, minor) };
  return {
    allow,
    ...(known === undefined ? {} : { type: known }),
    ...present<Pick<OciDeviceCgroup, 'major' | 'minor'>>(numbers),
    access,
  };
}

/** The name of a directory of resctrl, or of a class that this node was configured with. */
const className = (field: string, given: wire.OptionalString | undefined): string | undefined =>
  message(given, ({ value }) => fileName(field, value));

/** Absent when it says nothing. */
export const resourcesFromWire = (at: string, resources: wire.LinuxResources): NriResources | undefined =>
  present<NriResources>({
    memory: message(resources.memory, (memory) => memoryFromWire(`${at}.memory`, memory)),
    cpu: message(resources.cpu, (cpu) => cpuFromWire(`${at}.cpu`, cpu)),
    hugepageLimits: list(`${at}.hugepage_limits`, resources.hugepageLimits, pagesFromWire),
    blockioClass: className(`${at}.blockio_class`, resources.blockioClass),
    rdtClass: className(`${at}.rdt_class`, resources.rdtClass),
    unified: map(`${at}.unified`, resources.unified, (field, value, key) => {
      fileName(`${at}.unified key`, key);
      return text(field, value);
    }),
    devices: list(`${at}.devices`, resources.devices, ruleFromWire),
    pids: message(resources.pids, ({ limit }) => ({ limit: whole(`${at}.pids.limit`, limit, -1n, MAX_INT64) })),
  });
