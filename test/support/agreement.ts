/**
 * Whether what a daemon says is so: every pod and container it lists against the shims' own word, the processes, their
 * namespaces, mounts and cgroups; and everything of pods that is on this machine against what it lists.
 */
import { readFile, readlink, stat } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { dialShim } from '../../src/adapters/shim/process/live-shim.ts';
import { statusOfSandbox } from '../../src/adapters/shim/sandbox/sandbox-service.ts';
import { shimPaths } from '../../src/adapters/shim/paths.ts';
import { stateOf as taskState } from '../../src/adapters/shim/tasks/kill-and-delete.ts';
import type { TaskClient } from '../../src/adapters/shim/task-client.ts';
import { ContainerState, PodSandboxState } from '../../src/wire/cri/api.ts';
import { Status } from '../../src/wire/types/task/task.ts';
import { isClear } from '../../src/domain/deciding/step-states.ts';
import { pinPaths } from '../../src/domain/pod-sandbox/sandboxer.ts';
import { namespacePins } from '../../src/domain/oci/namespaces.ts';
import type { NodeState, PodSandbox } from '../../src/domain/model/state.ts';
import type { Daemon } from './daemon.ts';
import { exists } from '../../src/platform/linux/exists.ts';
import { stateOf } from './journal.ts';
import { mountsBelow } from './leftovers.ts';
import { liveTaskOf } from '../../src/domain/model/container-state.ts';

const shimTimeoutMs = 5_000;
const betweenLooksMs = 100;

interface Listed {
  readonly ready: ReadonlySet<string>;
  readonly sandboxes: ReadonlySet<string>;
  readonly containers: ReadonlyMap<string, ContainerState>;
}

const listed = async ({ cri }: Daemon): Promise<Listed> => {
  const [{ items }, { containers }] = await Promise.all([cri.runtime.listPodSandbox(), cri.runtime.listContainers()]);
  const ready = items.filter(({ state }) => state === PodSandboxState.SANDBOX_READY);
  return {
    ready: new Set(ready.map(({ id }) => id)),
    sandboxes: new Set(items.map(({ id }) => id)),
    containers: new Map(containers.map(({ id, state }) => [id, state])),
  };
};

/** The shim's word on a task: its process while it runs, null when it does not. */
const runningPid = async (daemon: Daemon, client: TaskClient, id: string): Promise<number | null> => {
  const state = await taskState({ paths: shimPaths(daemon.dirs.state) }, client, id, shimTimeoutMs);
  return state?.status === Status.RUNNING ? state.pid : null;
};

/** What is wrong with a task that is said to run with this process. */
const wrongWithProcess = async (
  what: string,
  pid: number,
  expected: { readonly cgroup: string; readonly netnsPath: string | null },
): Promise<string[]> => {
  const cgroups = await readFile(`/proc/${pid}/cgroup`, 'utf8').catch(() => null);
  if (cgroups === null) return [`${what} runs, but its process ${pid} does not`];
  const wrong: string[] = [];
  if (!cgroups.includes(expected.cgroup)) wrong.push(`${what} is not in the cgroup ${expected.cgroup}`);
  if (expected.netnsPath !== null) {
    const [own, pinned] = await Promise.all([
      readlink(`/proc/${pid}/ns/net`).catch(() => ''),
      stat(expected.netnsPath).then(
        ({ ino }) => `net:[${ino}]`,
        () => 'none',
      ),
    ]);
    if (own !== pinned) wrong.push(`${what} is in the network namespace ${own}, its pod's is ${pinned}`);
  }
  return wrong;
};

const wrongWithPod = async (
  daemon: Daemon,
  { ready, containers }: Listed,
  state: NodeState,
  sandbox: PodSandbox,
  mounts: ReadonlySet<string>,
): Promise<string[]> => {
  const { id, shim, network } = sandbox;
  const own = [...state.containers.values()].filter(({ podSandboxId }) => podSandboxId === id);
  const running = own.filter((container) => containers.get(container.id) === ContainerState.CONTAINER_RUNNING);
  const { sandboxer } = sandbox;
  if (shim === null || !(await exists(`/proc/${shim.pid}`))) {
    const held = ready.has(id) && sandboxer !== 'none' ? [id] : [];
    const said = [...held, ...running.map((container) => container.id)];
    return said.map((which) => `${which} is said to run without a shim`);
  }
  const client = await dialShim(shim, shimTimeoutMs).catch(() => null);
  if (client === null) return ready.has(id) && running.length > 0 ? [`the shim of ${id} does not answer`] : [];
  try {
    const wrong: string[] = [];
    const netnsPath = network?.netnsPath ?? null;
    const check = async (what: string, taskId: string, runs: boolean, pid: number | undefined): Promise<void> => {
      const told = await runningPid(daemon, client, taskId);
      if ((told !== null) !== runs)
        wrong.push(`${what} ${runs ? 'runs' : 'does not run'}, says scribe; its shim disagrees`);
      else if (told !== null && told !== pid) wrong.push(`${what} has process ${told}, not ${pid}`);
      else if (told !== null) {
        const cgroup = `${daemon.dirs.cgroupParent}/${taskId}`;
        wrong.push(...(await wrongWithProcess(what, told, { cgroup, netnsPath })));
      }
    };
    if (sandboxer === 'pause') await check(`pod ${id}`, id, ready.has(id), sandbox.task?.pid);
    if (sandboxer === 'shim') {
      const told = await statusOfSandbox(client, id, false, shimTimeoutMs);
      if ((told?.state === 'SANDBOX_READY') !== ready.has(id))
        wrong.push(`pod ${id} is ${told?.state ?? 'unknown'} to its shim; scribe disagrees`);
    }
    for (const container of own) {
      const runs = containers.get(container.id) === ContainerState.CONTAINER_RUNNING;
      await check(`container ${container.id}`, container.id, runs, liveTaskOf(container)?.pid);
      const rootfs = `${daemon.dirs.state}/bundles/${container.id}/rootfs`;
      if (runs && !mounts.has(rootfs)) wrong.push(`container ${container.id} has no root file system mounted`);
    }
    return wrong;
  } catch (error) {
    return [`the shim of ${id} does not tell: ${String(error)}`];
  } finally {
    client.close();
  }
};

/** What the shim that it has with others is started under; null: it has none such, or no longer. */
const sharedShimOf = ({ sharedShimId, steps }: PodSandbox): string | null =>
  isClear(steps.shim ?? 'none') ? null : (sharedShimId ?? null);

/** Pods that share a shim have one process, which is nobody else's, and are no more than may be. */
const wrongWithSharing = ({ sandboxes }: NodeState): string[] => {
  // A pod that let go of its shim still knows which it was, which others may have on.
  const pods = [...sandboxes.values()].filter(({ shim, steps }) => shim !== null && !isClear(steps.shim ?? 'none'));
  const wrong: string[] = [];
  for (const [id, sharing] of Map.groupBy(pods, sharedShimOf)) {
    if (id === null) continue;
    const pids = new Set(sharing.map(({ shim }) => shim?.pid));
    if (pids.size > 1) wrong.push(`the pods of the shim ${id} have ${pids.size} processes`);
    const others = pods.filter((pod) => sharedShimOf(pod) !== id && pids.has(pod.shim?.pid));
    wrong.push(...others.map((pod) => `pod ${pod.id} has the process of the shim ${id}, which is not its own`));
    const podsMax = Math.max(...sharing.map(({ handler }) => handler.podsPerShim ?? 1));
    if (sharing.length > podsMax) wrong.push(`the shim ${id} has ${sharing.length} pods, and may have ${podsMax}`);
  }
  return wrong;
};

/** Whatever names no pod or container that is listed. */
const orphans = async (daemon: Daemon, { sandboxes, containers }: Listed, state: NodeState): Promise<string[]> => {
  const { links, addresses, ...found } = await daemon.leftovers();
  const shims = [...state.sandboxes.values()].flatMap((pod) => pod.shim?.origin?.id ?? sharedShimOf(pod) ?? []);
  const ids = [...sandboxes, ...containers.keys(), ...shims];
  // A chain is named by a hash; the rule that leads to it has the id.
  const known = (text: string): boolean => text.startsWith('-N ') || ids.some((id) => text.includes(id));
  const wrong = Object.entries(found).flatMap(([kind, texts]: [string, readonly string[]]) =>
    texts.filter((text) => !known(text)).map((text) => `nobody's ${kind}: ${text}`),
  );
  for (const path of addresses) {
    const holder = await readFile(path, 'utf8').catch(() => '');
    if (holder !== '' && !known(holder)) wrong.push(`nobody's address: ${path} of ${holder}`);
  }
  if (links.length > addresses.length) wrong.push(`${links.length} veth ends for ${addresses.length} addresses`);
  return wrong;
};

/**
 * Everything in which the daemon and the machine disagree at this moment; nothing when all is as it says. Calls that
 * are under way are disagreements of a moment.
 */
const disagreements = async (daemon: Daemon): Promise<string[]> => {
  const said = await listed(daemon);
  const state = stateOf(daemon);
  const mounts = new Set((await mountsBelow([daemon.dirs.state])).map(({ path }) => path));
  const pods = [...said.sandboxes].map(async (id) => {
    const sandbox = state.sandboxes.get(id);
    return sandbox === undefined ? [] : wrongWithPod(daemon, said, state, sandbox, mounts);
  });
  const missing = [...said.ready].flatMap((id) => {
    const sandbox = state.sandboxes.get(id);
    if (sandbox === undefined) return [];
    const shm = `${daemon.dirs.state}/sandboxes/${id}/shm`;
    const { facts } = state;
    const pins =
      facts !== null && sandbox.sandboxer === 'none' ? pinPaths(namespacePins(facts, id, sandbox.config)) : [];
    const expected = [shm, ...(sandbox.network === null ? [] : [sandbox.network.netnsPath]), ...pins];
    return expected.filter((path) => !mounts.has(path)).map((path) => `pod ${id} lacks the mount ${path}`);
  });
  const sharing = wrongWithSharing(state);
  return [...(await Promise.all(pods)).flat(), ...missing, ...sharing, ...(await orphans(daemon, said, state))];
};

/** Waits, bounded, until nothing is left to disagree about; fails with what is. */
export const agreement = async (daemon: Daemon, timeoutMs = 20_000): Promise<void> => {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    const wrong = await disagreements(daemon);
    if (wrong.length === 0) return;
    if (performance.now() > deadlineMs) throw new Error(`scribe and the machine disagree:\n${wrong.join('\n')}`);
    await sleep(betweenLooksMs);
  }
};
