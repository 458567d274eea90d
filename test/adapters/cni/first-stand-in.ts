/**
 * Stands in for the daemon where a test has to kill one: gets ready to attach a pod, says on its output who its spawner
 * and the plugin that waits are, and waits to be killed.
 */
import type { PodNetwork } from '../../../src/domain/model/cni.ts';
import { createCniAdapter } from '../../../src/adapters/cni/adapter.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';

export interface StandInOptions {
  readonly dir: string;
  readonly binDir: string;
  readonly network: PodNetwork;
}

export interface StandInReport {
  readonly spawnerPid: number;
  readonly pluginPid: number;
}

const { dir, binDir, network } = JSON.parse(process.argv[2] ?? '') as StandInOptions;
const spawner = await startSpawner({ lockPath: `${dir}/stand-in.lock`, startTimeoutMs: 10_000 });
const report = (pluginPid: number): void => {
  const said: StandInReport = { spawnerPid: spawner.pid, pluginPid };
  process.stdout.write(`${JSON.stringify(said)}\n`);
};
const adapter = createCniAdapter({
  files: pooledFiles,
  spawner: { run: (request) => spawner.run({ ...request, onStarted: report }) },
  confDir: `${dir}/net.d`,
  binDirs: [binDir],
  stateDir: `${dir}/state`,
  pluginTimeoutMs: 10_000,
  ipPreference: 'ipv4',
  maxConfFiles: 8,
  observe: () => Promise.resolve(),
  log: { info: () => undefined, warn: () => undefined },
});
await adapter.start();
const effect = { kind: 'AttachNetwork', podSandboxId: network.podSandboxId, network } as const;
adapter.effects.AttachNetwork.getReady?.(effect, new AbortController().signal);
