/**
 * The control group that a process is in, in the hierarchy of the memory controller, where every process is in one. Reads
 * only; the group that a spec names is cgroup-path.ts's to tell.
 */
import { join } from 'node:path';
import type { CgroupFacts } from '../../domain/model/node-facts.ts';
import { readProcFile } from './proc-file.ts';

const MEMORY = 'memory';

/** The memory controller's. */
export interface Hierarchy {
  readonly version: 1 | 2;
  readonly mountPoint: string;
}

/** null: the node has no memory controller. */
export const memoryHierarchy = ({
  version,
  controllers,
}: Pick<CgroupFacts, 'version' | 'controllers'>): Hierarchy | null => {
  const mountPoint = controllers[MEMORY];
  return mountPoint === undefined ? null : { version, mountPoint };
};

/** Path of the process's cgroup in the hierarchy of the memory controller, of the text of /proc/<pid>/cgroup. */
export const memoryCgroupPath = (procCgroup: string, version: 1 | 2): string | null => {
  const wanted = (controllers: string): boolean =>
    version === 2 ? controllers === '' : controllers.split(',').includes(MEMORY);
  for (const line of procCgroup.split('\n')) {
    const [, controllers, path] = /^\d+:([^:]*):(\/.*)$/.exec(line) ?? [];
    if (controllers !== undefined && path !== undefined && wanted(controllers)) return path;
  }
  return null;
};

/** The directory of the process's group; null when it is gone, or /proc does not say. */
export const memoryCgroupOf = async ({ version, mountPoint }: Hierarchy, pid: number): Promise<string | null> => {
  const text = await readProcFile(`/proc/${pid}/cgroup`).catch(() => '');
  const path = memoryCgroupPath(text, version);
  return path === null ? null : join(mountPoint, path);
};
