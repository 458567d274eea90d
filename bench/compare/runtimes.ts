/**
 * Starts scribe and containerd, or another clone's scribe in its place, so that they differ in themselves alone: the same shim, OCI runtime, CNI plugins, pause
 * program, image registry and network namespace, and configurations that say the same. Each has directories, a bridge
 * and a parent cgroup of its own. Whatever is left of a runtime at the end is killed and taken away.
 */
import { existsSync } from 'node:fs';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { bridgeConfList } from '../../scripts/lib/cni.ts';
import { criClient } from '../../scripts/lib/cri-client.ts';
import { waitServing } from '../../scripts/lib/serving.ts';
import { type Owner, onCleanup } from '../../test/support/cleanup.ts';
import { sweep } from '../../test/support/daemon.ts';
import { goProgram } from '../../test/support/go-program.ts';
import type { DaemonDirs } from '../../test/support/leftovers.ts';
import { insideMounts } from '../../test/support/mount-namespace.ts';
import { fetchInside, type Netns } from '../../test/support/netns.ts';
import { eventually } from '../../test/support/pods.ts';
import { type BackgroundProcess, startProcess } from '../../test/support/process.ts';

/** before: the scribe of another clone, in containerd's place. */
export type RuntimeName = 'scribe' | PeerName;
export type PeerName = 'containerd' | 'before';

/** off; on with no plugin; on with the sample plugin logger connected, which hears of everything. */
export const nriModes = ['off', 'none', 'logger'] as const;
export type NriMode = (typeof nriModes)[number];

export interface Runtime {
  readonly name: RuntimeName;
  readonly nri: NriMode;
  readonly socket: string;
  readonly dirs: DaemonDirs;
  /** What the runtime says of itself. */
  readonly version: string;
  readonly pid: () => number;
  /** What scribe tells Prometheus; null: it was not asked to, or is not scribe. */
  readonly readMetrics: (() => Promise<string>) | null;
  /** SIGKILL, and waits until it is gone. */
  readonly kill: () => Promise<void>;
  /** Starts it again; resolves as soon as its process runs, with the time at which that was asked for (Unix, ms). */
  readonly launch: () => Promise<number>;
}

export type OciRuntimeName = 'runc' | 'crun';

/**
 * crun for both runtimes. crun 1.8 refuses every spec that doesn't say it is of version 1.0, as containerd's say 1.3: both get
 * the same script in front of it, which costs both two processes for a container.
 */
export const crunOfAnyVersion = `#!/bin/sh
for each; do
  [ "$before" != --bundle ] || sed -i 's/"ociVersion":"[^"]*"/"ociVersion":"1.0.2"/' "$each/config.json"
  before=$each
done
exec crun "$@"
`;

/** What both runtimes get. */
export interface Surroundings {
  /** Directory of this run; everything of the runtimes is in it. */
  readonly dir: string;
  /** Directory with containerd, the shim, and CNI plugins in cni/. */
  readonly bin: string;
  readonly netns: Netns;
  /** Path, or name in PATH. */
  readonly ociRuntime: string;
  /** The mount namespace that both runtimes run in; absent: the benchmark's own. */
  readonly mountNamespace?: string;
  /** Directory of hosts.toml files. */
  readonly registryConfigDir: string;
  /** What scribe is configured with. */
  readonly podsPerShim: number;
  /** Another clone of scribe, which is measured in containerd's place; absent: containerd is. */
  readonly before?: string;
  /** Whether scribe has metrics, which take memory of their own. */
  readonly hasMetrics: boolean;
  /** Image of containerd's pause container: it holds the program that scribe brings along. */
  readonly pauseImage: string;
}

const thisClone = join(import.meta.dirname, '../..');
const startTimeoutMs = 60_000;

/** Second part of the pods' addresses: no other network of this machine is in the namespace, so any will do. */
const networks: Readonly<Record<RuntimeName, number>> = { scribe: 230, containerd: 240, before: 240 };

/** What NRI is given is the runtime's own: another one on this machine may have the usual places. */
const nriPlaces = (place: Place) => ({ socket: join(place.dirs.state, 'nri.sock'), plugins: join(place.dir, 'nri') });

/** Both may be scribes, in one network namespace. */
const metricsAddresses: Readonly<Record<RuntimeName, string | null>> = {
  scribe: '127.0.0.1:9324',
  before: '127.0.0.1:9325',
  containerd: null,
};

const metricsConfig = (name: RuntimeName, hasMetrics: boolean): string =>
  hasMetrics ? `\n[metrics]\naddress = "${metricsAddresses[name]}"\n` : '';

const scribeConfig = (place: Place, nri: NriMode): string => `
[nri]
enable = ${nri !== 'off'}
socket = "${nriPlaces(place).socket}"
plugin_dir = "${nriPlaces(place).plugins}"
`;

const ownConfig = ({ ociRuntime, podsPerShim }: Surroundings): string => `
[runtime.handlers.runc]
binary_name = "${ociRuntime}"
${podsPerShim === 1 ? '' : `pods_per_shim = ${podsPerShim}`}
[runtime]
cgroup_driver = "cgroupfs"
restrict_oom_score_adj = true
enable_unprivileged_ports = true
enable_unprivileged_icmp = true
`;

/** The defaults of containerd, but for what keeps it within its directories and what scribe is told as well. */
const containerdConfig = (
  place: Place,
  nri: NriMode,
  { bin, ociRuntime, registryConfigDir, pauseImage }: Surroundings,
): string => `
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
  BinaryName = '${ociRuntime}'
  SystemdCgroup = false
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['${join(bin, 'cni')}']
  conf_dir = '${place.cniConfDir}'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = '${pauseImage}'
[plugins.'io.containerd.cri.v1.images'.registry]
  config_path = '${registryConfigDir}'
[plugins.'io.containerd.nri.v1.nri']
  disable = ${nri === 'off'}
  socket_path = '${nriPlaces(place).socket}'
  plugin_path = '${nriPlaces(place).plugins}'
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

/** Of a run's directory, for the state of all: in memory, as /run is on a node. */
export const STATE_DIR = 'run';

const makePlace = async (name: RuntimeName, nri: NriMode, runDir: string): Promise<Place> => {
  const own = `${name}-${nri}`;
  const dir = join(runDir, own);
  const state = join(runDir, STATE_DIR, own);
  const cniConfDir = join(dir, 'net.d');
  const addresses = join(dir, 'addresses');
  for (const path of [state, cniConfDir]) await mkdir(path, { recursive: true, mode: 0o711 });
  const subnet = `10.${networks[name] + nriModes.indexOf(nri)}.0.0/16`;
  // Names of links have 15 characters at most.
  const network = { name: `bench-${own}`, bridge: `br-${name.slice(0, 4)}-${nri}`, subnet, dataDir: addresses };
  await writeFile(join(cniConfDir, '10-bench.conflist'), bridgeConfList({ ...network, ipMasq: true }));
  return {
    dir,
    dirs: { root: join(dir, 'root'), state, addresses, cgroupParent: `/scribe-bench-${basename(runDir)}-${own}` },
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

/** Clones from before there was NRI do not know its keys. */
const knowsNri = (before: string): boolean => existsSync(join(before, 'src/config/nri-keys.ts'));

const configOf = (name: RuntimeName, nri: NriMode, place: Place, around: Surroundings): string => {
  if (name === 'containerd') return containerdConfig(place, nri, around);
  // An earlier commit may not know the key.
  const handlers = ownConfig(name === 'scribe' ? around : { ...around, podsPerShim: 1 });
  const own = `${handlers}${metricsConfig(name, around.hasMetrics)}`;
  return name === 'scribe' || knowsNri(around.before ?? thisClone) ? `${scribeConfig(place, nri)}${own}` : own;
};

/**
 * Connects it, and resolves once it was told what there is. It prints into a file: whoever read its some hundred lines a
 * request from a pipe would take processor time that is nobody's but the benchmark's.
 */
const connectLogger = async (owner: Owner, place: Place): Promise<void> => {
  const printed = join(place.dir, 'logger.log');
  const argv = [await goProgram('nri-plugins/logger'), '-idx', '10', '-socket-path', nriPlaces(place).socket];
  await startProcess(owner, [...argv, '-log-file', printed]);
  const isTold = async () => (await readFile(printed, 'utf8').catch(() => '')).includes('Synchronize');
  await eventually('the plugin logger is told what there is', isTold, startTimeoutMs);
};

const metricsReader = (name: RuntimeName, { hasMetrics, netns }: Surroundings): Runtime['readMetrics'] => {
  const address = metricsAddresses[name];
  if (!hasMetrics || address === null) return null;
  return async () => (await fetchInside(netns, `http://${address}/metrics`)).text;
};

/**
 * Starts a runtime and resolves once it answers. It ends, with all it started, when its owner does. Unless told, NRI is on
 * and has no plugin, as it is by default in both.
 */
export const startRuntime = async (
  owner: Owner,
  name: RuntimeName,
  around: Surroundings,
  nri: NriMode = 'none',
): Promise<Runtime> => {
  const place = await makePlace(name, nri, around.dir);
  await writeFile(place.configPath, configOf(name, nri, place, around));
  // In a session of its own, as init starts it: the kernel shares processors out among sessions.
  const argv = [
    'setsid',
    ...insideMounts(around.mountNamespace),
    ...around.netns.inside(commandLine(name, place, around)),
  ];
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
    if (nri === 'logger') await connectLogger(owner, place);
    return {
      name,
      nri,
      socket: place.socket,
      dirs: place.dirs,
      version,
      pid: () => running().pid,
      readMetrics: metricsReader(name, around),
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
