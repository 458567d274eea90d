/**
 * The facts about this machine that decisions depend on, read once at start and recorded (C13: replay sees the
 * record, not the machine). Plain data only; must not change anything.
 */
import { readdir, readFile } from 'node:fs/promises';
import { arch, availableParallelism, hostname, release } from 'node:os';
import type { NodeFacts } from '../../domain/model/node-facts.ts';
import { readCgroupFacts } from './cgroups.ts';
import { readBootId } from './processes.ts';
import { readSecurityModules } from './security-modules.ts';
import { exists } from './exists.ts';

/** By bit number, capability.h; the kernel's CAP_LAST_CAP has been the last of these since 5.9. */
const capabilityNames = (
  'CHOWN DAC_OVERRIDE DAC_READ_SEARCH FOWNER FSETID KILL SETGID SETUID SETPCAP LINUX_IMMUTABLE NET_BIND_SERVICE ' +
  'NET_BROADCAST NET_ADMIN NET_RAW IPC_LOCK IPC_OWNER SYS_MODULE SYS_RAWIO SYS_CHROOT SYS_PTRACE SYS_PACCT SYS_ADMIN ' +
  'SYS_BOOT SYS_NICE SYS_RESOURCE SYS_TIME SYS_TTY_CONFIG MKNOD LEASE AUDIT_WRITE AUDIT_CONTROL SETFCAP MAC_OVERRIDE ' +
  'MAC_ADMIN SYSLOG WAKE_ALARM BLOCK_SUSPEND AUDIT_READ PERFMON BPF CHECKPOINT_RESTORE'
)
  .split(' ')
  .map((name) => `CAP_${name}`);

/** Names of the capabilities in a hexadecimal mask of /proc/<pid>/status; bits without a known name are left out. */
export const capabilitiesOfMask = (mask: string): readonly string[] => {
  const bits = BigInt(`0x${mask}`);
  return capabilityNames.filter((_, bit) => ((bits >> BigInt(bit)) & 1n) === 1n);
};

const hugepageUnits = ['KB', 'MB', 'GB', 'TB'] as const;

/** The hugetlb controller's word for a directory of /sys/kernel/mm/hugepages: hugepages-2048kB is 2MB. */
export const hugepageSizeOf = (directory: string): string | null => {
  const kilobytes = Number(/^hugepages-(\d+)kB$/.exec(directory)?.[1]);
  if (!(kilobytes > 0)) return null;
  const unit = Math.min(Math.floor(Math.log2(kilobytes) / 10), hugepageUnits.length - 1);
  return `${kilobytes / 1024 ** unit}${hugepageUnits[unit]}`;
};

/** Content of a small file, or '' where the kernel does not have it. */
const contentOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

const hugepageSizes = async (): Promise<readonly string[]> => {
  const directories = await readdir('/sys/kernel/mm/hugepages').catch(() => []);
  return directories.flatMap((directory) => hugepageSizeOf(directory) ?? []);
};

/** Reads everything once. Rejects only when /proc is not there; what a kernel lacks reads as false or empty. */
export const readHostFacts = async (): Promise<NodeFacts> => {
  const [bootId, cgroup, status, oomScoreAdj, seccompActions, modules, resctrl, hugepages] = await Promise.all([
    readBootId(),
    readCgroupFacts(),
    readFile('/proc/self/status', 'utf8'),
    readFile('/proc/self/oom_score_adj', 'utf8'),
    contentOf('/proc/sys/kernel/seccomp/actions_avail'),
    readSecurityModules(),
    exists('/sys/fs/resctrl/schemata'),
    hugepageSizes(),
  ]);
  const capabilities = capabilitiesOfMask(/^CapEff:\s+([0-9a-f]+)$/m.exec(status)?.[1] ?? '0');
  return {
    bootId,
    kernelRelease: release(),
    // Node says x64 where Go says amd64; the other architectures that both run on are called the same.
    architecture: arch() === 'x64' ? 'amd64' : arch(),
    cgroup,
    capabilities,
    canRaiseLimits: capabilities.includes('CAP_SYS_RESOURCE'),
    ownOomScoreAdj: Number(oomScoreAdj),
    seccomp: seccompActions.includes('errno'),
    ...modules,
    resctrl,
    hugepageSizes: hugepages,
    hostname: hostname(),
    cpuCount: availableParallelism(),
  };
};
