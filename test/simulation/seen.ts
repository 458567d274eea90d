/**
 * The simulated node and the daemon's answers in the words of the model of CRI: what runs, what is left, what clients
 * are shown. The only place that knows both.
 */
import { containerStateOf, containerExitOf, startedAtNsOf } from '../../src/domain/model/container-state.ts';
import type { Sequenced } from '../../src/domain/model/records.ts';
import type { Container } from '../../src/domain/model/state.ts';
import type { CallReply, PerformEffects } from '../../src/engine/ports.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import { criEventsOf } from '../../src/projections/cri-events.ts';
import type { Model } from './model/model.ts';
import type { Signals } from './model/signals.ts';
import type { Asked, Node, Reply, ShownContainer } from './model/words.ts';
import { hasRunning, tasksIn, type World } from './world.ts';

export const nodeOf = (world: World): Node => ({
  runs: (id) => tasksIn(world, null).some((task) => task.id === id && task.status === 'running'),
  runsInPod: (podSandboxId) => hasRunning(world, podSandboxId),
  hasRun: (id) => world.everRan.has(id),
  traces: (id) => tracesOf(world, id),
  hasAddress: (podSandboxId) => [...world.addresses.values()].includes(podSandboxId),
  hasNamespaces: (podSandboxId) => [...world.netns].some((path) => path.endsWith(`/${podSandboxId}`)),
  hasLayers: () => world.chains.size + world.changing.damaged.size > 0,
  trueEnd: (id) => world.ends.get(id),
  ranOutOfMemory: (id) => world.oomed.has(id),
  failures: () => world.failures,
  wasCutOff: (podSandboxId) => (podSandboxId === '' ? world.cutOff.size > 0 : world.cutOff.has(podSandboxId)),
  pluginsSaid: (reason) => [...world.pluginsSaid].some((said) => said === reason),
  hadBugs: () => world.threw,
  doubtsJournal: () => world.changing.dimensions.journalIsDoubted,
  lackedHandler: (name) => world.changing.lacked.has(name),
  hadMovingTags: () => [...world.changing.given.values()].some(({ size }) => size > 1),
  gave: (reference, imageId) => world.changing.given.get(reference)?.has(imageId) === true,
  diskWasFull: () => world.diskWasFull,
  clockWasSet: () => world.clockWasSet,
  exitOfCommand: (execId) => world.commandExits.get(execId),
});

function tracesOf(world: World, id: string): readonly string[] {
  return [
    ...(world.dirs.has(id) ? ['its files'] : []),
    ...(world.bundles.has(id) ? ['its bundle'] : []),
    ...(world.snapshots.has(id) ? ['its root file system'] : []),
    ...(world.shims.get(id)?.alive === true ? ['its shim'] : []),
    ...([...world.netns].some((path) => path.endsWith(`/${id}`)) ? ['its namespaces'] : []),
    ...([...world.addresses.values()].includes(id) ? ['its address'] : []),
    ...(tasksIn(world, null).some((task) => task.id === id && task.status === 'running') ? ['its process'] : []),
  ];
}

export const askedOf = (draft: CallDraft): Asked => draft;

export function replyOf({ outcome }: CallReply): Reply {
  if (!outcome.ok) return { ok: false, reason: outcome.failure.reason };
  const { containerIds, ...response } = outcome.value;
  return {
    ok: true,
    ...response,
    ...(containerIds === undefined ? {} : { containerIds: Object.values(containerIds) }),
  };
}

/** What a client of this record hears of it, and what is written down of its call. */
export function tellModel(model: Model, record: Sequenced): void {
  for (const { type, containerId, atNs } of criEventsOf(record)) model.told({ type, id: containerId, atNs });
  if (record.type === 'call.completed') model.coded(record.body.method, record.body.failure?.reason, record.body.code);
}

const atOf = (ns: string | null | undefined): bigint | null => (ns === null || ns === undefined ? null : BigInt(ns));

/** As ContainerStatus would answer; null: it would not find it. */
function shownOf(container: Container): ShownContainer | null {
  const state = containerStateOf(container);
  if (state === null) return null;
  const { id } = container;
  const exit = containerExitOf(container);
  return {
    id,
    state,
    reason: exit?.reason ?? '',
    exitCode: exit?.exitStatus ?? 0,
    createdAtNs: BigInt(container.createdAtNs),
    startedAtNs: atOf(startedAtNsOf(container)),
    finishedAtNs: atOf(exit?.finishedAtNs),
  };
}

/** Performs as `real` does and notes what only the performance tells. */
export const watched = (real: PerformEffects, world: World, signals: Signals): PerformEffects => ({
  ...real,
  async KillTask(effect, context) {
    try {
      return await real.KillTask(effect, context);
    } catch (error) {
      signals.failed(effect.containerId);
      world.unkilled.add(effect.containerId);
      throw error;
    }
  },
  async RunExec(effect, context) {
    const result = await real.RunExec(effect, context);
    world.commandExits.set(effect.execId, result.exitStatus);
    return result;
  },
});

/** Looks at every container that these records are about, or at all of them where they are about all. */
export function lookAtChanges(
  model: Model,
  containers: ReadonlyMap<string, Container>,
  records: readonly Sequenced[],
): void {
  const changed = new Set<Container>();
  for (const { stream, type } of records) {
    if (type === 'daemon.started') for (const container of containers.values()) changed.add(container);
    const container = stream.startsWith(CONTAINER) ? containers.get(stream.slice(CONTAINER.length)) : undefined;
    if (container !== undefined) changed.add(container);
  }
  for (const container of changed) {
    const shown = shownOf(container);
    if (shown !== null) model.looked(shown);
  }
}

const CONTAINER = 'container/';
