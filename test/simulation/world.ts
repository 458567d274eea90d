/**
 * The simulated node outside the daemon: files, namespaces, addresses, shims with their tasks, images. It outlives
 * every daemon. Effects are performed on it by effects.ts; here is only what exists, and what happens by itself.
 */
import type { ImageContent } from '../../src/domain/model/image-content.ts';
import type { LaunchedTask } from '../../src/domain/model/tasks.ts';
import { type Changing, freePid } from './changing.ts';
import type { Random } from './random.ts';
import type { Scheduler } from './scheduler.ts';

/** What the kernel gives a cgroup that nobody limits. */
export const DEFAULT_SHARES = 1024;
export const NO_LIMIT = -1;

export interface SimulatedTask {
  readonly id: string;
  readonly podSandboxId: string;
  readonly pid: number;
  readonly startTicks: string;
  status: 'created' | 'running' | 'stopped';
  exitStatus: number;
  exitedAtNs: bigint;
  oomKills: number;
  /** Its process ended as it waited to be started. */
  neverBegan: boolean;
  /** Its end is told to nobody: who killed it has to ask. */
  isSilent: boolean;
  /** By a checkpoint: it does nothing until it is thawed. */
  frozen: boolean;
  /** Its limits: CPU shares, and processes (-1: as many as it likes), for which CRI has no word. */
  shares: number;
  pids: number;
  /** Commands that run in it: they go on when the daemon that began them dies. */
  readonly execs: Set<string>;
}

/** What a pod has of its shim: where several share one, they have one process. */
export interface SimulatedShim {
  readonly podSandboxId: string;
  readonly pid: number;
  alive: boolean;
  readonly tasks: Map<string, SimulatedTask>;
}

/** No; something that another one has said otherwise; something that can't be. */
export type PluginsSaid = 'PluginRefused' | 'PluginConflict' | 'PluginInvalid';

export interface World {
  readonly dirs: Set<string>;
  readonly bundles: Set<string>;
  /** Where images are mounted for containers, with their layers. */
  readonly imageMounts: Map<string, readonly string[]>;
  /** The CPU shares in the specs of bundles, and the limits of processes. */
  readonly specShares: Map<string, number>;
  readonly specPids: Map<string, number>;
  /** NRI plugins that end while they are asked: their ids. */
  readonly endingPlugins: Set<string>;
  /** What NRI plugins have said that a call may fail of. */
  readonly pluginsSaid: Set<PluginsSaid>;
  /** Paths at which namespaces are pinned. */
  readonly netns: Set<string>;
  /** Address to the sandbox that holds it. */
  readonly addresses: Map<string, string>;
  readonly shims: Map<string, SimulatedShim>;
  /** Processes of shims that pods share and that live, by what they are started under. */
  readonly sharedShims: Map<string, number>;
  /** Tasks whose shim died under them: their processes run on until somebody kills them. */
  readonly orphans: Map<string, SimulatedTask>;
  readonly snapshots: Set<string>;
  /** Directories in which checkpoints lie that containers are to go on from. */
  readonly unpacked: Set<string>;
  readonly blobs: Set<string>;
  readonly chains: Set<string>;
  /** Of them those that no sync has put on the disk. */
  readonly unsynced: Set<string>;
  /** Layers that writable layers lie on, by container. */
  readonly standsOn: Map<string, readonly string[]>;
  /** What each pod's ADD was told, and whether its DEL has begun since. */
  readonly adds: Map<string, { readonly network: string; delTried: boolean }>;
  /** Pods whose network somebody got ready for and has not begun. */
  readonly ready: Set<string>;
  /** References and uploads of the pulls and loads under way, and what has been brought in this life. */
  readonly fetching: string[];
  readonly brought: { readonly name: string; readonly image: ImageContent }[];
  /** Containers and sandboxes whose task has run at some time, and how those ended that did. */
  readonly everRan: Set<string>;
  readonly ends: Map<string, { readonly exitStatus: number; readonly atNs: bigint; readonly oomKills: number }>;
  /** Something of them was killed for lack of memory. */
  readonly oomed: Set<string>;
  /** Pods whose shim died, that fell over by themselves, or that a reboot ended. */
  readonly cutOff: Set<string>;
  readonly commandExits: Map<string, number>;
  /** Tasks that a signal could not be sent to: whoever wants their end asks again. */
  readonly unkilled: Set<string>;
  /** How much went wrong so far. */
  failures: number;
  /** Only what ends something may be asked for. */
  diskIsFull: boolean;
  diskWasFull: boolean;
  /** The wall clock was set, so that times say nothing about an order. */
  clockWasSet: boolean;
  nextCommitFails: boolean;
  /** What fails whenever it is tried, until it is mended: the kind of an effect and whom it is done to. */
  readonly broken: Set<string>;
  /** Pods whose shim lives and answers nothing. */
  readonly mute: Set<string>;
  /** What hangs whenever it is tried, until it is mended, and what then goes on. */
  readonly hung: Map<string, readonly (() => void)[]>;
  /** A decider has thrown. */
  threw: boolean;
  /** Pods and images of which something happened that the state does not know, because deciders threw again and again. */
  readonly stuck: Set<string>;
  /** Pods of which an exit, or the end of the shim, was written down and no more. */
  readonly unread: Set<string>;
  readonly changing: Changing;
  nextAddress: number;
  /** Told of every exit, whoever lives to hear it. */
  onExit: (task: SimulatedTask) => void;
  onShimDeath: (podSandboxId: string) => void;
  /** A process of the task was killed for lack of memory; the task itself may live on. */
  onOom: (task: SimulatedTask) => void;
}

export const createWorld = (changing: Changing): World => ({
  dirs: new Set(),
  bundles: new Set(),
  imageMounts: new Map(),
  specShares: new Map(),
  specPids: new Map(),
  endingPlugins: new Set(),
  pluginsSaid: new Set(),
  netns: new Set(),
  addresses: new Map(),
  shims: new Map(),
  sharedShims: new Map(),
  orphans: new Map(),
  snapshots: new Set(),
  unpacked: new Set(),
  blobs: new Set(),
  chains: new Set(),
  unsynced: new Set(),
  standsOn: new Map(),
  adds: new Map(),
  ready: new Set(),
  fetching: [],
  brought: [],
  everRan: new Set(),
  ends: new Map(),
  oomed: new Set(),
  cutOff: new Set(),
  commandExits: new Map(),
  unkilled: new Set(),
  failures: 0,
  diskIsFull: false,
  diskWasFull: false,
  clockWasSet: false,
  nextCommitFails: false,
  broken: new Set(),
  mute: new Set(),
  hung: new Map(),
  threw: false,
  stuck: new Set(),
  unread: new Set(),
  changing,
  nextAddress: 1,
  onExit: () => {},
  onShimDeath: () => {},
  onOom: () => {},
});

export const shimOf = (world: World, podSandboxId: string): SimulatedShim | undefined => {
  const shim = world.shims.get(podSandboxId);
  return shim?.alive ? shim : undefined;
};

export function endTask(
  world: World,
  scheduler: Scheduler,
  task: SimulatedTask,
  exitStatus: number,
  oomKills = 0,
): void {
  if (task.status !== 'running') return;
  task.status = 'stopped';
  task.exitStatus = exitStatus;
  task.exitedAtNs = scheduler.nowNs();
  task.oomKills = oomKills;
  freePid(world.changing, task.pid);
  world.ends.set(task.id, { exitStatus, atNs: task.exitedAtNs, oomKills });
  if (oomKills > 0) world.oomed.add(task.id);
  if (task.id === task.podSandboxId) world.cutOff.add(task.id);
  world.onExit(task);
}

/** Its process ends as it waits to be started, of which nobody is told who does not ask. */
export function endUnbegun(world: World, scheduler: Scheduler, task: SimulatedTask): void {
  Object.assign(task, { status: 'stopped', exitStatus: 1, exitedAtNs: scheduler.nowNs(), neverBegan: true });
  freePid(world.changing, task.pid);
}

/** Those of all pods that have this process as their shim. */
export const shimsOfProcess = ({ shims }: World, pid: number): SimulatedShim[] =>
  [...shims.values()].filter((shim) => shim.alive && shim.pid === pid);

/** The process of a shim ends, by itself or because it was asked to, for all pods that have it. */
export function endShimProcess(world: World, pid: number): void {
  for (const [id, shared] of world.sharedShims) if (shared === pid) world.sharedShims.delete(id);
  for (const shim of shimsOfProcess(world, pid)) {
    const { podSandboxId, tasks } = shim;
    shim.alive = false;
    world.mute.delete(podSandboxId);
    world.cutOff.add(podSandboxId);
    // A task that was not started has a process that waits.
    for (const task of tasks.values()) if (task.status !== 'stopped') world.orphans.set(task.id, task);
    world.onShimDeath(podSandboxId);
  }
}

/** What a deletion leaves alone: what those brought that were being fetched when it was asked for. */
export const broughtBy = ({ brought }: World, names: readonly string[]): readonly ImageContent[] =>
  brought.filter(({ name }) => names.includes(name)).map(({ image }) => image);

/** The daemon that fetched is gone, and knows nothing of it. */
export function forgetFetches({ fetching, brought }: World): void {
  fetching.length = 0;
  brought.length = 0;
}

/** A reboot: whatever is not on the disk is gone. */
export function rebootWorld(world: World): void {
  for (const id of world.dirs) world.cutOff.add(id);
  world.dirs.clear();
  world.bundles.clear();
  world.imageMounts.clear();
  world.specShares.clear();
  world.specPids.clear();
  world.netns.clear();
  world.shims.clear();
  world.sharedShims.clear();
  world.mute.clear();
  world.orphans.clear();
  for (const chain of world.unsynced) world.chains.delete(chain);
}

/** Tasks and what is left of them, of one pod or (null) of all, whether or not a shim holds them. */
export function tasksIn(world: World, podSandboxId: string | null): SimulatedTask[] {
  const held = podSandboxId === null ? [...world.shims.values()] : [world.shims.get(podSandboxId)];
  return [
    ...held.flatMap((shim) => [...(shim?.tasks.values() ?? [])]),
    ...[...world.orphans.values()].filter((task) => podSandboxId === null || task.podSandboxId === podSandboxId),
  ];
}

/** Something that is done to it fails whenever it is tried, or is not answered. */
export const isBroken = ({ broken, hung, mute }: World, id: string): boolean =>
  mute.has(id) || [...broken, ...hung.keys()].some((key) => key.endsWith(` ${id}`));

export const hasRunning = (world: World, podSandboxId: string): boolean =>
  tasksIn(world, podSandboxId).some(({ status }) => status === 'running');

/** Whoever has its pid now may be another: pid and start time name a process. */
export const isAlive = (world: World, { pid, startTicks }: LaunchedTask): boolean =>
  processesOf(world).some((task) => task.pid === pid && task.startTicks === startTicks);

/** Some process has this pid. */
export const isTaken = (world: World, pid: number): boolean =>
  world.changing.strangers.has(pid) || processesOf(world).some((task) => task.pid === pid);

const processesOf = (world: World): SimulatedTask[] =>
  tasksIn(world, null).filter(({ status }) => status === 'running');

export const runningContainers = (world: World): SimulatedTask[] =>
  [...world.shims.values()].flatMap((shim) =>
    [...shim.tasks.values()].filter((task) => task.status === 'running' && task.id !== task.podSandboxId),
  );

/** What is left of pods, in words; empty when all was given back. */
export function leftovers(world: World): string[] {
  return [
    ...[...world.dirs].map((dir) => `directory ${dir}`),
    ...[...world.bundles].map((bundle) => `bundle ${bundle}`),
    ...[...world.imageMounts.keys()].map((path) => `image mounted at ${path}`),
    ...[...world.netns].map((netns) => `netns ${netns}`),
    ...[...world.addresses].map(([address, owner]) => `address ${address} of ${owner}`),
    ...[...world.shims.values()].map((shim) => `shim of ${shim.podSandboxId}`),
    ...[...world.sharedShims.keys()].map((id) => `shim ${id}`),
    ...[...world.orphans.values()]
      .filter((task) => task.status !== 'stopped')
      .map((task) => `orphaned process of ${task.id}`),
    ...[...world.unpacked].map((dir) => `checkpoint in ${dir}`),
    ...[...world.snapshots].map((snapshot) => `snapshot of ${snapshot}`),
  ];
}

export function runOutOfMemory(world: World, task: SimulatedTask): void {
  world.oomed.add(task.id);
  world.onOom(task);
}

/** Things that happen by themselves: a task exits, is killed for lack of memory, or a shim dies. */
export function disturb(world: World, scheduler: Scheduler, random: Random): void {
  const shims = [...world.shims.values()].filter((shim) => shim.alive);
  if (shims.length === 0) return;
  const shim = random.pick(shims);
  if (random.chance(0.15)) return endShimProcess(world, shim.pid);
  const running = [...shim.tasks.values()].filter((task) => task.status === 'running');
  if (running.length === 0) return;
  const containers = running.filter((task) => task.id !== task.podSandboxId);
  const task = random.pick(containers.length > 0 && random.chance(0.7) ? containers : running);
  if (random.chance(0.3)) return runOutOfMemory(world, task);
  const oom = random.chance(0.5);
  endTask(world, scheduler, task, oom ? 137 : random.below(4), oom ? 1 : 0);
}
