/**
 * A real kubelet (test/support/kubelet) beside a daemon, without an API server: it runs the pods whose manifests lie in its
 * directory. It is kept from changing the machine: what it tunes in /proc/sys and writes below /var/log are files of a
 * mount namespace of its own.
 */
import { copyFile, mkdir, readdir, readFile, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Owner } from './cleanup.ts';
import type { Daemon } from './daemon.ts';
import { goProgram } from './go-program.ts';
import { mountsBelow } from './leftovers.ts';
import { fetchInside } from './netns.ts';
import { eventually } from './pods.ts';
import { type BackgroundProcess, startProcess } from './process.ts';
import { tempDir } from './temp-dir.ts';

const httpPort = 10_255;
const httpsPort = 10_250;
const startTimeoutMs = 60_000;
/** What kubelet would set. */
const tunables = [
  'vm/overcommit_memory',
  'vm/panic_on_oom',
  'kernel/panic',
  'kernel/panic_on_oops',
  'kernel/keys/root_maxkeys',
  'kernel/keys/root_maxbytes',
];

/** What the tests look at of the Kubernetes API's Pod. */
export interface KubeletPod {
  readonly metadata: { readonly name: string };
  readonly status: {
    readonly phase: string;
    readonly podIP?: string;
    readonly initContainerStatuses?: readonly KubeletContainerStatus[];
    readonly containerStatuses?: readonly KubeletContainerStatus[];
  };
}

interface KubeletContainerState {
  readonly running?: object;
  readonly terminated?: { readonly exitCode: number; readonly message?: string };
}

export interface KubeletContainerStatus {
  readonly name: string;
  readonly ready: boolean;
  readonly restartCount: number;
  readonly containerID?: string;
  readonly state?: KubeletContainerState;
  readonly lastState?: KubeletContainerState;
}

export interface Kubelet {
  readonly apply: (name: string, manifest: object) => Promise<void>;
  readonly remove: (name: string) => Promise<void>;
  /** null while it does not know the pod. */
  readonly pod: (name: string) => Promise<KubeletPod | null>;
  readonly logs: (pod: string, container: string) => Promise<string>;
  readonly exec: (pod: string, container: string, command: string) => Promise<string>;
  /** Its metrics of containers, which it asks the runtime for. */
  readonly containerMetrics: () => Promise<string>;
  readonly output: () => string;
}

const nodeName = 'node1';
const defaultNamespace = 'default';

export interface KubeletOptions {
  /** How long it waits for an answer of the runtime, as "2m0s"; its default is two minutes. */
  readonly runtimeRequestTimeout?: string;
  /** Its metrics of containers are cAdvisor's, which looks at control groups and asks whose they are, and not the runtime's. */
  readonly metricsOfCadvisor?: boolean;
}

const configOf = (
  dir: string,
  { socket, dirs }: Daemon,
  { metricsOfCadvisor = false, ...options }: KubeletOptions,
): object => ({
  apiVersion: 'kubelet.config.k8s.io/v1beta1',
  kind: 'KubeletConfiguration',
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: 'AlwaysAllow' },
  address: '127.0.0.1',
  port: httpsPort,
  readOnlyPort: httpPort,
  healthzPort: 0,
  staticPodPath: join(dir, 'manifests'),
  podLogsDir: join(dir, 'logs'),
  containerRuntimeEndpoint: `unix://${socket}`,
  cgroupDriver: 'cgroupfs',
  cgroupRoot: dirs.cgroupParent,
  enforceNodeAllocatable: [],
  failSwapOn: false,
  failCgroupV1: false,
  makeIPTablesUtilChains: false,
  localStorageCapacityIsolation: false,
  registerNode: false,
  fileCheckFrequency: '500ms',
  syncFrequency: '2s',
  crashLoopBackOff: { maxContainerRestartPeriod: '2s' },
  ...options,
  featureGates: {
    PodAndContainerStatsFromCRI: !metricsOfCadvisor,
    EventedPLEG: true,
    KubeletCrashLoopBackOffMax: true,
  },
});

/** kubelet wants its root cgroup to be there, in each hierarchy. */
const makeCgroups = async (path: string): Promise<void> => {
  for (const { path: root, type } of await mountsBelow(['/sys/fs/cgroup'])) {
    if (!type.startsWith('cgroup')) continue;
    const directory = join(root, path);
    await mkdir(directory, { recursive: true });
    if (type === 'cgroup2' || !(await readdir(directory)).includes('cpuset.cpus')) continue;
    for (const name of ['cpuset.cpus', 'cpuset.mems']) await copyFile(join(root, name), join(directory, name));
  }
};

/** The commands that put files of the directory in place of what kubelet writes to on the machine. */
const ownPlaces = async (dir: string): Promise<string> => {
  const lines = ['mount --make-rprivate /proc', `mount --bind ${join(dir, 'var-log')} /var/log`];
  await mkdir(join(dir, 'var-log'));
  for (const name of tunables) {
    const file = join(dir, name.replaceAll('/', '-'));
    await writeFile(file, await readFile(join('/proc/sys', name)));
    lines.push(`mount --bind ${file} /proc/sys/${name}`);
  }
  return lines.join(' && ');
};

/** Starts it in the daemon's network; it is gone, and its cgroups are left to the daemon's, when its owner ends. */
export const startKubelet = async (owner: Owner, daemon: Daemon, options: KubeletOptions = {}): Promise<Kubelet> => {
  const dir = await tempDir(owner);
  // By its own name, as a node has it.
  const program = join(dir, 'kubelet');
  await symlink(await goProgram('kubelet'), program);
  await mkdir(join(dir, 'manifests'));
  await writeFile(join(dir, 'config.json'), JSON.stringify(configOf(dir, daemon, options)));
  await makeCgroups(daemon.dirs.cgroupParent);
  const flags = [
    `--config=${join(dir, 'config.json')}`,
    `--root-dir=${join(dir, 'root')}`,
    `--cert-dir=${join(dir, 'pki')}`,
    `--hostname-override=${nodeName}`,
    `--containerd=${daemon.socket}`,
  ];
  const script = `${await ownPlaces(dir)} && exec ${program} ${flags.join(' ')}`;
  const argv = daemon.netns.inside(['unshare', '--mount', '--propagation', 'unchanged', 'sh', '-c', script]);
  const kubelet: BackgroundProcess = await startProcess(owner, argv);
  const ask = async (path: string, port = httpPort, method = 'GET'): Promise<string> => {
    const url = `${port === httpsPort ? 'https' : 'http'}://127.0.0.1:${port}${path}`;
    const { status, text } = await fetchInside(daemon.netns, url, method);
    if (status !== 200) throw new Error(`kubelet answers ${method} ${path} with ${status}: ${text}`);
    return text;
  };
  const isUp = (): Promise<boolean> =>
    ask('/healthz').then(
      () => true,
      () => {
        if (kubelet.isAlive()) return false;
        throw new Error(`kubelet has ended:\n${kubelet.output()}`);
      },
    );
  await eventually('kubelet answers', isUp, startTimeoutMs);
  const manifest = (name: string): string => join(dir, 'manifests', `${name}.json`);
  const inPod = (pod: string, container: string): string => `${defaultNamespace}/${pod}-${nodeName}/${container}`;
  return {
    apply: async (name, spec) => {
      // It passes over names with a dot in front, and must not see half of a file.
      const unseen = manifest(`.${name}`);
      await writeFile(unseen, JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name }, ...spec }));
      await rename(unseen, manifest(name));
    },
    remove: (name) => rm(manifest(name)),
    pod: async (name) => {
      const { items } = JSON.parse(await ask('/pods')) as { readonly items: readonly KubeletPod[] | null };
      return items?.find(({ metadata }) => metadata.name === `${name}-${nodeName}`) ?? null;
    },
    logs: (pod, container) => ask(`/containerLogs/${inPod(pod, container)}`, httpsPort),
    exec: (pod, container, command) =>
      ask(`/run/${inPod(pod, container)}?cmd=${encodeURIComponent(command)}`, httpsPort, 'POST'),
    containerMetrics: () => ask('/metrics/cadvisor'),
    output: kubelet.output,
  };
};
