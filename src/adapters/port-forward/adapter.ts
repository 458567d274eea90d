/**
 * The effect StreamPort: joins a client's connection with a port of a pod's loopback. A process per pod, started by the
 * spawner, is inside the pod's network namespace and makes the connections; it serves all of that pod, and ends soon
 * after the last one, or with the pod. The daemon itself never leaves its namespace: for pods on the host's network it
 * connects from where it is. Owns the forwarders; the connections are the client's to make (forward.ts).
 */
import { randomBytes } from 'node:crypto';
import { mkdir, rm } from 'node:fs/promises';
import { join as joinPath } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Logger } from 'pino';
import type { EffectOf } from '../../domain/model/effects.ts';
import { FailureError, messageOf } from '../../domain/model/errors.ts';
import type { Perform, PerformEffects } from '../../engine/ports.ts';
import { TIMER_MS_MAX, within } from '../../platform/rpc/timeout.ts';
import type { Spawner } from '../../platform/spawner/types.ts';
import type { ForwardedBytes, ForwardTarget, PortClient } from '../streaming/types.ts';

/** A pod's forwarder without connections is kept so long: clients often come again at once. */
const IDLE_END_MS = 30_000;
const START_TIMEOUT_MS = 20_000;
const OUTPUT_BYTES_MAX = 4096;
/** Connections to one pod at a time. */
const CONNECTIONS_MAX = 1000;

const mainPath = fileURLToPath(new URL('./forwarder-main.ts', import.meta.url));
const nodeFlags = ['--max-semi-space-size=1', '--max-old-space-size=32', '--v8-pool-size=0'];

export interface PortForwarderOptions {
  readonly spawner: Pick<Spawner, 'run'>;
  readonly stateDir: string;
  /** Throws Cancelled when it has gone. */
  readonly portClientOf: (sessionId: string) => PortClient;
  readonly log: Logger;
}

export interface PortForwarder {
  readonly effects: Pick<PerformEffects, 'StreamPort'>;
  /** The pod ends: so do its connections, and nothing of ours stays in its namespace. */
  readonly endPod: (podSandboxId: string) => void;
  readonly close: () => void;
}

interface Forwarder {
  readonly path: string;
  readonly ready: Promise<void>;
  readonly end: () => void;
}

/** A pod that has connections, or had some a moment ago. */
interface Pod {
  forwarder: Forwarder | null;
  connections: number;
  readonly ended: AbortController;
  idleTimer: NodeJS.Timeout | undefined;
}

const startForwarder = (
  { spawner, log }: Pick<PortForwarderOptions, 'spawner' | 'log'>,
  path: string,
  { podSandboxId, netnsPath }: { readonly podSandboxId: string; readonly netnsPath: string },
  onEnd: () => void,
): Forwarder => {
  const stop = new AbortController();
  const { promise: started, resolve, reject } = Promise.withResolvers<void>();
  const notStarted = (why: string): FailureError =>
    new FailureError('HostFailed', `The forwarder of pod sandbox ${podSandboxId} did not start: ${why}.`);
  const late = (): FailureError => {
    stop.abort();
    return notStarted(`it was not ready within ${START_TIMEOUT_MS} ms`);
  };
  const ready = within(started, START_TIMEOUT_MS, late);
  const over = (why: string): void => {
    reject(notStarted(why));
    void rm(path, { force: true });
    onEnd();
  };
  spawner
    .run({
      command: process.execPath,
      args: [...nodeFlags, mainPath, path, netnsPath],
      env: {},
      cwd: '/',
      // As long as there is a pod: it is ended otherwise.
      timeoutMs: TIMER_MS_MAX,
      outputBytesMax: OUTPUT_BYTES_MAX,
      onStdout: () => resolve(),
      signal: stop.signal,
    })
    .then(
      ({ stderr }) => {
        const said = Buffer.from(stderr).toString().trim();
        log.warn({ podSandboxId, said }, 'a forwarder has ended by itself');
        over(said || 'it ended');
      },
      (error: unknown) => over(messageOf(error)),
    );
  ready.catch(() => undefined);
  return { path, ready, end: () => stop.abort() };
};

export const createPortForwarder = async (options: PortForwarderOptions): Promise<PortForwarder> => {
  const dir = joinPath(options.stateDir, 'forward');
  // Sockets of an earlier daemon's forwarders, which ended with it.
  await rm(dir, { recursive: true, force: true });
  await mkdir(dir, { recursive: true, mode: 0o700 });
  const pods = new Map<string, Pod>();

  const forwarderOf = (podSandboxId: string, netnsPath: string): Forwarder => {
    const path = joinPath(dir, `${randomBytes(4).toString('hex')}.sock`);
    return startForwarder(options, path, { podSandboxId, netnsPath }, () => {
      const pod = pods.get(podSandboxId);
      if (pod?.forwarder?.path === path) pod.forwarder = null;
    });
  };

  const podOf = (podSandboxId: string): Pod => {
    const known = pods.get(podSandboxId);
    if (known !== undefined) return known;
    const pod: Pod = { forwarder: null, connections: 0, ended: new AbortController(), idleTimer: undefined };
    pods.set(podSandboxId, pod);
    return pod;
  };

  const forget = (podSandboxId: string, pod: Pod): void => {
    clearTimeout(pod.idleTimer);
    pod.forwarder?.end();
    if (pods.get(podSandboxId) === pod) pods.delete(podSandboxId);
  };

  /** Where a port of the pod is reached from here, once it can be. */
  const targetOf = async (
    pod: Pod,
    { podSandboxId, port, netnsPath }: EffectOf<'StreamPort'>,
  ): Promise<ForwardTarget> => {
    if (netnsPath === null) return { port, forwarderPath: null };
    pod.forwarder ??= forwarderOf(podSandboxId, netnsPath);
    await pod.forwarder.ready;
    return { port, forwarderPath: pod.forwarder.path };
  };

  const StreamPort: Perform<'StreamPort'> = async (effect, { signal }) => {
    const { podSandboxId, sessionId, port } = effect;
    const client = options.portClientOf(sessionId);
    const pod = podOf(podSandboxId);
    if (pod.connections >= CONNECTIONS_MAX) {
      const message = `Pod sandbox ${podSandboxId} has ${CONNECTIONS_MAX} forwarded connections; close some first.`;
      throw new FailureError('HostFailed', message);
    }
    clearTimeout(pod.idleTimer);
    pod.connections += 1;
    try {
      const target = await targetOf(pod, effect);
      const over = AbortSignal.any([signal, client.signal, pod.ended.signal]);
      return await client.forward(target, over).catch((error: unknown): Promise<ForwardedBytes> => {
        const message = `Port ${port} of pod sandbox ${podSandboxId} does not answer: ${messageOf(error)}.`;
        return Promise.reject(new FailureError('HostFailed', message));
      });
    } finally {
      pod.connections -= 1;
      if (pod.connections === 0) pod.idleTimer = setTimeout(() => forget(podSandboxId, pod), IDLE_END_MS).unref();
    }
  };

  const endPod = (podSandboxId: string): void => {
    const pod = pods.get(podSandboxId);
    if (pod === undefined) return;
    pod.ended.abort();
    forget(podSandboxId, pod);
  };

  return {
    effects: { StreamPort },
    endPod,
    close: () => {
      for (const podSandboxId of [...pods.keys()]) endPod(podSandboxId);
    },
  };
};
