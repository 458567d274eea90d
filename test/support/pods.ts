/** Pod and container configurations for tests, as a kubelet would send them; a test overrides what it is about. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  type ContainerConfig,
  type ContainerStatus,
  type DeepPartial,
  NamespaceMode,
  type PodSandboxConfig,
} from '../../src/wire/cri/api.ts';
import { type Owner, onCleanup } from './cleanup.ts';
import type { Daemon } from './daemon.ts';

/** A pod of this daemon: its cgroups are below the daemon's own parent, so that leftovers() finds them. */
export const podConfig = (
  daemon: Pick<Daemon, 'dirs'>,
  name: string,
  overrides: DeepPartial<PodSandboxConfig> = {},
): DeepPartial<PodSandboxConfig> => ({
  metadata: { name, namespace: 'default', uid: randomUUID(), attempt: 0 },
  hostname: name,
  ...overrides,
  linux: { cgroupParent: daemon.dirs.cgroupParent, ...overrides.linux },
});

/** What makes a pod one that can do without a pause task, and that most of kubelet's pods have. */
export const ownPids: DeepPartial<PodSandboxConfig> = {
  linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER } } },
};

/** A container that runs `command` in the image. */
export const containerConfig = (
  name: string,
  image: string,
  command: readonly string[],
  overrides: DeepPartial<ContainerConfig> = {},
): DeepPartial<ContainerConfig> => ({
  metadata: { name, attempt: 0 },
  image: { image, userSpecifiedImage: image },
  command: [...command],
  ...overrides,
});

/** Stops and removes a pod with all that is in it. */
export const removePod = async ({ cri }: Pick<Daemon, 'cri'>, podSandboxId: string): Promise<void> => {
  await cri.runtime.stopPodSandbox({ podSandboxId });
  await cri.runtime.removePodSandbox({ podSandboxId });
};

/** Runs a pod with one started container; resolves with both ids. Gone when its owner ends, if it has one. */
export const runPod = async (
  daemon: Daemon,
  name: string,
  image: string,
  command: readonly string[],
  overrides: { readonly pod?: DeepPartial<PodSandboxConfig>; readonly container?: DeepPartial<ContainerConfig> } = {},
  owner?: Owner,
): Promise<{ readonly podSandboxId: string; readonly containerId: string }> => {
  const sandboxConfig = podConfig(daemon, name, overrides.pod);
  const { runtime } = daemon.cri;
  const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
  if (owner !== undefined) onCleanup(owner, () => removePod(daemon, podSandboxId));
  const config = containerConfig('main', image, command, overrides.container);
  const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
  await runtime.startContainer({ containerId });
  return { podSandboxId, containerId };
};

/** The container's status; fails when the daemon gives none. */
export const statusOf = async ({ cri }: Pick<Daemon, 'cri'>, containerId: string): Promise<ContainerStatus> => {
  const { status } = await cri.runtime.containerStatus({ containerId });
  if (status === undefined) throw new Error(`ContainerStatus of ${containerId} has no status`);
  return status;
};

/** Asks again and again, bounded, until `check` gives something; for what the CRI offers no event for. */
export const eventually = async <T>(
  what: string,
  check: () => Promise<T | undefined | false>,
  timeoutMs = 10_000,
): Promise<T> => {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const result = await check();
    if (result !== undefined && result !== false) return result;
    if (performance.now() > deadlineMs) throw new Error(`${what}: not within ${timeoutMs} ms`);
    await sleep(20);
  }
};

/** Does `work` for each item, so many at once; results are in the order of the items. */
export const inParallel = async <T, R>(
  atOnce: number,
  items: readonly T[],
  work: (item: T, index: number) => Promise<R>,
): Promise<R[]> => {
  const results: R[] = [];
  const queue = [...items.entries()];
  const worker = async (): Promise<void> => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift())
      results[next[0]] = await work(next[1], next[0]);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  return results;
};

/** A shim whose pod has gone stays for a moment, where the daemon keeps some. */
export const keptShimsEnd = (daemon: Pick<Daemon, 'leftovers'>): Promise<true> =>
  eventually('the shims that were kept have ended', async () => (await daemon.leftovers()).shims.length === 0);
