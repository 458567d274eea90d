/**
 * Checks of the host itself, from facts that were read before: kernel, capabilities, cgroups and clock. Pure.
 */
import type { NodeFacts } from '../../domain/model/node-facts.ts';
import type { CgroupDriver } from '../../domain/model/spec-settings.ts';
import { type DoctorResult, ok, problem, warning } from './result.ts';

/** pidfd_open and the overlay options that scribe uses are there since then. */
const KERNEL_MIN = [5, 4] as const;
/** Since then all file systems of a pod can be mounted with shifted ids. */
const KERNEL_FOR_USER_NAMESPACES = [6, 3] as const;

const NEEDED_CAPABILITIES = [
  'CAP_SYS_ADMIN',
  'CAP_NET_ADMIN',
  'CAP_MKNOD',
  'CAP_CHOWN',
  'CAP_DAC_OVERRIDE',
  'CAP_FOWNER',
  'CAP_KILL',
  'CAP_SETUID',
  'CAP_SETGID',
  'CAP_SYS_CHROOT',
];

const NEEDED_CONTROLLERS = ['cpu', 'memory', 'pids'];
/** A version 2 hierarchy needs no controller to hold devices back. */
const NEEDED_CONTROLLERS_V1 = [...NEEDED_CONTROLLERS, 'devices', 'freezer'];
const WANTED_CONTROLLERS = ['cpuset'];

/** Nothing that scribe runs on is older than scribe. */
const EARLIEST_NOW_MS = Date.UTC(2026, 0, 1);

const KERNEL = 'kernel';
const CAPABILITIES = 'capabilities';
const CGROUPS = 'cgroups';
const CGROUP_DRIVER = 'cgroup driver';
const CLOCK = 'clock';

const isBefore = ([major, minor]: readonly [number, number], [atMajor, atMinor]: readonly [number, number]): boolean =>
  major < atMajor || (major === atMajor && minor < atMinor);

export const checkKernel = ({ kernelRelease }: NodeFacts): DoctorResult => {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(kernelRelease) ?? [];
  if (major === undefined || minor === undefined) {
    return warning(KERNEL, `Linux calls itself ${kernelRelease}, which is no version.`, 'Check what uname -r prints.');
  }
  const version = [Number(major), Number(minor)] as const;
  if (isBefore(version, KERNEL_MIN)) {
    return problem(KERNEL, `Linux ${kernelRelease} is older than ${KERNEL_MIN.join('.')}.`, 'Install a newer kernel.');
  }
  const without = isBefore(version, KERNEL_FOR_USER_NAMESPACES)
    ? `; pods with user namespaces need ${KERNEL_FOR_USER_NAMESPACES.join('.')}`
    : '';
  return ok(KERNEL, `Linux ${kernelRelease}${without}`);
};

/** `restrictOomScoreAdj` is the setting of that name. */
export const checkCapabilities = (node: NodeFacts, restrictOomScoreAdj: boolean | 'auto'): DoctorResult => {
  const missing = NEEDED_CAPABILITIES.filter((name) => !node.capabilities.includes(name));
  if (missing.length > 0) {
    return problem(CAPABILITIES, `${missing.join(', ')} missing`, 'Run scribe as root, outside of any container.');
  }
  if (!node.canRaiseLimits) {
    const detail = `CAP_SYS_RESOURCE missing: oom_score_adj can't go below ${node.ownOomScoreAdj}`;
    return restrictOomScoreAdj === false
      ? problem(CAPABILITIES, detail, 'Grant the capability, or set restrict_oom_score_adj of [runtime] to "auto".')
      : warning(CAPABILITIES, detail, 'Grant the capability, so that pause and guaranteed pods are killed last.');
  }
  return ok(CAPABILITIES, `${node.capabilities.length} effective, all that are needed among them`);
};

export const checkCgroups = ({ cgroup }: NodeFacts): DoctorResult => {
  const found = Object.keys(cgroup.controllers);
  const lacks = (names: readonly string[]): string[] => names.filter((name) => !found.includes(name));
  const missing = lacks(cgroup.version === 1 ? NEEDED_CONTROLLERS_V1 : NEEDED_CONTROLLERS);
  const layout = `version ${cgroup.version} with ${found.length === 0 ? 'no controller' : found.toSorted().join(', ')}`;
  if (missing.length > 0) {
    return problem(
      CGROUPS,
      `${layout}; missing: ${missing.join(', ')}`,
      'Mount the hierarchies, and enable the controllers in the kernel.',
    );
  }
  const unwanted = lacks(WANTED_CONTROLLERS);
  if (unwanted.length > 0) {
    return warning(
      CGROUPS,
      `${layout}; missing: ${unwanted.join(', ')}`,
      'Enable them, so that their limits are kept.',
    );
  }
  if (cgroup.version === 1) {
    const remedy = 'Boot with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1 of the kubelet to false.';
    return warning(CGROUPS, `${layout}; kubelet 1.35 and later refuses version 1 by default`, remedy);
  }
  return ok(CGROUPS, layout);
};

/** `systemdRuns`: systemd is this machine's init. */
export const checkCgroupDriver = (node: NodeFacts, driver: CgroupDriver, systemdRuns: boolean): DoctorResult => {
  if (driver === 'systemd' && !systemdRuns) {
    return problem(CGROUP_DRIVER, 'systemd, which does not run here', 'Set cgroup_driver of [runtime] to "cgroupfs".');
  }
  if (driver === 'cgroupfs' && systemdRuns && node.cgroup.version === 2) {
    const remedy = 'Set cgroup_driver of [runtime] to "systemd", and that of the kubelet.';
    return warning(CGROUP_DRIVER, 'cgroupfs, beside systemd, which takes the whole hierarchy for its own', remedy);
  }
  return ok(CGROUP_DRIVER, driver);
};

/** `lastRecordAtMs`: wall clock of the journal's newest record, null when there is none. */
export const checkClock = (nowMs: number, lastRecordAtMs: number | null): DoctorResult => {
  const now = new Date(nowMs).toISOString();
  const remedy = 'Set the clock, and keep it right with an NTP service.';
  if (nowMs < EARLIEST_NOW_MS)
    return problem(CLOCK, `It is said to be ${now}; certificates will look invalid.`, remedy);
  if (lastRecordAtMs !== null && nowMs < lastRecordAtMs) {
    const newest = new Date(lastRecordAtMs).toISOString();
    return warning(
      CLOCK,
      `It is said to be ${now}, earlier than the newest record in the journal (${newest}).`,
      remedy,
    );
  }
  return ok(CLOCK, now);
};
