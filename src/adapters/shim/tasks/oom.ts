/**
 * How many processes of a task the kernel has killed for lack of memory, from the memory controller's files: to be read
 * when the exit is seen, as the cgroup goes with the task's deletion. systemd removes it as soon as it is empty, often before
 * anybody has looked; then the kernel's log tells of the kills. Reads only.
 */
import { readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import type { CgroupFacts } from '../../../domain/model/node-facts.ts';
import type { TaskMemory } from '../../../domain/model/tasks.ts';
import { oomKillsIn, readKernelLog } from '../../../platform/linux/kernel-log.ts';
import { memoryCgroupOf, memoryHierarchy } from '../../../platform/linux/memory-cgroup.ts';

export interface OomCounters {
  /** The memory cgroup directory that the process is in, as /proc/<pid>/cgroup tells while it lives; else null. */
  readonly cgroupOfProcess: (pid: number) => Promise<string | null>;
  /** The memory cgroup directory that linux.cgroupsPath of a spec names (either form); null when it names none. */
  readonly cgroupOfSpec: (cgroupsPath: string) => string | null;
  /** 0 when neither the cgroup nor, of one that is gone, the kernel's log says. */
  readonly oomKills: (cgroupDir: string) => Promise<number>;
  /** For who asks why: which limit it was, and how much was used. */
  readonly memoryOf: (cgroupDir: string) => Promise<TaskMemory>;
}

const sliceSuffix = '.slice';

/** system.slice holds system-a.slice holds system-a-b.slice: where systemd keeps a slice below the hierarchy's root. */
const sliceDir = (slice: string): string => {
  const parts = slice.slice(0, -sliceSuffix.length).split('-').filter(Boolean);
  return parts.map((_part, index) => `${parts.slice(0, index + 1).join('-')}${sliceSuffix}`).join('/');
};

/** Below the hierarchy's root: a cgroupfs path as it is, slice:prefix:name as systemd lays it out. */
export const cgroupPathOfSpec = (cgroupsPath: string): string | null => {
  if (cgroupsPath.startsWith('/')) return cgroupsPath;
  const [, slice, prefix, name] = /^([^:/]+):([^:/]+):([^:/]+)$/.exec(cgroupsPath) ?? [];
  if (slice === undefined || !slice.endsWith(sliceSuffix)) return null;
  return `/${sliceDir(slice)}/${prefix}-${name}.scope`;
};

const parseOomKills = (text: string): number => Number(/^oom_kill (\d{1,15})$/m.exec(text)?.[1] ?? 0);

/** A number of bytes; undefined for "max", for what v1 says instead of it, and for what is not there. */
const bytesIn = async (path: string): Promise<string | undefined> => {
  const text = (await readFile(path, 'utf8').catch(() => '')).trim();
  return /^\d{1,18}$/.test(text) ? text : undefined;
};

const FILES = {
  1: { limit: 'memory.limit_in_bytes', peak: 'memory.max_usage_in_bytes' },
  2: { limit: 'memory.max', peak: 'memory.peak' },
} as const;

export const createOomCounters = (
  facts: Pick<CgroupFacts, 'version' | 'controllers'>,
  kernelLog = readKernelLog,
): OomCounters => {
  const hierarchy = memoryHierarchy(facts);
  const countersFile = facts.version === 2 ? 'memory.events' : 'memory.oom_control';
  const pathOf = (cgroupDir: string): string =>
    hierarchy === null ? cgroupDir : `/${relative(hierarchy.mountPoint, cgroupDir)}`;
  return {
    cgroupOfProcess: async (pid) => (hierarchy === null ? null : memoryCgroupOf(hierarchy, pid)),
    cgroupOfSpec: (cgroupsPath) => {
      const path = cgroupPathOfSpec(cgroupsPath);
      return hierarchy === null || path === null ? null : join(hierarchy.mountPoint, path);
    },
    memoryOf: async (cgroupDir) => {
      const files = FILES[facts.version];
      const [limitBytes, peakBytes] = await Promise.all([
        bytesIn(join(cgroupDir, files.limit)),
        bytesIn(join(cgroupDir, files.peak)),
      ]);
      return {
        cgroup: pathOf(cgroupDir),
        ...(limitBytes === undefined ? {} : { limitBytes }),
        ...(peakBytes === undefined ? {} : { peakBytes }),
      };
    },
    oomKills: async (cgroupDir) => {
      const text = await readFile(join(cgroupDir, countersFile), 'utf8').catch(() => null);
      if (text !== null) return parseOomKills(text);
      // Whoever may not read it knows no more than before.
      return oomKillsIn(await kernelLog().catch(() => ''), pathOf(cgroupDir));
    },
  };
};
