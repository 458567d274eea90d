/**
 * Where the daemon itself stands with the kernel: its control group and its OOM score. Processes that it starts later
 * inherit both. Done once, at start-up, on the calling thread: nothing may be started before.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { CgroupFacts } from '../../domain/model/node-facts.ts';
import { cgroupDirectory } from './cgroup-path.ts';
import { errorCodeOf } from './syscalls.ts';

const OOM_SCORE_PATH = '/proc/self/oom_score_adj';

const CPUSET_FILES = ['cpuset.cpus', 'cpuset.mems'];

/** cpuset of version 1 takes no process before it is told processors and memory nodes: as those above it have them. */
const inheritCpuset = (directory: string, file: string): string => {
  const path = join(directory, file);
  const own = readFileSync(path, 'utf8').trim();
  if (own !== '') return own;
  const fromAbove = inheritCpuset(dirname(directory), file);
  writeFileSync(path, fromAbove);
  return fromAbove;
};

/**
 * Moves a process into the control group at that path of every hierarchy, which is made where it is missing. Throws
 * what the kernel says, and for a path that leads out of the hierarchies.
 */
export const joinCgroup = ({ version, controllers }: CgroupFacts, path: string, pid: number): void => {
  const name = cgroupDirectory(path);
  if (name === null) throw new Error(`${path} is no control group below the root of its hierarchy`);
  const { cpuset } = controllers;
  for (const mountPoint of new Set(Object.values(controllers))) {
    const directory = join(mountPoint, name);
    mkdirSync(directory, { recursive: true });
    if (version === 1 && mountPoint === cpuset) for (const file of CPUSET_FILES) inheritCpuset(directory, file);
    writeFileSync(join(directory, 'cgroup.procs'), `${pid}\n`);
  }
};

/** Sets the OOM score adjustment, or the nearest that the kernel allows; returns what it is then. */
export const setOomScoreAdj = (wanted: number): number => {
  try {
    writeFileSync(OOM_SCORE_PATH, `${wanted}`);
  } catch (error) {
    // Below where it started takes CAP_SYS_RESOURCE.
    const code = errorCodeOf(error);
    if (code !== 'EACCES' && code !== 'EPERM') throw error;
  }
  return Number(readFileSync(OOM_SCORE_PATH, 'utf8'));
};
