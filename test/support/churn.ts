/**
 * Clients that run pods and take them down again, all the time, against a daemon that is killed under them: they repeat
 * what was interrupted, as kubelet does, and now and then forget what they began. They hold the daemon to its word:
 * what it has answered stays so.
 */
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import { ContainerState, type DeepPartial, NamespaceMode, type PodSandboxConfig } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import type { Daemon } from './daemon.ts';
import { containerConfig, eventually, podConfig, statusOf } from './pods.ts';

/** What a client may get that repeats a call while the daemon ends, starts, or undoes what it left. */
const passing: readonly number[] = [
  GrpcCode.UNAVAILABLE,
  GrpcCode.CANCELLED,
  GrpcCode.INTERNAL,
  GrpcCode.DEADLINE_EXCEEDED,
  GrpcCode.ALREADY_EXISTS,
];
const patienceMs = 60_000;
const betweenTriesMs = 30;
const callTimeoutMs = 20_000;

export interface Churn {
  /** Calls wait from now on; resolves when none is under way. */
  readonly pause: () => Promise<void>;
  readonly resume: () => void;
  /** Lets the clients finish what they are at; rejects with the first broken promise. */
  readonly stop: () => Promise<void>;
  readonly counts: () => { readonly pods: number; readonly forgotten: number; readonly interrupted: number };
}

const chance = (share: number): boolean => Math.random() < share;

/** A network of its own, sometimes with a mapped port, or the node's; half of them share no PID namespace. */
const someNetwork = (): DeepPartial<PodSandboxConfig> => {
  const pid = chance(0.5) ? NamespaceMode.CONTAINER : NamespaceMode.POD;
  const linux = (network: NamespaceMode) => ({ securityContext: { namespaceOptions: { network, pid } } });
  if (chance(0.2)) return { linux: linux(NamespaceMode.NODE) };
  if (chance(0.6)) return { linux: linux(NamespaceMode.POD) };
  return {
    linux: linux(NamespaceMode.POD),
    portMappings: [{ containerPort: 80, hostPort: 20_000 + Math.floor(Math.random() * 10_000) }],
  };
};

/** Starts so many clients. */
export const startChurn = (daemon: Daemon, image: string, clients: number): Churn => {
  const { runtime } = daemon.cri;
  const counts = { pods: 0, forgotten: 0, interrupted: 0 };
  const state = { stopped: false, underWay: 0 };
  let open = Promise.withResolvers<void>();
  open.resolve();

  const once = async <T>(call: () => Promise<T>): Promise<T> => {
    await open.promise;
    state.underWay += 1;
    try {
      return await call();
    } finally {
      state.underWay -= 1;
    }
  };

  /** Calls again until it is answered with anything but a passing trouble. */
  const persist = async <T>(call: () => Promise<T>): Promise<T> => {
    const deadlineMs = performance.now() + patienceMs;
    for (;;) {
      try {
        return await once(call);
      } catch (error) {
        if (!passing.includes(codeOf(error) ?? -1) || performance.now() > deadlineMs) throw error;
        counts.interrupted += 1;
        await sleep(betweenTriesMs);
      }
    }
  };

  const start = async (containerId: string): Promise<void> => {
    const options = { timeoutMs: callTimeoutMs };
    await persist(() => runtime.startContainer({ containerId }, options)).catch(async (error: unknown) => {
      // An interrupted start may have succeeded, or be known to have failed.
      const status = await persist(() => statusOf(daemon, containerId));
      if (status.state === ContainerState.CONTAINER_CREATED) throw error;
    });
  };

  const untilExited = async (containerId: string, exitCode: number): Promise<void> => {
    const status = await eventually(
      `the end of ${containerId}`,
      async () => {
        const now = await persist(() => statusOf(daemon, containerId));
        return now.state === ContainerState.CONTAINER_EXITED && now;
      },
      patienceMs,
    );
    if (status.reason === 'StartError') return;
    if (status.exitCode !== exitCode) {
      const { stdout } = await daemon.scribe(
        'history',
        '--root',
        daemon.dirs.root,
        '--events',
        '--container',
        containerId,
      );
      assert.fail(`${containerId} ended with ${status.exitCode} (${status.reason}), not with ${exitCode}:\n${stdout}`);
    }
    const again = await persist(() => statusOf(daemon, containerId));
    assert.deepEqual(
      [again.state, again.exitCode, again.finishedAt],
      [status.state, status.exitCode, status.finishedAt],
    );
  };

  const containerLife = async (podSandboxId: string, name: string): Promise<void> => {
    const options = { timeoutMs: callTimeoutMs };
    const exitCode = 1 + Math.floor(Math.random() * 100);
    const ends = chance(0.5);
    const command = ends
      ? ['sh', '-c', `sleep ${(Math.random() / 5).toFixed(2)}; exit ${exitCode}`]
      : ['sleep', '10000'];
    const config = containerConfig(name, image, command, { envs: [{ key: 'A', value: Buffer.from(name) }] });
    const { containerId } = await persist(() => runtime.createContainer({ podSandboxId, config }, options));
    await start(containerId);
    if (!ends && chance(0.5)) {
      const cmd = ['sh', '-c', 'sleep 0.1; exit 3'];
      const told = await once(() => runtime.execSync({ containerId, cmd, timeout: '5' })).catch(() => null);
      if (told !== null) assert.equal(told.exitCode, 3);
    }
    if (ends) await untilExited(containerId, exitCode);
    else if (chance(0.5)) await persist(() => runtime.stopContainer({ containerId, timeout: '0' }, options));
    if (chance(0.5)) await persist(() => runtime.removeContainer({ containerId }, options));
  };

  const podLife = async (name: string): Promise<void> => {
    const options = { timeoutMs: callTimeoutMs };
    const config = podConfig(daemon, name, someNetwork());
    counts.pods += 1;
    if (chance(0.1)) {
      // A client that goes away while its pod is being made.
      counts.forgotten += 1;
      await once(() => runtime.runPodSandbox({ config }, { timeoutMs: Math.random() * 300 })).catch(() => undefined);
      return;
    }
    const { podSandboxId } = await persist(() => runtime.runPodSandbox({ config }, options));
    const names = chance(0.3) ? ['a', 'b'] : ['a'];
    await Promise.all(names.map((container) => containerLife(podSandboxId, container)));
    if (chance(0.1)) {
      counts.forgotten += 1;
      return;
    }
    if (chance(0.8)) await persist(() => runtime.stopPodSandbox({ podSandboxId }, options));
    await persist(() => runtime.removePodSandbox({ podSandboxId }, options));
    const { items } = await persist(() => runtime.listPodSandbox({ filter: { id: podSandboxId } }));
    assert.deepEqual(items, [], 'a removed pod is gone');
  };

  const client = async (number: number): Promise<void> => {
    for (let round = 0; !state.stopped; round += 1) await podLife(`churn-${number}-${round}`);
  };
  const all = Promise.all(Array.from({ length: clients }, (_, number) => client(number)));
  // Whoever stops the churn hears of it.
  all.catch(() => undefined);

  return {
    pause: async () => {
      open = Promise.withResolvers();
      await eventually('all calls are answered', async () => state.underWay === 0, 2 * callTimeoutMs);
    },
    resume: () => open.resolve(),
    stop: async () => {
      state.stopped = true;
      open.resolve();
      await all;
    },
    counts: () => ({ ...counts }),
  };
};
