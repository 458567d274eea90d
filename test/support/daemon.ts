/**
 * A real daemon for tests: `bin/scribe serve` in a network namespace of its own, with root, state, CNI configuration
 * and parent cgroup of its own. When its owner ends, its pods are removed, the daemon is stopped and whatever a
 * failed test left behind is taken away.
 */
import { randomBytes } from 'node:crypto';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { bridgeConfList, cniBinDir } from '../../scripts/lib/cni.ts';
import { type CriClient, criClient } from '../../scripts/lib/cri-client.ts';
import { waitServing } from '../../scripts/lib/serving.ts';
import { type Owner, onCleanup } from './cleanup.ts';
import {
  type DaemonDirs,
  type Leftovers,
  leftovers,
  mountsBelow,
  processes,
  processesInCgroups,
  processesOf,
  removeCgroups,
} from './leftovers.ts';
import { insideMounts } from './mount-namespace.ts';
import { type Netns, netnsOf } from './netns.ts';
import { type BackgroundProcess, type CommandResult, run, startProcess } from './process.ts';
import { tempDir, tempDirInMemory } from './temp-dir.ts';

const scribe = join(import.meta.dirname, '../../bin/scribe');
const startTimeoutMs = 20_000;
const removalTimeoutMs = 15_000;

export interface KeptShims {
  readonly max: number;
  readonly for: string;
}

/** As a daemon has it that nobody has told anything, but for a shorter time. */
export const shimsKept: KeptShims = { max: 8, for: '1s' };

export interface DaemonOptions {
  /** A namespace to share with a registry or clients; one of the daemon's own otherwise. */
  readonly netns?: Netns;
  /** A mount namespace that the daemon, its shims and scribe commands run in (see mount-namespace.ts). */
  readonly mountNamespace?: string;
  /** Text of the configuration file (TOML); it is empty otherwise. */
  readonly config?: string;
  /** CNI configuration by file name, instead of the one bridge network. */
  readonly confLists?: Readonly<Record<string, string>>;
  /** Directory of hosts.toml files (see registry.ts). */
  readonly registryConfigDir?: string;
  /** Which shims are kept for the next pods; none, so that a test sees what one pod leaves. */
  readonly keptShims?: KeptShims;
  /** OCI runtime of the default handler. */
  readonly runtime?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Further arguments of `scribe serve`. */
  readonly args?: readonly string[];
  /** Runs before the first start, with the directories made: to plant what the daemon shall find. */
  readonly prepare?: (dirs: DaemonDirs) => Promise<void>;
  /** Do not start; the test calls start() itself. */
  readonly stopped?: boolean;
}

export interface Daemon {
  readonly dirs: DaemonDirs;
  readonly netns: Netns;
  readonly socket: string;
  readonly cniConfDir: string;
  /** Connected to the socket; reconnects when the daemon starts again. */
  readonly cri: CriClient;
  /** Process id of the running daemon. */
  readonly pid: () => number;
  /** Everything the daemon has logged since its last start. */
  readonly log: () => string;
  /** Starts it (again), resolves once it serves. */
  readonly start: () => Promise<void>;
  /** Starts it (again), resolves as soon as its process runs: for those who measure. */
  readonly launch: () => Promise<void>;
  /** Replaces the configuration file that it was given, for the next start. */
  readonly configure: (text: string) => Promise<void>;
  /** SIGKILL, and waits until it is gone. */
  readonly kill: () => Promise<void>;
  /** SIGTERM, and waits until it is gone; resolves with the exit status or signal. */
  readonly stop: () => Promise<number | string>;
  /** Settles when the running daemon ends. */
  readonly ended: () => Promise<number | string>;
  /** Runs a scribe command in the daemon's namespace: scribe('history', '--root', dirs.root, '--json'). */
  readonly scribe: (...args: readonly string[]) => Promise<CommandResult>;
  readonly leftovers: () => Promise<Leftovers>;
}

/** Stops and removes every pod sandbox, as far as the daemon will. */
export const removeAllPods = async (cri: CriClient): Promise<void> => {
  const { items } = await cri.runtime.listPodSandbox();
  await Promise.all(
    items.map(async ({ id }) => {
      await cri.runtime.stopPodSandbox({ podSandboxId: id });
      await cri.runtime.removePodSandbox({ podSandboxId: id });
    }),
  );
};

const killAll = (pids: readonly number[]): void => {
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It went with another one.
    }
  }
};

/** Shims and helpers of the directories, and everything that descends from them. */
const processTree = async (dirs: DaemonDirs): Promise<number[]> => {
  const doomed = new Set((await processesOf(dirs)).map(({ pid }) => pid));
  for (const { pid, parent } of await processes()) if (doomed.has(parent)) doomed.add(pid);
  return [...doomed];
};

/** Takes away what a test that failed left behind; finds nothing to do after one that passed. */
export const sweep = async (dirs: DaemonDirs): Promise<void> => {
  killAll(await processTree(dirs));
  for (let tries = 0; tries < 50; tries += 1) {
    const pids = await processesInCgroups(dirs.cgroupParent);
    if (pids.length === 0) break;
    killAll(pids);
    await sleep(20);
  }
  for (const { path } of (await mountsBelow([dirs.root, dirs.state])).reverse()) {
    await run(['umount', '--lazy', path]);
  }
  await removeCgroups(dirs.cgroupParent);
};

/** On as by default, and apart from the node's own plugins and from other tests' daemons. */
const ownNri = (dir: string): string =>
  `[nri]\nsocket = "${dir}/nri/nri.sock"\nplugin_dir = "${dir}/nri/plugins"\nconfig_dir = "${dir}/nri/conf.d"\n`;

/** Makes the directories and the CNI configuration, and starts the daemon. */
export const startDaemon = async (owner: Owner, options: DaemonOptions = {}): Promise<Daemon> => {
  const netns = options.netns ?? (await netnsOf(owner));
  const [dir, memory] = await Promise.all([tempDir(owner), tempDirInMemory(owner)]);
  // Root of a pod with users of its own is somebody else here, and has to reach the pod's root file system.
  for (const path of [dir, memory]) await chmod(path, 0o711);
  const name = `scribe-test-${randomBytes(4).toString('hex')}`;
  const dirs: DaemonDirs = {
    root: join(dir, 'root'),
    state: join(memory, 'state'),
    cgroupParent: `/${name}`,
    addresses: join(dir, 'addresses'),
  };
  const socket = join(dirs.state, 'scribe.sock');
  const cniConfDir = join(dir, 'cni');
  const configPath = join(dir, 'config.toml');
  await mkdir(dirs.root, { mode: 0o700 });
  for (const path of [dirs.state, cniConfDir]) await mkdir(path, { mode: 0o711 });
  const bridge = bridgeConfList({
    name,
    bridge: `sc-${name.slice(-8)}`,
    subnet: '10.213.0.0/16',
    dataDir: dirs.addresses,
    ipMasq: false,
  });
  for (const [file, text] of Object.entries(options.confLists ?? { '10-bridge.conflist': bridge })) {
    await writeFile(join(cniConfDir, file), text);
  }
  await writeFile(configPath, options.config ?? '');
  // The cgroups that tests give their pods are no slices, whatever runs on this machine.
  await mkdir(join(dir, 'conf.d'));
  const kept = options.keptShims ?? { max: 0, for: '1s' };
  const nri = options.config?.includes('[nri') === true ? '' : ownNri(dir);
  await writeFile(
    join(dir, 'conf.d', 'tests.toml'),
    `[runtime]\ncgroup_driver = "cgroupfs"\nkept_shims = ${kept.max}\nkept_shims_for = "${kept.for}"\n${nri}`,
  );
  await options.prepare?.(dirs);

  const flags: readonly (readonly [string, string | undefined])[] = [
    ['--config', configPath],
    ['--socket', socket],
    ['--root', dirs.root],
    ['--state', dirs.state],
    ['--cni-conf-dir', cniConfDir],
    ['--cni-bin-dir', await cniBinDir()],
    ['--registry-config-dir', options.registryConfigDir],
    ['--runtime', options.runtime],
  ];
  const given = flags.flatMap(([flag, value]) => (value === undefined ? [] : [flag, value]));
  const mounts = insideMounts(options.mountNamespace);
  const inside = (args: readonly string[]): string[] => netns.inside([...mounts, scribe, ...args]);
  const argv = inside(['serve', ...given, ...(options.args ?? [])]);
  const cri = criClient(socket);
  onCleanup(owner, () => cri.close());
  onCleanup(owner, () => sweep(dirs));

  let daemon: BackgroundProcess | undefined;
  const running = (): BackgroundProcess => {
    if (daemon === undefined) throw new Error('the daemon has not been started');
    return daemon;
  };
  const launch = async (): Promise<void> => {
    const started = await startProcess(owner, argv, { env: { ...process.env, ...options.env } });
    daemon = started;
    onCleanup(owner, async () => {
      if (started.isAlive())
        await Promise.race([
          removeAllPods(cri).catch(() => undefined),
          sleep(removalTimeoutMs, undefined, { ref: false }),
        ]);
    });
  };
  const start = async (): Promise<void> => {
    await launch();
    const started = running();
    const ended = started.ended.then((how) => new Error(`the daemon ended (${how}): ${started.output()}`));
    await waitServing(cri, ended, startTimeoutMs).catch((error: unknown) => {
      throw new Error(`the daemon does not serve:\n${started.output()}`, { cause: error });
    });
  };
  const kill = async (): Promise<void> => {
    running().kill('SIGKILL');
    await running().ended;
  };
  const stop = async (): Promise<number | string> => {
    await running().stop();
    return running().ended;
  };
  if (options.stopped !== true) await start();
  return {
    dirs,
    netns,
    socket,
    cniConfDir,
    cri,
    pid: () => running().pid,
    log: () => running().output(),
    start,
    launch,
    configure: (text) => writeFile(configPath, text),
    kill,
    stop,
    ended: () => running().ended,
    scribe: (...args) => run(inside(args)),
    leftovers: () => leftovers(dirs, netns),
  };
};
