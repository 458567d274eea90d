/** Looks for what a test may have left behind: processes, mounts, cgroups. */
import { readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { readProcessStat } from '../../../../src/adapters/linux/processes.ts';

/** Command lines of the processes (zombies aside) that name `text`, with their pids. */
export const processesNaming = async (text: string): Promise<string[]> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== String(process.pid));
  const lines = await Promise.all(
    pids.map(async (pid) => {
      const line = (await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '')).replaceAll('\0', ' ');
      return line.includes(text) && (await readProcessStat(Number(pid)))?.state !== 'Z' ? `${pid} ${line}` : '';
    }),
  );
  return lines.filter(Boolean);
};

/** Everything under `dir` that is mounted, deepest first. */
export const mountsUnder = async (dir: string): Promise<string[]> =>
  (await readFile('/proc/self/mountinfo', 'utf8'))
    .split('\n')
    .map((line) => line.split(' ')[4] ?? '')
    .filter((path) => path.startsWith(`${dir}/`))
    .toReversed();

const cgroupRoot = '/sys/fs/cgroup';

const subdirectories = async (dir: string): Promise<string[]> =>
  (await readdir(dir, { withFileTypes: true }).catch(() => []))
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(dir, entry.name));

/** Removes the cgroup of that name from all hierarchies, killing what still runs below; returns what was not empty. */
export const removeCgroups = async (cgroup: string): Promise<string[]> => {
  const hierarchies = [cgroupRoot, ...(await subdirectories(cgroupRoot))].map((dir) => join(dir, cgroup));
  const containers = (await Promise.all(hierarchies.map(subdirectories))).flat();
  for (const container of containers) {
    for (const pid of (await readFile(join(container, 'cgroup.procs'), 'utf8')).split('\n').filter(Boolean)) {
      process.kill(Number(pid), 'SIGKILL');
    }
  }
  for (const dir of [...containers, ...hierarchies]) await rmdir(dir).catch(() => undefined);
  return containers;
};
