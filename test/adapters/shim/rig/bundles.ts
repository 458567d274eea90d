/** OCI bundles made on the spot from the host's static busybox. */
import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const busybox = 'bin/busybox';
const applets = [
  'sh',
  'sleep',
  'echo',
  'cat',
  'true',
  'false',
  'env',
  'yes',
  'head',
  'dd',
  'id',
  'kill',
  'seq',
  'tr',
  'setsid',
];

/** Makes a root file system with busybox in it. Needs the package busybox-static. */
export const makeRootfs = async (dir: string): Promise<void> => {
  for (const name of ['bin', 'proc', 'dev', 'sys', 'tmp']) await mkdir(join(dir, name), { recursive: true });
  await copyFile('/usr/bin/busybox', join(dir, busybox)).catch(() => copyFile('/bin/busybox', join(dir, busybox)));
  await chmod(join(dir, busybox), 0o755);
  for (const applet of applets) await symlink('busybox', join(dir, 'bin', applet));
};

type Hooks = readonly { readonly path: string; readonly args: readonly string[] }[];

export interface BundleOptions {
  readonly args: readonly string[];
  readonly env?: readonly string[];
  readonly terminal?: boolean;
  readonly memoryLimitBytes?: number;
  /** Commands that the OCI runtime runs once the container runs. */
  readonly poststart?: Hooks;
  /** Commands that its process runs once it was let go, before it becomes the container's. */
  readonly startContainer?: Hooks;
}

export interface BundlePlace {
  readonly dir: string;
  readonly id: string;
  readonly podSandboxId: string;
  /** Absolute path in the cgroup hierarchies under which the container gets its own. */
  readonly cgroupParent: string;
}

const capabilities = ['CAP_CHOWN', 'CAP_KILL', 'CAP_SETUID', 'CAP_SETGID'];

const specOf = ({ id, podSandboxId, cgroupParent }: BundlePlace, options: BundleOptions): unknown => ({
  ociVersion: '1.0.2',
  hostname: 'test',
  annotations: { 'io.kubernetes.cri.sandbox-id': podSandboxId },
  root: { path: 'rootfs', readonly: false },
  process: {
    terminal: options.terminal ?? false,
    user: { uid: 0, gid: 0 },
    args: options.args,
    env: ['PATH=/bin', ...(options.env ?? [])],
    cwd: '/',
    capabilities: { bounding: capabilities, effective: capabilities, permitted: capabilities },
    noNewPrivileges: true,
  },
  mounts: [
    { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
    { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=65536k'] },
    {
      destination: '/dev/pts',
      type: 'devpts',
      source: 'devpts',
      options: ['nosuid', 'noexec', 'newinstance', 'ptmxmode=0666'],
    },
  ],
  hooks: { poststart: options.poststart, startContainer: options.startContainer },
  linux: {
    cgroupsPath: `${cgroupParent}/${id}`,
    namespaces: ['pid', 'mount', 'ipc', 'uts', 'network'].map((type) => ({ type })),
    resources: {
      devices: [{ allow: true, access: 'rwm' }],
      ...(options.memoryLimitBytes === undefined ? {} : { memory: { limit: options.memoryLimitBytes } }),
    },
  },
});

/** Writes a bundle (or writes its spec anew) and returns its path. */
export const makeBundle = async (place: BundlePlace, options: BundleOptions): Promise<string> => {
  const path = join(place.dir, place.id);
  await mkdir(join(path, 'rootfs'), { recursive: true, mode: 0o700 });
  await writeFile(join(path, 'config.json'), JSON.stringify(specOf(place, options)), { mode: 0o600 });
  return path;
};
