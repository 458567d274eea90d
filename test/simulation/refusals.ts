/**
 * What the real parts of a node would not bear, looked at as each effect begins: a DEL that is not its ADD's, layers
 * deleted under a root file system, files taken from under a process. Knows the simulated node and what is about to be
 * done to it, and nothing of what the daemon thinks.
 */
import type { EffectKind, EffectOf } from '../../src/domain/model/effects.ts';
import type { RuntimeHandler } from '../../src/domain/model/runtime-handler.ts';
import { Violation } from './violation.ts';
import { broughtBy, shimsOfProcess, type SimulatedTask, tasksIn, type World } from './world.ts';

const refuse = (message: string): never => {
  throw new Violation(message);
};

type Check<K extends EffectKind> = (world: World, effect: EffectOf<K>) => void;

const runningIn = (world: World, podSandboxId: string): SimulatedTask[] =>
  tasksIn(world, podSandboxId).filter(({ status }) => status === 'running');

const isRunning = (world: World, podSandboxId: string, id: string): boolean =>
  runningIn(world, podSandboxId).some((task) => task.id === id);

/** Whose network namespace goes has had its DEL tried, since afterwards plugins find nothing to take down. */
function checkDelTried(world: World, podSandboxId: string): void {
  const add = world.adds.get(podSandboxId);
  if (add !== undefined && !add.delTried) refuse(`The network namespace of ${podSandboxId} goes before its DEL.`);
}

function checkUnused(world: World, paths: readonly (string | null)[], podSandboxId: string): void {
  const running = runningIn(world, podSandboxId).filter(({ id }) => id !== podSandboxId);
  const [first] = running;
  if (first !== undefined && paths.some((path) => path !== null && world.netns.has(path)))
    refuse(`The namespaces of ${podSandboxId} are unpinned while ${first.id} runs in them.`);
}

/** What makes a pod ends it, whatever handlers the configuration has since. */
function checkHandler(world: World, kind: string, podSandboxId: string, handler: RuntimeHandler): void {
  const began = world.changing.shimHandlers.get(podSandboxId);
  const now = JSON.stringify(handler);
  if (began !== undefined && began !== now)
    refuse(`${kind} of ${podSandboxId} is asked of ${now}, its shim is of ${began}.`);
  world.changing.shimHandlers.set(podSandboxId, now);
}

const checks: { readonly [K in EffectKind]?: Check<K> } = {
  AttachNetwork(world, { podSandboxId, network }) {
    const before = world.adds.get(podSandboxId);
    if (before !== undefined && !before.delTried) refuse(`${podSandboxId} has a second ADD without a DEL.`);
    world.adds.set(podSandboxId, { network: JSON.stringify(network), delTried: false });
  },
  DetachNetwork(world, { podSandboxId, network }) {
    const add = world.adds.get(podSandboxId);
    if (add === undefined) return;
    if (add.network !== JSON.stringify(network))
      refuse(`The DEL of ${podSandboxId} is for another network than its ADD.`);
    const running = runningIn(world, podSandboxId).filter(({ id }) => id !== podSandboxId);
    if (running.length > 0) refuse(`${podSandboxId} loses its network while ${running[0]?.id} runs.`);
    add.delTried = true;
  },
  RemoveNetns: (world, { podSandboxId, path }) => {
    checkDelTried(world, podSandboxId);
    checkUnused(world, [path], podSandboxId);
  },
  UnpinNamespaces: (world, { podSandboxId, pins: { network, ipc, uts } }) => {
    checkDelTried(world, podSandboxId);
    checkUnused(world, [network, ipc, uts], podSandboxId);
  },
  CleanPodSandbox(world, { podSandboxId }) {
    const [task] = runningIn(world, podSandboxId);
    if (task !== undefined) refuse(`The files of pod ${podSandboxId} are deleted while ${task.id} runs.`);
    if (world.shims.get(podSandboxId)?.alive) refuse(`The files of pod ${podSandboxId} are deleted under its shim.`);
  },
  PreparePodSandbox(world, { podSandboxId, chainIds }) {
    world.standsOn.set(podSandboxId, chainIds ?? []);
  },
  StartShim: (world, { podSandboxId, handler }) => checkHandler(world, 'StartShim', podSandboxId, handler),
  CreateTask: (world, { podSandboxId, handler }) => checkHandler(world, 'CreateTask', podSandboxId, handler),
  DeleteTask: (world, { podSandboxId, handler }) => checkHandler(world, 'DeleteTask', podSandboxId, handler),
  StopShim(world, { podSandboxId, handler, hasSandbox, shared }) {
    checkHandler(world, 'StopShim', podSandboxId, handler);
    const running = shared?.isInUse === false ? world.sharedShims.get(shared.id) : undefined;
    if (running !== undefined)
      for (const { podSandboxId: other, tasks } of shimsOfProcess(world, running))
        if (other !== podSandboxId && tasks.size > 0)
          refuse(`The shim ${shared?.id} is ended for ${podSandboxId}, and ${other} has tasks at it.`);
    if (world.shims.get(podSandboxId)?.alive !== true) return;
    const left = runningIn(world, podSandboxId).filter(({ id }) => hasSandbox !== true || id !== podSandboxId);
    if (left.length > 0) refuse(`The shim of ${podSandboxId} is stopped while ${left[0]?.id} runs.`);
  },
  PrepareContainer(world, { containerId, chainIds }) {
    world.standsOn.set(containerId, chainIds);
  },
  CleanContainer(world, { containerId }) {
    const task = tasksIn(world, null).find(({ id }) => id === containerId);
    if (task?.status === 'running') refuse(`The files of container ${containerId} are deleted while it runs.`);
    world.standsOn.delete(containerId);
  },
  StartTask(world, { podSandboxId, containerId, handler }) {
    checkHandler(world, 'StartTask', podSandboxId, handler);
    if (isRunning(world, podSandboxId, containerId)) refuse(`${containerId} is started while it runs.`);
  },
  KillTask(_world, { containerId, signal }) {
    if (signal < 1 || signal > 64) refuse(`${containerId} is sent signal ${signal}.`);
  },
  DeleteImageContent(world, { chainIds, fetching = [] }) {
    const left = broughtBy(world, fetching).flatMap(({ layers }) => layers.map(({ chainId }) => chainId));
    const isDeleted = (chain: string): boolean => chainIds.includes(chain) && !left.includes(chain);
    for (const [id, chains] of world.standsOn)
      if (world.snapshots.has(id) && chains.some(isDeleted))
        refuse(`Layers of the root file system of ${id} are deleted.`);
    for (const [path, mounted] of world.imageMounts)
      if (mounted.some(isDeleted)) refuse(`Layers of the image mounted at ${path} are deleted.`);
    for (const name of world.fetching)
      if (!fetching.includes(name)) refuse(`Content is deleted while ${name} is fetched, which may need it.`);
  },
};

export function checkBearable<K extends EffectKind>(world: World, kind: K, effect: EffectOf<K>): void {
  checks[kind]?.(world, effect);
}
