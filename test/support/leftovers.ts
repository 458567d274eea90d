/**
 * What a daemon has left on this machine, found by looking at the machine and not by asking the daemon: for tests
 * that everything is given back, and for cleaning up after those that failed.
 */
import { readFile, readdir, readlink, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import type { Netns } from './netns.ts';
import { run, runOk } from './process.ts';

export interface DaemonDirs {
  readonly root: string;
  readonly state: string;
  /** Parent cgroup (as CRI's cgroup_parent) that the test gives all its pods. */
  readonly cgroupParent: string;
  /** The dataDir of host-local in the conflist that the daemon uses. */
  readonly addresses: string;
}

/** Each list names what is still there: paths, or processes as "pid command". */
export interface Leftovers {
  readonly netns: readonly string[];
  readonly mounts: readonly string[];
  readonly addresses: readonly string[];
  /** Whatever lies in the directories for things of pods and containers: bundles, FIFOs, layers, OCI runtime state. */
  readonly bundles: readonly string[];
  readonly cgroups: readonly string[];
  readonly shims: readonly string[];
  /** Ends of veth pairs and rules of port mappings, in the network namespace that was named. */
  readonly links: readonly string[];
  readonly rules: readonly string[];
}

export const noLeftovers: Leftovers = {
  netns: [],
  mounts: [],
  addresses: [],
  bundles: [],
  cgroups: [],
  shims: [],
  links: [],
  rules: [],
};

const entriesOf = async (dir: string): Promise<string[]> => {
  const names = await readdir(dir).catch(() => []);
  return names.map((name) => join(dir, name)).sort();
};

const isBelow = (path: string, dir: string): boolean => path === dir || path.startsWith(`${dir}/`);

export interface MountPoint {
  readonly path: string;
  readonly type: string;
}

/** Everything mounted below one of the directories, deepest last. */
export const mountsBelow = async (dirs: readonly string[]): Promise<MountPoint[]> => {
  const lines = (await readFile('/proc/self/mountinfo', 'utf8')).trimEnd().split('\n');
  return lines
    .map((line) => {
      const [before = '', after = ''] = line.split(' - ');
      const path = (before.split(' ')[4] ?? '').replace(/\\040/g, ' ');
      return { path, type: after.split(' ')[0] ?? '' };
    })
    .filter(({ path }) => dirs.some((dir) => isBelow(path, dir)));
};

export interface ProcessInfo {
  readonly pid: number;
  readonly parent: number;
  readonly commandLine: string;
  readonly cwd: string;
}

const processInfo = async (pid: number): Promise<ProcessInfo | null> => {
  try {
    const [commandLine, stat, cwd] = await Promise.all([
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readlink(`/proc/${pid}/cwd`).catch(() => ''),
    ]);
    const [status = '', parent = '0'] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (status === 'Z') return null;
    return { pid, parent: Number(parent), commandLine: commandLine.replaceAll('\0', ' ').trim(), cwd };
  } catch {
    return null;
  }
};

/** Every process of this machine that is alive at this moment. */
export const processes = async (): Promise<ProcessInfo[]> => {
  const pids = (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);
  const all = await Promise.all(pids.map(processInfo));
  return all.filter((process) => process !== null);
};

/** Processes that carry one of the directories in their command line or working directory: shims and helpers. */
export const processesOf = async ({ root, state }: DaemonDirs): Promise<ProcessInfo[]> =>
  (await processes()).filter(
    ({ pid, commandLine, cwd }) =>
      pid !== process.pid &&
      [root, state].some((dir) => commandLine.includes(`${dir}/`) || commandLine.endsWith(dir) || isBelow(cwd, dir)),
  );

const subdirectories = async (dir: string): Promise<string[]> => {
  const entries = await readdir(dir, { withFileTypes: true }).catch(() => []);
  const own = entries.filter((entry) => entry.isDirectory()).map((entry) => join(dir, entry.name));
  return [...own, ...(await Promise.all(own.map(subdirectories))).flat()];
};

/** Directories below the parent cgroup in every hierarchy, parents first; the parent itself belongs to the test. */
export const cgroupsBelow = async (cgroupParent: string): Promise<string[]> => {
  const hierarchies = ['/sys/fs/cgroup', ...(await entriesOf('/sys/fs/cgroup'))];
  return (await Promise.all(hierarchies.map((hierarchy) => subdirectories(join(hierarchy, cgroupParent))))).flat();
};

/** Processes in the cgroups below the parent: containers, whoever their parent is by now. */
export const processesInCgroups = async (cgroupParent: string): Promise<number[]> => {
  const lists = await Promise.all(
    (await cgroupsBelow(cgroupParent)).map((dir) => readFile(join(dir, 'cgroup.procs'), 'utf8').catch(() => '')),
  );
  return [
    ...new Set(
      lists.flatMap((list) =>
        list
          .split('\n')
          .filter((line) => line !== '')
          .map(Number),
      ),
    ),
  ];
};

/** Removes the cgroups that the test's pods had in common, as far as no process is left in them. */
export const removeCgroups = async (cgroupParent: string): Promise<void> => {
  const below = await cgroupsBelow(cgroupParent);
  const parents = (await entriesOf('/sys/fs/cgroup')).map((hierarchy) => join(hierarchy, cgroupParent));
  for (const dir of [...below.reverse(), ...parents, join('/sys/fs/cgroup', cgroupParent)]) {
    await rmdir(dir).catch(() => undefined);
  }
};

const reservedAddresses = async (dataDir: string): Promise<string[]> => {
  const networks = await entriesOf(dataDir);
  const files = (await Promise.all(networks.map(entriesOf))).flat();
  return files.filter((path) => /\/[0-9a-f.:]+$/i.test(path));
};

/** Names of the veth ends in a network namespace. */
const vethsIn = async (netns: Netns): Promise<string[]> => {
  const lines = await runOk(netns.inside(['ip', '-o', 'link', 'show', 'type', 'veth']));
  return [...lines.matchAll(/^\d+: ([^:@]+)/gm)].map(([, name = '']) => name);
};

/** What CNI plugins write for one pod bears its id or a hash of it; the chains that all pods share have neither. */
const podRule = /^-N CNI-(DN-|SN-|[0-9a-f]{16,})|\bid: /;

const rulesIn = async (netns: Netns): Promise<string[]> => {
  const tables = await Promise.all(
    ['iptables', 'ip6tables'].map((command) => run(netns.inside([command, '-t', 'nat', '-S']))),
  );
  return tables.flatMap(({ stdout }) => stdout.split('\n').filter((line) => podRule.test(line)));
};

/**
 * Looks at namespaces, mounts, addresses, directories, cgroups and shims that belong to this daemon's directories, and
 * at what pods have in the network namespace of the daemon.
 */
export const leftovers = async (dirs: DaemonDirs, netns?: Netns): Promise<Leftovers> => {
  const { root, state } = dirs;
  const mounts = await mountsBelow([root, state]);
  const places = ['bundles', 'shims', 'sandboxes', 'io', 'exec', 'cni', 'tmp', 'runtime/k8s.io'];
  return {
    netns: (await Promise.all(['netns', 'ipcns', 'utsns'].map((place) => entriesOf(join(state, place))))).flat(),
    mounts: mounts.map(({ path }) => path).filter((path) => path !== root && path !== state),
    addresses: await reservedAddresses(dirs.addresses),
    bundles: (
      await Promise.all([...places.map((place) => join(state, place)), join(root, 'containers')].map(entriesOf))
    ).flat(),
    cgroups: await cgroupsBelow(dirs.cgroupParent),
    shims: (await processesOf(dirs))
      .filter(({ commandLine }) => commandLine.includes('containerd-shim'))
      .map(({ pid, commandLine }) => `${pid} ${commandLine}`),
    links: netns === undefined ? [] : await vethsIn(netns),
    rules: netns === undefined ? [] : await rulesIn(netns),
  };
};
