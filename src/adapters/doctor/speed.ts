/**
 * What would make pods of this node start faster, with the time that it costs: measured here where that takes no pod
 * (joining control groups), and otherwise as docs/benchmarks/what-a-node-could-do.md has it. Makes a control group of its
 * own for a moment and takes it away again. Never rejects.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import type { CgroupFacts, NodeFacts } from '../../domain/model/node-facts.ts';
import type { RuntimeHandler } from '../../domain/model/runtime-handler.ts';
import { type DoctorResult, ok, warning } from './result.ts';
import type { InstalledShim } from './programs.ts';
import { watchesMemoryFromCreation } from '../../domain/model/shim-version.ts';
import { findProgram } from '../../platform/linux/find-program.ts';
import { ISAL_LIBRARY } from '../../platform/linux/inflate/isal.ts';
import { outputOf } from './tools.ts';

const JOINING = 'speed of control groups';
const startSpeed = (handler: RuntimeHandler): string => `speed of starts of ${handler.name}`;
const INFLATING = 'speed of gzip layers';
const runtimeSpeed = (handler: RuntimeHandler): string => `speed of ${handler.name}`;

/** Where the kernel need not wait for all processors to move a process, it takes a tenth of a millisecond. */
const JOIN_MS_MAX = 3;
const JOINS = 5;
/** Longer than the kernel stays ready for the next one, which then costs nothing. */
const REST_MS = 60;
const END_TRIES = 20;
/** Its new groups take no process before they are given processors, and one hierarchy more or less tells nothing else. */
const NOT_JOINED = 'cpuset';

/** Processor time of creating, starting and deleting a container, as that page has it. */
const CONTAINER_MS = { runc: 54, crun: 19 } as const;

/** Processor time of letting a container's process go, by `runc start` and by the daemon, as that page has it. */
const START_MS = { runc: 7.2, daemon: 0.8 } as const;

/** Processor time of inflating 100 MB of programs by ISA-L and by Node's zlib, as that page has it. */
const INFLATING_MS = { isal: 140, zlib: 181 } as const;

export interface Joining {
  /** For a process to join a control group, in each hierarchy one after the other. */
  readonly joinMs: number;
  readonly hierarchies: number;
}

/** Says what joining costs, and what to do where that is much. */
export const judgeJoining = (version: CgroupFacts['version'], { joinMs, hierarchies }: Joining): DoctorResult => {
  const where = `${hierarchies === 1 ? 'one hierarchy' : `${hierarchies} hierarchies`} of version ${version}`;
  const detail = `a process takes ${joinMs.toFixed(1)} ms to join its control groups (${where})`;
  if (joinMs < JOIN_MS_MAX) return ok(JOINING, detail);
  const mounted = 'mount control groups with favordynmods (Linux 6.0)';
  return warning(
    JOINING,
    `${detail}; every container and every command in one waits for that`,
    version === 1
      ? `Boot with systemd.unified_cgroup_hierarchy=1, where there is one hierarchy, or ${mounted}.`
      : `Remount: mount -o remount,favordynmods /sys/fs/cgroup (Linux 6.0); or install crun, or runc 1.4, which makes processes where they belong.`,
  );
};

const median = (values: readonly number[]): number => values.toSorted((a, b) => a - b)[values.length >> 1] ?? 0;

/** A process that ends when this one does. */
const startIdle = () => spawn('cat', { stdio: ['pipe', 'ignore', 'ignore'], cwd: '/' });

const removeGroup = async (directory: string): Promise<void> => {
  for (let tries = 0; tries < END_TRIES; tries += 1) {
    try {
      return await rmdir(directory);
    } catch {
      // The kernel takes a moment to forget who was in it.
      await delay(10);
    }
  }
};

const measureJoining = async (parents: readonly string[]): Promise<Joining> => {
  const groups = parents.map((parent) => join(parent, `scribe-doctor-${process.pid}`));
  const made: string[] = [];
  const idle = startIdle();
  const ended = once(idle, 'exit');
  try {
    await once(idle, 'spawn');
    for (const group of groups) {
      await mkdir(group);
      made.push(group);
    }
    const joinAll = async (directories: readonly string[]): Promise<number> => {
      const startedMs = performance.now();
      for (const directory of directories) await writeFile(join(directory, 'cgroup.procs'), String(idle.pid));
      return performance.now() - startedMs;
    };
    const samplesMs: number[] = [];
    for (let round = 0; round < JOINS; round += 1) {
      samplesMs.push(await joinAll(groups));
      await joinAll(parents);
      await delay(REST_MS);
    }
    return { joinMs: median(samplesMs), hierarchies: groups.length };
  } finally {
    idle.kill('SIGKILL');
    await ended;
    await Promise.all(made.map(removeGroup));
  }
};

/** Measures: takes as long as ten joins, and some rests between them. */
export const checkJoining = async ({ cgroup }: NodeFacts): Promise<DoctorResult> => {
  const joined = Object.entries(cgroup.controllers).filter(([name]) => cgroup.version === 2 || name !== NOT_JOINED);
  try {
    return judgeJoining(cgroup.version, await measureJoining([...new Set(joined.map(([, directory]) => directory))]));
  } catch (error) {
    return ok(JOINING, `it can't be measured what joining them takes: ${(error as Error).message}`);
  }
};

/** What would be saved by another OCI runtime; `path` is the PATH that the daemon runs with. */
export const checkRuntimeSpeed = async (
  handler: RuntimeHandler,
  { cgroup }: Pick<NodeFacts, 'cgroup'>,
  path: string,
): Promise<DoctorResult> => {
  const check = runtimeSpeed(handler);
  const program = await findProgram(handler.binaryName, path);
  const told = program === null ? '' : await outputOf(program, ['--version'], { PATH: path }).catch(() => '');
  const name = /^(\S+) version /.exec(told)?.[1] ?? handler.binaryName;
  if (name !== 'runc') return ok(check, `nothing faster than ${name} is known`);
  const costs = `a container costs ${CONTAINER_MS.runc} ms of processor time with runc and ${CONTAINER_MS.crun} with crun`;
  const measured = `${costs} where docs/benchmarks/what-a-node-could-do.md was measured`;
  if ((await findProgram('crun', path)) === null) return ok(check, `${measured}; crun is not installed`);
  // Beside a hierarchy of version 2 that has no controller, crun makes no container.
  if (cgroup.version === 1) return ok(check, `${measured}; crun is installed, and best used with version 2`);
  const remedy = `Set binary_name of [runtime.handlers.${handler.name}] to "crun".`;
  return warning(check, `${measured}; crun is installed`, remedy);
};

/** What decompresses gzip layers, and what would do it in less time. */
export const checkInflatingSpeed = (isIsalThere: boolean): DoctorResult => {
  const { isal, zlib } = INFLATING_MS;
  const costs = `${isal} ms of processor time for 100 MB of programs, and ${zlib} without it`;
  const measured = `${costs}, where docs/benchmarks/what-a-node-could-do.md was measured`;
  if (isIsalThere) return ok(INFLATING, `ISA-L decompresses them: ${measured}`);
  const detail = `${ISAL_LIBRARY} is not there, which would take ${measured}`;
  return warning(INFLATING, detail, 'Install ISA-L (Debian: apt-get install libisal2).');
};

/** What a newer shim would save: which starts the daemon does itself is in docs/decisions/starts-here.md. */
export const checkStartSpeed = (handler: RuntimeHandler, shim: InstalledShim): DoctorResult => {
  const check = startSpeed(handler);
  if (basename(handler.binaryName) !== 'runc' || handler.sandboxer === 'shim')
    return ok(check, 'its shim starts containers: the daemon does so itself for containers of runc only');
  if (shim.kind !== 'found' || shim.version === null) return ok(check, 'it is not known which shim there is');
  const { text } = shim.version;
  const costs = `${START_MS.daemon} ms of processor time for each, and ${START_MS.runc} where the shim does`;
  const measured = `${costs}, where docs/benchmarks/what-a-node-could-do.md was measured`;
  if (watchesMemoryFromCreation(shim.version)) return ok(check, `the daemon starts containers itself: ${measured}`);
  return warning(
    check,
    `${shim.program} ${text} has to start containers: the daemon, with a shim of 2.2 or later, takes ${measured}`,
    `Install containerd's shim 2.2 or later, or set shim_path of [runtime.handlers.${handler.name}] to one.`,
  );
};
