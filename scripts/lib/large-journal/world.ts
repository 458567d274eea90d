/** The world around the engine, made up: effects that take their time, tasks with pids, ids that a seed decides. */
import type { ImageContent } from '../../../src/domain/model/image-content.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import type { PluginAnswer, PluginHook } from '../../../src/domain/model/nri-plugins.ts';
import { pluginName } from '../../../src/domain/nri/plugins.ts';
import type { Ids, PerformEffects } from '../../../src/engine/ports.ts';
import { successes } from '../../../test/engine/rig.ts';
import type { Random } from '../../../test/simulation/random.ts';
import type { VirtualClock } from './clock.ts';

export interface World {
  readonly perform: PerformEffects;
  readonly ids: Ids;
  /** Called with the container of a task that was killed, and the signal. */
  onKill: (podSandboxId: string, containerId: string, signal: number) => void;
  /** The pid of a container's task. */
  readonly pidOf: (containerId: string) => number;
  readonly forget: (containerId: string) => void;
}

const HEX = '0123456789abcdef';

const hexOf = (random: Random, length: number): string =>
  Array.from({ length }, () => HEX[random.below(16)] ?? '0').join('');

/** Digests that follow from a text, well enough told apart. */
const digestOf = (text: string): string => {
  let state = 0x811c9dc5;
  const words = Array.from({ length: 8 }, (_, word) => {
    for (const character of `${word}${text}`) state = Math.imul(state ^ character.charCodeAt(0), 0x01000193) >>> 0;
    return state.toString(16).padStart(8, '0');
  });
  return `sha256:${words.join('')}`;
};

/** What a registry has under a reference with a tag. */
const imageOf = (reference: string): ImageContent => {
  const [repository = reference] = reference.split(/:(?=[^/]*$)/);
  const [id, manifest, layer, diff] = ['id', 'manifest', 'layer', 'diff'].map((part) =>
    digestOf(`${part} ${reference}`),
  );
  if (id === undefined || manifest === undefined || layer === undefined || diff === undefined)
    throw new Error('no digest');
  const sizeBytes = 5_000_000 + (Number.parseInt(id.slice(7, 13), 16) % 400_000_000);
  return {
    id,
    manifestDigest: manifest,
    repoTags: [reference],
    repoDigests: [`${repository}@${manifest}`],
    sizeBytes,
    config: {
      entrypoint: ['/entrypoint'],
      cmd: ['serve'],
      env: ['PATH=/usr/local/bin:/usr/bin:/bin'],
      workingDir: '/srv',
    },
    layers: [{ digest: layer, diffId: diff, chainId: diff, sizeBytes: sizeBytes - 2000 }],
    blobs: [manifest, id, layer],
  };
};

/** The one plugin marks what belongs to the shop, and refuses a few. */
const answerOf = (random: Random, hook: PluginHook, plugin: string, namespace: string): PluginAnswer => {
  const common = { plugin, durationNs: String(400_000 + random.below(2_000_000)) };
  if (hook !== 'CreateContainer') return { ...common, failure: { kind: 'unanswered', message: 'nothing' } };
  if (random.chance(0.004))
    return { ...common, failure: { kind: 'refused', message: 'no capacity class is left on this node' } };
  const adjust = namespace === 'shop' ? { annotations: { 'limits.example/class': 'burst' } } : {};
  return { ...common, answer: { hook, adjust } };
};

export const createWorld = (clock: VirtualClock, random: Random): World => {
  const pids = new Map<string, number>();
  let lastPid = 2000;
  const newPid = (): number => {
    lastPid = lastPid >= 4_000_000 ? 2000 : lastPid + 1 + random.below(7);
    return lastPid;
  };
  const task = () => {
    const pid = newPid();
    return { pid, startTicks: String(clock.monoNs() / 10_000_000n) };
  };
  /** Mostly about this long, sometimes much longer. */
  const takes = (ms: number): Promise<void> =>
    clock.sleep(ms * (0.6 + 0.8 * random.next()) * (random.chance(0.01) ? 5 + 20 * random.next() : 1));

  const world: World = {
    onKill: () => {},
    pidOf: (containerId) => pids.get(containerId) ?? 0,
    forget: (containerId) => void pids.delete(containerId),
    ids: {
      hex64: () => hexOf(random, 64),
      uuid: () => [8, 4, 4, 4, 12].map((length) => hexOf(random, length)).join('-'),
    },
    perform: {
      ...successes,
      PreparePodSandbox: async () => {
        await takes(3);
        return { rootfs: [] };
      },
      PinNamespaces: async () => {
        await takes(1);
        return {};
      },
      AttachNetwork: async ({ podSandboxId }) => {
        await takes(45);
        if (random.chance(0.004))
          throw new FailureError(
            'CniFailed',
            'The CNI plugin bridge could not ADD: failed to allocate for range 0: no IP addresses available in range set.',
          );
        const low = Number.parseInt(podSandboxId.slice(0, 4), 16);
        return { ips: [`10.88.${low >> 8}.${low & 255}`], result: {} };
      },
      DetachNetwork: async () => {
        await takes(60);
        return {};
      },
      StartShim: async ({ podSandboxId }) => {
        await takes(18);
        return { shim: { address: `unix:///run/containerd/s/${podSandboxId}`, taskApi: 3, ...task() } };
      },
      InspectContainer: async ({ questions }) => {
        const mounts = questions.mountPaths.map((path) => ({
          hostPath: path,
          realPath: path,
          isDirectory: true,
          propagation: 'private' as const,
          flags: [],
        }));
        return { facts: { user: { uid: 0, gid: 0, additionalGids: [] }, devices: [], mounts } };
      },
      CreateTask: async ({ containerId }) => {
        await takes(28);
        const created = task();
        pids.set(containerId, created.pid);
        return { task: created };
      },
      StartTask: async ({ containerId }) => {
        await takes(7);
        if (random.chance(0.003))
          throw new FailureError(
            'ShimFailed',
            'runc create failed: unable to start container process: exec: "/entrypoint": no such file or directory',
          );
        return { task: { pid: world.pidOf(containerId), startTicks: String(clock.monoNs() / 10_000_000n) } };
      },
      KillTask: async ({ podSandboxId, containerId, signal }) => {
        await takes(2);
        world.onKill(podSandboxId, containerId, signal);
        return { alreadyGone: false };
      },
      DeleteTask: async () => {
        await takes(12);
        return {};
      },
      RunExec: async ({ args }) => {
        await takes(22);
        const fails = random.chance(0.01);
        const stdoutBytes = args.length * 7 + random.below(200);
        return { exitStatus: fails ? 1 : 0, timedOut: false, stdoutBytes, stderrBytes: fails ? 64 : 0 };
      },
      StreamExec: async () => {
        await takes(60_000 * random.next());
        const exitStatus = random.pick([0, 0, 0, 1, 130]);
        return { exitStatus, stdinBytes: random.below(2000), stdoutBytes: random.below(200_000), stderrBytes: 0 };
      },
      CallPlugins: async ({ hook, plugins, pod }) => {
        await takes(2);
        return { answers: plugins.map((plugin) => answerOf(random, hook, pluginName(plugin), pod.namespace ?? '')) };
      },
      PullImage: async ({ reference }) => {
        await takes(2500);
        if (random.chance(0.05))
          throw new FailureError(
            'RegistryFailed',
            `RegistryUnavailable: ${reference} could not be pulled: registry.shop.example answered 503 Service Unavailable.`,
          );
        return { image: imageOf(reference) };
      },
    },
  };
  return world;
};
