/**
 * Starts scribe and containerd, or another clone's scribe in its place, so that they differ in themselves alone: the same shim, OCI runtime, CNI plugins, pause
 * program, image registry and network namespace, and configurations that say the same. Each has directories, a bridge
 * and a parent cgroup of its own. Whatever is left of a runtime at the end is killed and taken away.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { bridgeConfList } from '../../scripts/lib/cni.ts';
import { criClient } from '../../scripts/lib/cri-client.ts';
import { waitServing } from '../../scripts/lib/serving.ts';
import { type Owner, onCleanup } from '../../test/support/cleanup.ts';
import { sweep } from '../../test/support/daemon.ts';
import type { DaemonDirs } from '../../test/support/leftovers.ts';
import type { Netns } from '../../test/support/netns.ts';
import { type BackgroundProcess, startProcess } from '../../test/support/process.ts';

/** before: the scribe of another clone, in containerd's place. */
export type RuntimeName = 'scribe' | PeerName;
export type PeerName = 'containerd' | 'before';

export interface Runtime {
  readonly name: RuntimeName;
  readonly socket: string;
  readonly dirs: DaemonDirs;
  /** What the runtime says of itself. */
  readonly version: string;
  readonly pid: () => number;
  /** SIGKILL, and waits until it is gone. */
  readonly kill: () => Promise<void>;
  /** Starts it again; resolves as soon as its process runs, with the time at which that was asked for (Unix, ms). */
  readonly launch: () => Promise<number>;
}

/** What both runtimes get. */
export interface Surroundings {
  /** Directory of this run; everything of the runtimes is in it. */
  readonly dir: string;
  /** Directory with containerd, the shim, and CNI plugins in cni/. */
  readonly bin: string;
  readonly netns: Netns;
  /** Directory of hosts.toml files. */
  readonly registryConfigDir: string;
  /** Another clone of scribe, which is measured in containerd's place; absent: containerd is. */
  readonly before?: string;
  /** Image of containerd's pause container: it holds the program that scribe brings along. */
  readonly pauseImage: string;
}

const thisClone = join(import.meta.dirname, '../..');
const startTimeoutMs = 60_000;

/** No other network of this machine is in the namespace, so any subnet will do. */
const subnets: Readonly<Record<RuntimeName, string>> = {
  scribe: '10.230.0.0/16',
  containerd: '10.231.0.0/16',
  before: '10.231.0.0/16',
};

const scribeConfig = `
[runtime]
cgroup_driver = "cgroupfs"
restrict_oom_score_adj = true
enable_unprivileged_ports = true
enable_unprivileged_icmp = true
`;

/** The defaults of containerd, but for what keeps it within its directories and what scribe is told as well. */
const containerdConfig = (place: Place, { bin, registryConfigDir, pauseImage }: Surroundings): string => `
version = 3
root = '${place.dirs.root}'
state = '${place.dirs.state}'
[grpc]
  address = '${place.socket}'
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
  enable_unprivileged_ports = true
  enable_unprivileged_icmp = true
  netns_mounts_under_state_dir = true
[plugins.'io.containerd.cri.v1.runtime'.containerd]
  default_runtime_name = 'runc'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
  BinaryName = 'runc'
  SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['${join(bin, 'cni')}']
  conf_dir = '${place.cniConfDir}'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '${pauseImage}'
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '${registryConfigDir}'
[plugins.'io.containerd.nri.v1.nri']
  socket_path = '${join(place.dirs.state, 'nri.sock')}'
  plugin_path = '${join(place.dir, 'nri')}'
[plugins.'io.containerd.internal.v1.opt']
  path = '${join(place.dir, 'opt')}'
`;

interface Place {
  readonly dir: string;
  readonly dirs: DaemonDirs;
  readonly socket: string;
  readonly cniConfDir: string;
  readonly configPath: string;
}

const makePlace = async (name: RuntimeName, runDir: string): Promise<Place> => {
  const dir = join(runDir, name);
  const state = join(dir, 'state');
  const cniConfDir = join(dir, 'net.d');
  const addresses = join(dir, 'addresses');
  for (const path of [state, cniConfDir]) await mkdir(path, { recursive: true, mode: 0o711 });
  const network = { name: `bench-${name}`, bridge: `br-${name}`, subnet: subnets[name], dataDir: addresses };
  await writeFile(join(cniConfDir, '10-bench.conflist'), bridgeConfList({ ...network, ipMasq: true }));
  return {
    dir,
    dirs: { root: join(dir, 'root'), state, addresses, cgroupParent: `/scribe-bench-${basename(runDir)}-${name}` },
    socket: join(state, `${name}.sock`),
    cniConfDir,
    configPath: join(dir, 'config.toml'),
  };
};

const commandLine = (name: RuntimeName, place: Place, around: Surroundings): readonly string[] => {
  const { bin, registryConfigDir, before = thisClone } = around;
  const { socket, dirs, cniConfDir, configPath } = place;
  if (name === 'containerd') return [join(bin, 'containerd'), '--config', configPath];
  return [
    ...[
      join(name === 'before' ? before : thisClone, 'bin/scribe'),
      'serve',
      '--config',
      configPath,
      '--socket',
      socket,
      '--root',
      dirs.root,
      '--state',
      dirs.state,
    ],
    ...['--cni-conf-dir', cniConfDir, '--cni-bin-dir', join(bin, 'cni'), '--registry-config-dir', registryConfigDir],
  ];
};

/** Starts a runtime and resolves once it answers. It ends, with all it started, when its owner does. */
export const startRuntime = async (owner: Owner, name: RuntimeName, around: Surroundings): Promise<Runtime> => {
  const place = await makePlace(name, around.dir);
  await writeFile(place.configPath, name === 'containerd' ? containerdConfig(place, around) : scribeConfig);
  const argv = around.netns.inside(commandLine(name, place, around));
  // Both find the shim, and the shim the OCI runtime, where PATH says.
  const env = { ...process.env, PATH: `${around.bin}:${process.env['PATH']}` };
  onCleanup(owner, () => sweep(place.dirs));

  let daemon: BackgroundProcess | undefined;
  const running = (): BackgroundProcess => {
    if (daemon === undefined) throw new Error(`${name} has not been started`);
    return daemon;
  };
  const launch = async (): Promise<number> => {
    const askedAtMs = Date.now();
    daemon = await startProcess(owner, argv, { env });
    return askedAtMs;
  };
  await launch();
  const cri = criClient(place.socket);
  try {
    const ended = running().ended.then((how) => new Error(`${name} ended (${how})`));
    const version = await waitServing(cri, ended, startTimeoutMs);
    return {
      name,
      socket: place.socket,
      dirs: place.dirs,
      version,
      pid: () => running().pid,
      launch,
      kill: async () => {
        running().kill('SIGKILL');
        await running().ended;
      },
    };
  } catch (error) {
    throw new Error(`${name} does not serve (${String(error)}):\n${running().output()}`, { cause: error });
  } finally {
    cri.close();
  }
};
