/**
 * A node of its own for tests of the CNI adapter: a network namespace that plays the host, namespaces for pods in
 * it, a temporary directory for everything files are written to, and plugins that are shell scripts. All of it goes
 * when the test ends. Plugins run through the real spawner, inside the host's namespace.
 */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, type TestContext } from 'node:test';
import { promisify } from 'node:util';
import { type CniAdapter, type CniAdapterOptions, createCniAdapter } from '../../../src/adapters/cni/adapter.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import type { Spawner } from '../../../src/platform/spawner/types.ts';
import type { CniConfList, PodNetwork } from '../../../src/domain/model/cni.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import type { EffectContext } from '../../../src/engine/ports.ts';
import { findIn } from '../../../src/platform/linux/find-program.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';

const run = promisify(execFile);

/** Where the reference plugins are: Debian's directory, or another one for another version of them. */
export const PLUGIN_DIR = process.env.CNI_PLUGIN_DIR ?? '/usr/lib/cni';

type Run = Pick<Spawner, 'run'>;

/** One spawner serves all tests of a file. */
let shared: { readonly dir: string; readonly spawner: Promise<Spawner> } | null = null;

const sharedSpawner = async (): Promise<Spawner> => {
  if (shared === null) {
    const dir = mkdtempSync(join(tmpdir(), 'scribe-cni-spawner-'));
    shared = { dir, spawner: startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 20_000 }) };
  }
  return shared.spawner;
};

after(async () => {
  if (shared === null) return;
  await (await shared.spawner).close();
  await rm(shared.dir, { recursive: true, force: true });
});

/** How long each plugin took since it was given its input, in the order they ended. */
export interface TimedRun {
  readonly command: string;
  readonly tookMs: number;
}

export interface Node {
  readonly dir: string;
  readonly binDir: string;
  readonly hostNetns: string;
  readonly spawner: Run;
  readonly runs: TimedRun[];
  readonly makePodNetns: () => Promise<string>;
  readonly removePodNetns: (path: string) => Promise<void>;
  /** Runs a command inside the host's namespace and gives its stdout. */
  readonly onHost: (command: string, ...args: string[]) => Promise<string>;
  /** Makes a plugin of a shell script; it finds its own directory in $D. */
  readonly addPlugin: (type: string, script: string) => Promise<void>;
  /** What plugins made by addPlugin with `${record}` in their script were told, in order. */
  readonly calls: () => Promise<RecordedCall[]>;
  readonly adapter: (options?: Partial<CniAdapterOptions>) => CniAdapter;
}

export interface RecordedCall {
  readonly command: string;
  readonly plugin: string;
  readonly env: Readonly<Record<string, string>>;
  readonly request: { readonly [key: string]: unknown };
}

/** The start of a script that writes down what it is told, and keeps its stdin in $STDIN. */
export const record = `
STDIN="$(cat)"
mkdir -p "$D/calls"
n=$(printf %03d "$(ls "$D/calls" | wc -l)")
mkdir "$D/calls/$n"
printf %s "$CNI_COMMAND" > "$D/calls/$n/command"
printf %s "$(basename "$0")" > "$D/calls/$n/plugin"
printf %s "$STDIN" > "$D/calls/$n/request"
env -0 > "$D/calls/$n/env"
`;

/** The end of a script: succeeds, with a result that has one address. */
export const succeed = `
[ "$CNI_COMMAND" = ADD ] || exit 0
echo '{"cniVersion":"1.0.0","interfaces":[{"name":"eth0","sandbox":"x"}],"ips":[{"address":"10.1.2.3/24","interface":0}]}'
`;

const requireRoot = (): void => {
  assert.equal(process.getuid?.(), 0, 'this test makes network namespaces: run it as root');
};

export const makeNode = async (t: TestContext): Promise<Node> => {
  requireRoot();
  const dir = await mkdtemp(join(tmpdir(), 'scribe-cni-'));
  const binDir = join(dir, 'bin');
  await mkdir(binDir);
  const prefix = `scribe-cni-${randomBytes(4).toString('hex')}`;
  const netnsPaths = new Set<string>();
  const adapters: CniAdapter[] = [];
  t.after(async () => {
    for (const adapter of adapters) adapter.close();
    for (const path of netnsPaths) await run('ip', ['netns', 'del', path.slice('/run/netns/'.length)]);
    await rm(dir, { recursive: true, force: true });
  });

  const makeNetns = async (name: string): Promise<string> => {
    await run('ip', ['netns', 'add', name]);
    const path = `/run/netns/${name}`;
    netnsPaths.add(path);
    await run('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
    return path;
  };
  const hostNetns = await makeNetns(`${prefix}-host`);
  const inHost = `--net=${hostNetns}`;
  const runs: TimedRun[] = [];
  const real = await sharedSpawner();
  const spawner: Run = {
    run: async (request) => {
      let startedMs = performance.now();
      const begin = (): void => void (startedMs = performance.now());
      request.input?.then(begin, begin);
      try {
        const { directories = [], ...asked } = request;
        const path = await findIn(request.command, directories);
        if (path === null) return await real.run(request);
        return await real.run({ ...asked, command: 'nsenter', args: [inHost, path, ...request.args] });
      } finally {
        runs.push({ command: request.command, tookMs: performance.now() - startedMs });
      }
    },
  };

  let pods = 0;
  return {
    dir,
    binDir,
    hostNetns,
    spawner,
    runs,
    makePodNetns: () => makeNetns(`${prefix}-${++pods}`),
    removePodNetns: async (path) => {
      await run('ip', ['netns', 'del', path.slice('/run/netns/'.length)]);
      netnsPaths.delete(path);
    },
    onHost: async (command, ...args) => (await run('nsenter', [inHost, command, ...args])).stdout,
    addPlugin: async (type, script) => {
      const path = join(binDir, type);
      await writeFile(path, `#!/bin/sh\nD='${dir}'\n${script}`);
      await chmod(path, 0o755);
    },
    calls: async () => {
      const callsDir = join(dir, 'calls');
      const names: string[] = await readdir(callsDir).catch(() => []);
      return Promise.all(
        names.sort().map(async (name) => {
          const file = (part: string): Promise<string> => readFile(join(callsDir, name, part), 'utf8');
          const pairs = (await file('env')).split('\0').filter((pair) => pair.includes('='));
          const env = pairs.map(
            (pair) => [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const,
          );
          const request = JSON.parse(await file('request')) as RecordedCall['request'];
          return {
            command: await file('command'),
            plugin: await file('plugin'),
            env: Object.fromEntries(env),
            request,
          };
        }),
      );
    },
    adapter: (options = {}) => {
      const adapter = createCniAdapter({
        files: pooledFiles,
        spawner,
        confDir: join(dir, 'net.d'),
        binDirs: [binDir, PLUGIN_DIR],
        stateDir: join(dir, 'state'),
        pluginTimeoutMs: 10_000,
        ipPreference: 'ipv4',
        maxConfFiles: 8,
        observe: () => Promise.resolve(),
        log: { info: () => undefined, warn: () => undefined },
        ...options,
      });
      adapters.push(adapter);
      return adapter;
    },
  };
};

export const context = (signal: AbortSignal = new AbortController().signal): EffectContext => ({
  signal,
  attach: () => undefined,
});

export const podNetwork = (confList: CniConfList, netnsPath: string, over: Partial<PodNetwork> = {}): PodNetwork => ({
  podSandboxId: randomBytes(32).toString('hex'),
  netnsPath,
  ifName: 'eth0',
  confList,
  name: 'web-0',
  namespace: 'shop',
  uid: '7f0e3c1e-0000-4000-8000-000000000001',
  portMappings: [],
  podAnnotations: {},
  ...over,
});

export const attach = (adapter: CniAdapter, network: PodNetwork, signal?: AbortSignal) =>
  adapter.effects.AttachNetwork(
    { kind: 'AttachNetwork', podSandboxId: network.podSandboxId, network },
    context(signal),
  );

export const detach = (adapter: CniAdapter, network: PodNetwork, result: unknown) =>
  adapter.effects.DetachNetwork(
    { kind: 'DetachNetwork', podSandboxId: network.podSandboxId, network, result },
    context(),
  );

/** The failure that `promise` rejects with; anything else fails the test. */
export const failureOf = async (promise: Promise<unknown>) => {
  try {
    await promise;
  } catch (error) {
    if (error instanceof FailureError) return error.failure;
    throw error;
  }
  throw new assert.AssertionError({ message: 'it should have failed' });
};

/** The chain most nodes have: a bridge with masquerade and host-local addresses, then portmap. */
export const bridgeChain = (node: Node, ranges: readonly string[]): CniConfList => ({
  cniVersion: '1.0.0',
  name: 'testnet',
  plugins: [
    {
      type: 'bridge',
      bridge: 'cnitest0',
      isGateway: true,
      ipMasq: true,
      ipam: {
        type: 'host-local',
        dataDir: join(node.dir, 'ipam'),
        ranges: ranges.map((subnet) => [{ subnet }]),
        routes: [{ dst: '0.0.0.0/0' }],
      },
    },
    { type: 'portmap', capabilities: { portMappings: true }, snat: true },
  ],
});

/** Addresses that host-local has given out and not got back. */
export const leasedIps = async (node: Node): Promise<string[]> => {
  const names: string[] = await readdir(join(node.dir, 'ipam', 'testnet')).catch(() => []);
  return names.filter((name) => /^[0-9]/.test(name) || name.includes(':'));
};
