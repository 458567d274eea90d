/**
 * What must be so once nobody has called and nothing has failed for a while: every call is answered, nothing is owed
 * that could be paid, no claim and no command is left over, what is shown is what the world says, and whatever the
 * world holds belongs to somebody who is shown.
 */
import {
  containerStateOf,
  containerStepsOf,
  execsOf,
  isClaimed,
  isStarting,
  mayHaveTask,
  stopOf,
} from '../../src/domain/model/container-state.ts';
import { type CallRequest, subjectOf } from '../../src/domain/model/records.ts';
import type { Container, NodeState, PodSandbox, StepState } from '../../src/domain/model/state.ts';
import { LONGEST_MS } from './unresponsive.ts';
import type { History } from './history.ts';
import { Violation } from './violation.ts';
import { hasRunning, isBroken, tasksIn, type World } from './world.ts';

const fail = (message: string): never => {
  throw new Violation(`After a quiet period ${message}.`);
};

export function checkLiveness(history: History): void {
  const { daemon, world, scheduler } = history;
  if (daemon === null) return fail('no daemon lives');
  const { state } = daemon.engine;
  const troubled = troubledPods(world, state);
  for (const { seq, request, target } of state.calls.values())
    if (!mayWait(world, state, request, target)) fail(`the ${request.method} of record ${seq} has no answer`);
  const sinceNs = new Map(daemon.engine.underWay().map((effect) => [effect.id, effect.sinceMonoNs]));
  for (const { id, intent, stream } of state.effects.values()) {
    const { id: object } = subjectOf(stream);
    const pod = state.containers.get(object)?.podSandboxId ?? object;
    if (intent.kind !== 'WaitUntil') {
      // One whose request is being written has not begun.
      const isNew = scheduler.monoNs() - (sinceNs.get(id) ?? scheduler.monoNs()) < LONGEST_NS;
      if (!isNew && !hangs(world, intent.kind, pod, state)) fail(`${intent.kind} on ${stream} (${id}) is under way`);
      if (isNew && !troubled.has(pod) && !(intent.kind === DELETION && world.broken.has(DELETION)))
        fail(`${intent.kind} on ${stream} (${id}) has only just begun`);
    } else if (!world.clockWasSet && BigInt(intent.dueAtNs) < scheduler.nowNs())
      fail(`the timer ${intent.purpose} on ${stream} is overdue`);
  }
  // What can't be paid is owed; that is judged by what is broken on the node, not by what the daemon says.
  for (const sandbox of state.sandboxes.values()) if (!troubled.has(sandbox.id)) checkSandbox(world, state, sandbox);
  for (const container of state.containers.values())
    if (!troubled.has(container.podSandboxId)) checkContainer(world, state, container);
  const speaking = troubledPods({ ...world, mute: new Set() }, state);
  for (const id of world.mute) if (!speaking.has(id)) checkGoing(state, id);
  const isSynced = !world.hung.has(SYNC);
  if (!world.broken.has(DELETION) && !world.hung.has(DELETION) && isSynced) checkImages(world, state);
  if (isSynced) checkLayers(world, state);
  checkOwners(world, state);
  for (const id of world.ready) fail(`the network of ${id} was got ready, and neither attached nor dropped`);
}

const DELETION = 'DeleteImageContent';
/** While it hangs, what is removed does not go, and what a reboot took is not made again. */
const SYNC = 'SyncImage';
const LONGEST_NS = BigInt(LONGEST_MS) * 1_000_000n;

/** It is done to this pod, or to a container of it, or to an image, and nothing ends it but somebody who mends the node. */
function hangs({ hung }: World, kind: string, pod: string, { containers }: NodeState): boolean {
  return [...hung.keys()].some((key) => {
    const [hanging, id = ''] = key.split(' ');
    return hanging === kind && (id === '' || id === pod || containers.get(id)?.podSandboxId === pod);
  });
}

/** Nobody can be told of what hangs in a file system, nor of an image that is to be fetched behind a deletion that does. */
function mayWait(world: World, state: NodeState, request: CallRequest, target: string): boolean {
  const { containerId = '', podSandboxId = '' } = request as { containerId?: string; podSandboxId?: string };
  const named = target === '' ? (containerId === '' ? podSandboxId : containerId) : subjectOf(target).id;
  const pod = state.containers.get(named)?.podSandboxId ?? named;
  const hanging = [...world.hung.keys()];
  if (hanging.includes(DELETION) && FETCHING.includes(request.method)) return true;
  return hanging.some((key) => {
    const [, id = ''] = key.split(' ');
    return id !== '' && (state.containers.get(id)?.podSandboxId ?? id) === pod;
  });
}

const FETCHING: readonly string[] = ['PullImage', 'LoadImages', 'RunPodSandbox', 'RestorePod'];

/** Pods with something that fails whenever it is tried, of their own or of a container of theirs. */
function troubledPods(world: World, { sandboxes, containers }: NodeState): ReadonlySet<string> {
  const troubled = [...sandboxes.keys()].filter((id) => isBroken(world, id) || world.stuck.has(id));
  for (const { id, podSandboxId } of containers.values()) if (isBroken(world, id)) troubled.push(podSandboxId);
  return new Set(troubled);
}

const OPEN_STEPS: readonly StepState[] = ['doing', 'undoing', 'owed'];

function checkSteps(name: string, steps: Readonly<Record<string, StepState>>): void {
  for (const [step, state] of Object.entries(steps))
    if (OPEN_STEPS.includes(state)) fail(`${step} of ${name} is ${state}`);
}

/** A shim that is mute holds up nobody who is to go: what runs is ended without it. */
function checkGoing(state: NodeState, podSandboxId: string): void {
  const { goal } = state.sandboxes.get(podSandboxId) ?? { goal: 'run' };
  if (goal === 'undo' || goal === 'remove') fail(`pod ${podSandboxId} is still there, its goal is ${goal}`);
  for (const container of state.containers.values())
    if (container.podSandboxId === podSandboxId && (container.goal === 'undo' || container.goal === 'remove'))
      fail(`container ${container.id} is still there, its goal is ${container.goal}`);
}

function checkSandbox(world: World, state: NodeState, sandbox: PodSandbox): void {
  const { id, goal, phase, stopped, claimed, sandboxer } = sandbox;
  const name = `pod ${id}`;
  if (goal === 'undo' || goal === 'remove') fail(`${name} is still there, its goal is ${goal}`);
  if (phase === 'creating') fail(`${name} is being made`);
  // A stop that could not be carried out was answered so, or cut short by a restart: clients repeat it.
  const isHeldUp = tasksIn(world, id).some((task) => task.status === 'running' && world.unkilled.has(task.id));
  if (goal === 'stop' && !stopped && !isHeldUp) fail(`${name} is not stopped`);
  checkSteps(name, sandbox.steps);
  if (sandbox.checkpoint !== undefined) fail(`${name} is in a checkpoint`);
  // Who stopped it knows of it.
  if (
    !claimed &&
    goal === 'run' &&
    ![...state.containers.values()].some((one) => one.podSandboxId === id && isClaimed(one))
  )
    fail(`${name} is there and nobody claimed it`);
  const holds = world.shims.get(id)?.tasks.get(id)?.status === 'running';
  if (phase === 'ready' && sandboxer !== 'none' && !holds) fail(`${name} is READY and what holds it does not run`);
  if (phase === 'ready' && sandbox.network !== null && !world.netns.has(sandbox.network.netnsPath))
    fail(`${name} is READY and its network namespace is gone`);
  if (phase === 'ready' && sandbox.network !== null && ![...world.addresses.values()].includes(id))
    fail(`${name} is READY and has no address`);
  if (!stopped) return;
  if ([...world.addresses.values()].includes(id)) fail(`${name} is stopped and has an address`);
  if (hasRunning(world, id)) fail(`${name} is stopped and something of it runs`);
  if ([...world.netns].some((path) => path.endsWith(`/${id}`))) fail(`${name} is stopped and has namespaces`);
}

function checkContainer(world: World, state: NodeState, container: Container): void {
  const { id, goal, phase } = container;
  const name = `container ${id}`;
  if (goal !== 'run') fail(`${name} is still there, its goal is ${goal}`);
  checkSteps(name, containerStepsOf(container));
  if (isStarting(container)) fail(`${name} is being started`);
  if (phase.kind === 'dead' || phase.kind === 'lost') fail(`nobody has said how ${name} ended`);
  if (!isClaimed(container)) fail(`${name} is there and nobody claimed it`);
  if (container.checkpoint !== undefined) fail(`${name} is in a checkpoint`);
  if (container.update !== undefined) fail(`the limits of ${name} are being changed`);
  const task = tasksIn(world, container.podSandboxId).find((one) => one.id === id);
  const runs = task?.status === 'running';
  const shown = containerStateOf(container);
  if (shown === 'CONTAINER_RUNNING' && !runs) fail(`${name} is RUNNING and its process is not`);
  if (shown !== 'CONTAINER_RUNNING' && runs) fail(`${name} is ${shown} and its process runs`);
  if (shown === 'CONTAINER_RUNNING' && stopOf(container) !== null && !world.unkilled.has(id))
    fail(`${name} runs and was to be stopped`);
  if (runs && execsOf(container).length > 0) fail(`${name} has commands that nobody waits for`);
  if (runs && task.execs.size > 0) fail(`a command runs in ${name} that nobody began`);
  if (runs && task.frozen) fail(`${name} is frozen`);
  if (phase.kind === 'exited' && mayHaveTask(container)) fail(`the task of ${name} is not deleted`);
  const pod = state.sandboxes.get(container.podSandboxId);
  if (pod === undefined) fail(`${name} has no pod`);
  if (pod?.stopped === true && runs) fail(`${name} runs in a stopped pod`);
  if (!world.bundles.has(id) && shown === 'CONTAINER_CREATED' && pod?.phase === 'ready')
    fail(`${name} can be started and has no bundle`);
}

function checkImages({ stuck }: World, state: NodeState): void {
  const used = new Set([...state.containers.values()].flatMap(imagesUnder));
  for (const { image, restore } of state.sandboxes.values()) {
    if (image !== null) used.add(image.id);
    const { containers = [], begun = true } = restore ?? {};
    for (const container of begun ? [] : containers)
      for (const id of [container.imageId, ...(container.mountedImages ?? []).map(({ imageId }) => imageId)])
        used.add(id);
  }
  for (const { id, removing } of state.images.values())
    if (removing && !used.has(id) && !stuck.has(id))
      fail(`the image ${id} is removed, and nothing needs it, and it is still there`);
}

/** Of an image that is shown all is there, but what was damaged since it was pulled. */
function checkLayers({ chains, changing }: World, { images }: NodeState): void {
  for (const { id, content, removing } of images.values())
    for (const { chainId } of removing ? [] : content.layers)
      if (!chains.has(chainId) && !changing.damaged.has(chainId)) fail(`the layer ${chainId} of image ${id} is gone`);
}

const imagesUnder = ({ imageId, mountedImages = [] }: Container): string[] => [
  imageId,
  ...mountedImages.map((mounted) => mounted.imageId),
];

/** Nothing of the world is nobody's. */
function checkOwners(world: World, { sandboxes, containers }: NodeState): void {
  const known = (id: string): boolean => sandboxes.has(id) || containers.has(id);
  const last = (path: string): string => path.slice(path.lastIndexOf('/') + 1);
  for (const id of world.dirs) if (!known(id)) fail(`there are files of pod ${id}, which nobody knows`);
  for (const id of world.bundles) if (!known(id)) fail(`there is a bundle of ${id}, which nobody knows`);
  for (const id of world.snapshots) if (!known(id)) fail(`there is a root file system of ${id}, which nobody knows`);
  for (const path of world.netns) if (!known(last(path))) fail(`a namespace is pinned at ${path}, which is nobody's`);
  for (const [address, id] of world.addresses) if (!known(id)) fail(`${address} is held by ${id}, which nobody knows`);
  for (const [id, { alive }] of world.shims) if (alive && !known(id)) fail(`a shim runs for ${id}, which nobody knows`);
  const sharedIds = new Set([...sandboxes.values()].map(({ sharedShimId }) => sharedShimId));
  for (const id of world.sharedShims.keys()) if (!sharedIds.has(id)) fail(`a shim ${id} runs, which no pod has`);
  for (const { id, status } of tasksIn(world, null))
    if (status === 'running' && !known(id)) fail(`a process of ${id} runs, which nobody knows`);
}
