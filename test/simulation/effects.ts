/** What each effect does to the simulated world. Each is "make it so", as real adapters are. */
import type { EffectOf, EffectResults } from '../../src/domain/model/effects.ts';
import type { ImageContent } from '../../src/domain/model/image-content.ts';
import type { OciResources } from '../../src/domain/model/oci.ts';
import type { PerformEffects } from '../../src/engine/ports.ts';
import { DIED, fail, faultyPerformance, type SimulatedEffectsOptions } from './faulty-performance.ts';
import { CHECKPOINT, CHECKPOINTED_IMAGE } from './checkpoint.ts';
import { given, newProcess, pulledImage } from './changing.ts';
import { IMAGE } from './images.ts';
import {
  broughtBy,
  DEFAULT_SHARES,
  endTask,
  NO_LIMIT,
  isAlive,
  type SimulatedShim,
  type SimulatedTask,
  shimOf,
} from './world.ts';
import { pluginEffects } from './plugins.ts';
import { gettingReady } from './ready.ts';
import { sessionEffects } from './session-effects.ts';
import { shimEffects } from './shim-effects.ts';

const NOTHING = {};
const LOST_FOR_GOOD_RATE = 0.3;

export function simulatedEffects(options: SimulatedEffectsOptions): PerformEffects {
  const { world, scheduler, random } = options;

  const performing = faultyPerformance(options);

  const needLayers = (chainIds: readonly string[]): void => {
    for (const chain of chainIds) if (!world.chains.has(chain)) fail('HostFailed', `layer ${chain} is missing`);
  };

  const nameOf = (effect: EffectOf<'PullImage' | 'LoadImages'>): string =>
    effect.kind === 'PullImage' ? effect.reference : effect.upload;

  /** Deletions have to know of it meanwhile. */
  const fetching =
    <K extends 'PullImage' | 'LoadImages'>(perform: (effect: EffectOf<K>) => Promise<EffectResults[K]>) =>
    async (effect: EffectOf<K>): Promise<EffectResults[K]> => {
      const name = nameOf(effect);
      world.fetching.push(name);
      try {
        return await perform(effect);
      } finally {
        if (!options.isDead()) world.fetching.splice(world.fetching.indexOf(name), 1);
      }
    };

  const fetch = (effect: EffectOf<'PullImage' | 'LoadImages'>, image: ImageContent, half: () => void): ImageContent => {
    world.brought.push({ name: nameOf(effect), image });
    for (const blob of image.blobs) world.blobs.add(blob);
    half();
    for (const { chainId } of image.layers) {
      if (!world.chains.has(chainId)) world.unsynced.add(chainId);
      world.chains.add(chainId);
      // A reboot may take it again before anybody hears that it was mended.
      if (!world.unsynced.has(chainId)) world.changing.damaged.delete(chainId);
    }
    return image;
  };

  const unsyncedOf = ({ layers }: ImageContent): { readonly unsynced?: true } =>
    layers.some(({ chainId }) => world.unsynced.has(chainId)) ? { unsynced: true } : {};

  const tasksOf = (podSandboxId: string): SimulatedShim =>
    shimOf(world, podSandboxId) ?? fail('ShimFailed', 'no shim answers');

  const newTask = (podSandboxId: string, id: string): SimulatedTask => ({
    id,
    podSandboxId,
    ...newProcess(world.changing, random),
    status: 'created',
    exitStatus: 0,
    exitedAtNs: 0n,
    oomKills: 0,
    neverBegan: false,
    frozen: false,
    isSilent: false,
    shares: world.specShares.get(id) ?? DEFAULT_SHARES,
    pids: world.specPids.get(id) ?? NO_LIMIT,
    execs: new Set(),
  });

  const sharesOf = ({ cpu }: OciResources): number => cpu?.shares ?? DEFAULT_SHARES;
  /** What is not said stays. */
  const putInForce = (task: SimulatedTask, resources: OciResources): void => {
    task.shares = sharesOf(resources);
    task.pids = resources.pids?.limit ?? task.pids;
  };
  const writeLimits = (containerId: string, resources: OciResources): void => {
    world.specShares.set(containerId, sharesOf(resources));
    if (resources.pids !== undefined) world.specPids.set(containerId, resources.pids.limit);
  };

  function thaw(containerId: string): void {
    for (const { tasks } of world.shims.values()) {
      const task = tasks.get(containerId);
      if (task !== undefined) task.frozen = false;
    }
  }

  function removeTask(podSandboxId: string, containerId: string): void {
    const orphan = world.orphans.get(containerId);
    if (orphan !== undefined) {
      orphan.status = 'stopped';
      world.orphans.delete(containerId);
    }
    const task = world.shims.get(podSandboxId)?.tasks.get(containerId);
    if (task !== undefined && task.status === 'running') endTask(world, scheduler, task, 137);
    world.shims.get(podSandboxId)?.tasks.delete(containerId);
  }

  return {
    PreparePodSandbox: performing('PreparePodSandbox', 2, ({ podSandboxId, bundle, chainIds }, half) => {
      world.dirs.add(podSandboxId);
      half();
      if (bundle !== null) world.bundles.add(bundle.id);
      if (chainIds === null) return { rootfs: [] };
      needLayers(chainIds);
      world.snapshots.add(podSandboxId);
      return { rootfs: [{ type: 'overlay', source: 'overlay', options: [] }] };
    }),
    CleanPodSandbox: performing('CleanPodSandbox', 2, ({ podSandboxId }, half) => {
      world.dirs.delete(podSandboxId);
      half();
      world.bundles.delete(podSandboxId);
      world.snapshots.delete(podSandboxId);
      return NOTHING;
    }),
    CreateNetns: performing('CreateNetns', 1, ({ path, holder }, half) => {
      if (holder !== undefined && !isAlive(world, holder)) fail('WrongState', 'the pause task has ended');
      world.netns.add(path);
      half();
      return NOTHING;
    }),
    RemoveNetns: performing('RemoveNetns', 1, ({ path }, half) => {
      half();
      world.netns.delete(path);
      return NOTHING;
    }),
    PinNamespaces: performing('PinNamespaces', 1, ({ pins: { network, ipc, uts } }, half) => {
      for (const path of [ipc, uts]) if (path !== null) world.netns.add(path);
      half();
      if (network !== null) world.netns.add(network);
      return NOTHING;
    }),
    UnpinNamespaces: performing('UnpinNamespaces', 1, ({ pins: { network, ipc, uts } }, half) => {
      for (const path of [network, uts]) if (path !== null) world.netns.delete(path);
      half();
      if (ipc !== null) world.netns.delete(ipc);
      return NOTHING;
    }),
    AttachNetwork: gettingReady(
      world,
      performing('AttachNetwork', 40, ({ podSandboxId, network }, half) => {
        if (!world.netns.has(network.netnsPath)) fail('CniFailed', 'the netns is missing');
        const address = `10.0.${world.nextAddress >> 8}.${world.nextAddress & 255}`;
        world.nextAddress += 1;
        world.addresses.set(address, podSandboxId);
        half();
        return { ips: [address], result: { ips: [{ address }] } };
      }),
    ),
    DetachNetwork: performing('DetachNetwork', 30, ({ podSandboxId }, half) => {
      half();
      for (const [address, owner] of world.addresses) if (owner === podSandboxId) world.addresses.delete(address);
      return NOTHING;
    }),
    ...shimEffects(options, performing, removeTask),
    StartSandbox: performing('StartSandbox', 20, ({ podSandboxId }, half) => {
      const shim = tasksOf(podSandboxId);
      const sandbox = shim.tasks.get(podSandboxId) ?? newTask(podSandboxId, podSandboxId);
      shim.tasks.set(podSandboxId, sandbox);
      half();
      sandbox.status = 'running';
      // Some pods fall over by themselves.
      if (random.chance(0.05)) scheduler.after(50, () => endTask(world, scheduler, sandbox, 1));
      return {
        task: { pid: sandbox.pid, startTicks: sandbox.startTicks },
        platform: { os: 'linux', architecture: 'amd64' },
      };
    }),
    StopSandbox: performing('StopSandbox', 5, ({ podSandboxId }, half) => {
      half();
      const sandbox = shimOf(world, podSandboxId)?.tasks.get(podSandboxId);
      if (sandbox?.status === 'running') endTask(world, scheduler, sandbox, 137);
      return NOTHING;
    }),
    InspectContainer: performing('InspectContainer', 2, ({ questions: { imageSubPaths = [] } }, half) => {
      for (const { chainIds } of imageSubPaths) needLayers(chainIds);
      half();
      const directories = imageSubPaths.map(({ image, subPath }) => ({ image, subPath, realPath: `/${subPath}` }));
      return {
        facts: { user: { uid: 0, gid: 0, additionalGids: [] }, devices: [], mounts: [], imageSubPaths: directories },
      };
    }),
    PrepareContainer: performing(
      'PrepareContainer',
      3,
      ({ containerId, bundle, chainIds, imageMounts, checkpoint }, half) => {
        for (const mounted of imageMounts) needLayers(mounted.chainIds);
        for (const mounted of imageMounts) world.imageMounts.set(mounted.hostPath, mounted.chainIds);
        needLayers(chainIds);
        world.snapshots.add(containerId);
        if (checkpoint !== undefined) world.unpacked.add(checkpoint.dir);
        half();
        world.bundles.add(containerId);
        writeLimits(containerId, bundle.spec.linux.resources);
        return { rootfs: [{ type: 'overlay', source: 'overlay', options: [] }] };
      },
    ),
    CleanContainer: performing('CleanContainer', 2, ({ containerId, paths }, half) => {
      for (const mounted of world.imageMounts.keys())
        if (paths.some((path) => mounted.startsWith(`${path}/`))) world.imageMounts.delete(mounted);
      world.bundles.delete(containerId);
      world.specShares.delete(containerId);
      world.specPids.delete(containerId);
      for (const dir of world.unpacked)
        if (paths.some((path) => dir.startsWith(`${path}/`))) world.unpacked.delete(dir);
      half();
      world.snapshots.delete(containerId);
      return NOTHING;
    }),
    CreateTask: performing('CreateTask', 20, ({ podSandboxId, containerId, checkpointDir }, half) => {
      const shim = tasksOf(podSandboxId);
      if (!world.bundles.has(containerId)) fail('RuntimeFailed', 'there is no bundle');
      if (!world.dirs.has(podSandboxId)) fail('RuntimeFailed', 'the files of the pod are gone');
      if (podSandboxId !== containerId && !world.snapshots.has(containerId))
        fail('RuntimeFailed', 'there is no root file system');
      if (shim.tasks.has(containerId)) fail('RuntimeFailed', 'the task exists already');
      if (checkpointDir !== undefined && !world.unpacked.has(checkpointDir))
        fail('RuntimeFailed', 'there is no checkpoint');
      const task = newTask(podSandboxId, containerId);
      shim.tasks.set(containerId, task);
      half();
      return { task: { pid: task.pid, startTicks: task.startTicks } };
    }),
    StartTask: performing('StartTask', 15, ({ podSandboxId, containerId, restored }, half) => {
      const task = tasksOf(podSandboxId).tasks.get(containerId);
      if (task?.status !== 'created') return fail('RuntimeFailed', 'there is no task to start');
      half();
      task.status = 'running';
      world.everRan.add(containerId);
      if (restored !== undefined) world.unpacked.delete(restored.checkpointDir);
      if (podSandboxId !== containerId && random.chance(0.2)) endTask(world, scheduler, task, random.below(3));
      return { task: { pid: task.pid, startTicks: task.startTicks } };
    }),
    KillTask: performing('KillTask', 3, ({ podSandboxId, containerId, signal }, half) => {
      const task = tasksOf(podSandboxId).tasks.get(containerId);
      half();
      if (task === undefined || task.status === 'stopped') return { alreadyGone: true };
      // Some programs don't heed a polite signal.
      if (signal === 9 || random.chance(0.6)) {
        task.isSilent = !options.isCalm() && random.chance(0.05);
        scheduler.after(4, () => endTask(world, scheduler, task, 128 + signal));
      }
      return { alreadyGone: false };
    }),
    DeleteTask: performing('DeleteTask', 5, ({ podSandboxId, containerId }, half) => {
      half();
      removeTask(podSandboxId, containerId);
      return NOTHING;
    }),
    ...sessionEffects(options, performing, tasksOf),
    ...pluginEffects(performing, options),
    EndExec: performing('EndExec', 2, ({ podSandboxId, containerId, execId }, half) => {
      half();
      shimOf(world, podSandboxId)?.tasks.get(containerId)?.execs.delete(execId);
      return NOTHING;
    }),
    ReopenLog: performing('ReopenLog', 1, (_effect, half) => {
      half();
      return NOTHING;
    }),
    UpdateContainer: performing('UpdateContainer', 4, (effect, half) => {
      const { podSandboxId, containerId, hasTask } = effect;
      const task = hasTask ? tasksOf(podSandboxId).tasks.get(containerId) : undefined;
      if (task !== undefined) putInForce(task, effect.resources);
      half();
      // Now and then the OCI runtime refuses what stands against what the container uses.
      if (task !== undefined && random.chance(0.1)) {
        putInForce(task, effect.previous);
        fail('RuntimeFailed', 'the limits are refused');
      }
      if (world.bundles.has(containerId)) writeLimits(containerId, effect.resources);
      return NOTHING;
    }),
    CheckpointTask: performing('CheckpointTask', 20, ({ podSandboxId, containerId }, half) => {
      const task = tasksOf(podSandboxId).tasks.get(containerId);
      if (task?.status !== 'running') return fail('RuntimeFailed', 'nothing runs');
      task.frozen = true;
      try {
        half();
        task.frozen = false;
      } catch (error) {
        // Who fails thaws; who dies cannot.
        task.frozen = error === DIED;
        throw error;
      }
      return NOTHING;
    }),
    EndCheckpoint: performing('EndCheckpoint', 2, ({ containerId }, half) => {
      half();
      thaw(containerId);
      return NOTHING;
    }),
    CheckpointPod: performing('CheckpointPod', 20, ({ podSandboxId, containers }, half) => {
      const tasks = containers.map(({ containerId }) => tasksOf(podSandboxId).tasks.get(containerId));
      const setFrozen = (frozen: boolean): void => {
        for (const task of tasks) if (task !== undefined) task.frozen = frozen;
      };
      setFrozen(true);
      try {
        half();
        setFrozen(false);
      } catch (error) {
        setFrozen(error === DIED);
        throw error;
      }
      return NOTHING;
    }),
    EndPodCheckpoint: performing('EndPodCheckpoint', 2, ({ containers }, half) => {
      half();
      for (const { containerId } of containers) thaw(containerId);
      return NOTHING;
    }),
    ReadCheckpoint: performing('ReadCheckpoint', 10, (_effect, half) => {
      half();
      return { image: CHECKPOINTED_IMAGE };
    }),
    ReadPodCheckpoint: performing('ReadPodCheckpoint', 10, (_effect, half) => {
      half();
      return { pod: CHECKPOINT };
    }),
    PullImage: fetching(
      performing('PullImage', 50, (effect, half) => {
        const image = fetch(effect, pulledImage(world.changing, random, effect.reference), half);
        return { image, ...unsyncedOf(image) };
      }),
    ),
    LoadImages: fetching(
      performing('LoadImages', 50, (effect, half) => {
        const image = fetch(effect, given(world.changing, IMAGE), half);
        return { images: [image], ...unsyncedOf(image) };
      }),
    ),
    SyncImage: performing('SyncImage', 30, ({ layers }, half) => {
      const isLost = layers.some(({ chainId }) => !world.chains.has(chainId));
      if (isLost && random.chance(LOST_FOR_GOOD_RATE)) fail('ImageInvalid', 'a blob of it was lost');
      for (const { chainId } of layers) world.chains.add(chainId);
      half();
      for (const { chainId } of layers) {
        world.unsynced.delete(chainId);
        world.changing.damaged.delete(chainId);
      }
      return NOTHING;
    }),
    DeleteImageContent: performing('DeleteImageContent', 5, ({ blobs, chainIds, fetching: names = [] }, half) => {
      const brought = broughtBy(world, names);
      for (const blob of blobs) if (!brought.some((image) => image.blobs.includes(blob))) world.blobs.delete(blob);
      half();
      for (const chain of chainIds) {
        if (brought.some(({ layers }) => layers.some(({ chainId }) => chainId === chain))) continue;
        world.chains.delete(chain);
        world.unsynced.delete(chain);
      }
      return { freedBytes: 1 };
    }),
  };
}
