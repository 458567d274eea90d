/**
 * Where the daemon itself stands with the kernel: its control group, its OOM score and its priority. Processes that it starts
 * later inherit them. Done once, at start-up, on the calling thread: the first two before anything is started.
 */
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { constants, getPriority, setPriority } from 'node:os';
import { dirname, join } from 'node:path';
import type { CgroupFacts } from '../../domain/model/node-facts.ts';
import { cgroupDirectory } from './cgroup-path.ts';
import { parseProcessStat } from './processes.ts';
import { errorCodeOf } from '../error-code.ts';

const OOM_SCORE_PATH = '/proc/self/oom_score_adj';

const TASKS_DIR = '/proc/self/task';
const AUTOGROUP_PATH = '/proc/self/autogroup';

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

/** Whether all of this process's session began with it: then nobody else's programs are in there. */
const leadsSession = (): boolean => parseProcessStat(readFileSync('/proc/self/stat', 'utf8')).session === process.pid;

/** The kernel shares processors out among sessions first where it groups them (sched(7), autogroup); it need not. */
const setNiceOfSession = (nice: number): void => {
  try {
    writeFileSync(AUTOGROUP_PATH, `${nice}`);
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT') throw error;
  }
};

/**
 * Sets the nice value of all threads that there are, and of the session where it is this process's own. Threads that begin later
 * inherit it, and so do processes. Throws what the kernel says: to lower it takes CAP_SYS_NICE.
 */
export const setNice = (nice: number): void => {
  for (const thread of readdirSync(TASKS_DIR)) setPriority(Number(thread), nice);
  if (leadsSession()) setNiceOfSession(nice);
};

/**
 * Has the calling thread go behind those of this process that calls wait for; and, which takes more than no advantage, not before
 * other processes. The kernel weighs the session on each processor by what its threads there weigh beside all of them: one of
 * nice 10 beside an event loop of nice -20 that works a tenth of the time has there what any other process has.
 */
export const goBehind = (): void => {
  const { PRIORITY_NORMAL, PRIORITY_BELOW_NORMAL } = constants.priority;
  if (getPriority() < PRIORITY_NORMAL) setPriority(PRIORITY_BELOW_NORMAL);
};
