/**
 * Where this host keeps its control groups: version 1 hierarchies, the unified version 2, or both (hybrid, which
 * counts as version 1: OCI runtimes use the version 1 hierarchies there). Reads only; makes and moves no cgroup.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { CgroupFacts } from '../../domain/model/node-facts.ts';
import { type MountInfo, readMountInfo } from './mounts.ts';
import { errorCodeOf } from '../error-code.ts';
import { exists } from './exists.ts';

export const CGROUP_ROOT = '/sys/fs/cgroup';

/** Names of the controllers that /proc/cgroups lists as enabled. */
export const parseEnabledControllers = (procCgroups: string): ReadonlySet<string> =>
  new Set(
    procCgroups
      .split('\n')
      .filter((line) => !line.startsWith('#'))
      .map((line) => line.split('\t'))
      .filter(([, , , enabled]) => enabled === '1')
      .map(([name]) => name ?? ''),
  );

/** True when the unified hierarchy is mounted where runtimes look for it, and nothing hides it. */
export const isUnified = (table: readonly MountInfo[]): boolean =>
  table.findLast((mount) => mount.mountPoint === CGROUP_ROOT)?.fileSystemType === 'cgroup2';

/** Where each version 1 controller is mounted; of several places, the first below /sys/fs/cgroup. */
export const controllersOfV1 = (
  table: readonly MountInfo[],
  enabled: ReadonlySet<string>,
): Readonly<Record<string, string>> => {
  const mounts = table.filter((mount) => mount.fileSystemType === 'cgroup');
  const preferred = mounts.filter((mount) => mount.mountPoint.startsWith(`${CGROUP_ROOT}/`));
  // Later entries win in fromEntries, so the best stands last.
  const byRank = [...mounts.toReversed(), ...preferred.toReversed()];
  return Object.fromEntries(
    byRank.flatMap((mount) =>
      mount.superOptions.filter((option) => enabled.has(option)).map((controller) => [controller, mount.mountPoint]),
    ),
  );
};

const readUnified = async (): Promise<CgroupFacts> => {
  const [controllers, own] = await Promise.all([
    readFile(join(CGROUP_ROOT, 'cgroup.controllers'), 'utf8'),
    readFile('/proc/self/cgroup', 'utf8'),
  ]);
  // The root cgroup has no limits, so the daemon's own is the one to look at.
  const ownPath = /^0::(.*)$/m.exec(own)?.[1] ?? '/';
  return {
    version: 2,
    controllers: Object.fromEntries(
      controllers
        .trim()
        .split(' ')
        .filter(Boolean)
        .map((name) => [name, CGROUP_ROOT]),
    ),
    swapAccounting: await exists(join(CGROUP_ROOT, ownPath, 'memory.swap.max')),
  };
};

/** Reads the layout of this host, from within its initial mount namespace. */
export const readCgroupFacts = async (): Promise<CgroupFacts> => {
  const table = await readMountInfo(({ mountPoint, line }) => mountPoint === CGROUP_ROOT || line.includes(' - cgroup'));
  if (isUnified(table)) return readUnified();
  const enabled = await readFile('/proc/cgroups', 'utf8').catch((error: unknown) => {
    // A kernel built without version 1 has no such file.
    if (errorCodeOf(error) === 'ENOENT') return '';
    throw error;
  });
  const controllers = controllersOfV1(table, parseEnabledControllers(enabled));
  const { memory } = controllers;
  const swapAccounting = memory !== undefined && (await exists(join(memory, 'memory.memsw.limit_in_bytes')));
  return { version: 1, controllers, swapAccounting };
};
