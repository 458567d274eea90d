/**
 * What must hold, whatever happens. Checkers look at durable records, at the recovered state and at the simulated
 * node; they share no code with what they check beyond the record types.
 */
import {
  containerStateOf,
  execsOf,
  containerExitOf,
  isCreated,
  isRunning,
  liveTaskOf,
  runOf,
  taskStepOf,
} from '../../src/domain/model/container-state.ts';
import type { EffectKind, EffectOf } from '../../src/domain/model/effects.ts';
import type { Sequenced } from '../../src/domain/model/records.ts';
import type { NodeState } from '../../src/domain/model/state.ts';
import type { Observation } from '../../src/domain/model/observation.ts';
import type { History } from './history.ts';
import { checkBearable } from './refusals.ts';
import { Violation } from './violation.ts';
import { DEFAULT_SHARES, NO_LIMIT, runningContainers, type World } from './world.ts';

/** What clients were told, and may rely on for ever. */
export interface Ledger {
  /** Sandboxes and containers whose creation was answered with OK and whose removal nobody asked for. */
  readonly created: Map<string, 'sandbox' | 'container'>;
  /** Those whose removal somebody has asked for. */
  readonly removalAsked: Set<string>;
  readonly started: Set<string>;
  readonly stopped: Set<string>;
  readonly removed: Set<string>;
  /** Exit codes that were shown. */
  readonly shown: Map<string, number>;
  /** How tasks ended while a shim lived to tell it. */
  readonly trueExits: Map<string, number>;
}

export const createLedger = (): Ledger => ({
  created: new Map(),
  removalAsked: new Set(),
  started: new Set(),
  stopped: new Set(),
  removed: new Set(),
  shown: new Map(),
  trueExits: new Map(),
});

const fail = (message: string): never => {
  throw new Violation(message);
};

/** Replies that were given are kept by what a restart recovers. */
export function checkRecovered(ledger: Ledger, state: NodeState, _rebooted: boolean): void {
  for (const [id, kind] of ledger.created) {
    const there = kind === 'sandbox' ? state.sandboxes.has(id) : state.containers.has(id);
    if (!there) fail(`${kind} ${id} was answered with OK and a restart does not know it.`);
  }
  for (const id of ledger.started) {
    const container = state.containers.get(id);
    if (container !== undefined && runOf(container) === null)
      fail(`Container ${id} was answered as started; a restart finds it not started.`);
  }
  for (const id of ledger.stopped) {
    const container = state.containers.get(id);
    if (container !== undefined && isRunning(container))
      fail(`Container ${id} was answered as stopped; a restart finds it running.`);
  }
  for (const id of ledger.removed)
    if (state.containers.has(id) || state.sandboxes.has(id)) fail(`${id} was answered as removed; a restart finds it.`);
  checkNames(state);
  checkLabels(state);
  checkShown(ledger, state);
}

function checkNames(state: Readonly<NodeState>): void {
  const owners = new Map<string, string>();
  for (const { id, name } of [...state.sandboxes.values(), ...state.containers.values()]) {
    const other = owners.get(name);
    if (other !== undefined) fail(`The name ${name} is held by ${other} and by ${id}.`);
    owners.set(name, id);
  }
}

/** Categories tell pods apart; the simulated clients ask for none by name. */
function checkLabels(state: Readonly<NodeState>): void {
  const owners = new Map<string, string>();
  for (const { id, selinux } of state.sandboxes.values()) {
    if (selinux === undefined) continue;
    const [categories] = /c\d+,c\d+$/.exec(selinux.mount) ?? fail(`Pod ${id} is labelled ${selinux.mount}.`);
    const other = owners.get(categories);
    if (other !== undefined) fail(`${categories} belong to ${other} and to ${id}.`);
    owners.set(categories, id);
  }
}

function checkShown(ledger: Ledger, state: Readonly<NodeState>): void {
  for (const container of state.containers.values()) {
    const { id } = container;
    const exit = containerExitOf(container);
    const shown = ledger.shown.get(id);
    if (shown !== undefined && exit === null) fail(`Container ${id} was EXITED with ${shown} and is not any more.`);
    if (shown !== undefined && exit !== null && exit.exitStatus !== shown)
      fail(`Container ${id} showed exit code ${shown} and now ${exit.exitStatus}.`);
    if (exit !== null) ledger.shown.set(id, exit.exitStatus);
  }
}

/** Whoever told of something and was answered may forget it: what is durable says it. */
export function checkAcknowledged({ unread }: World, state: Readonly<NodeState>, observation: Observation): void {
  // What can't be decided about at all is only written down.
  if ('podSandboxId' in observation && unread.has(observation.podSandboxId)) return;
  if (observation.kind === 'TaskExited') {
    const { containerId, exit } = observation;
    const container = state.containers.get(containerId);
    const sandbox = state.sandboxes.get(containerId);
    const isAwaited =
      container === undefined
        ? sandbox?.taskExit === null && sandbox.task?.pid === exit.pid && sandbox.steps.task === 'done'
        : liveTaskOf(container)?.pid === exit.pid && taskStepOf(container) === 'done';
    if (isAwaited) fail(`The exit of ${containerId} was acknowledged and is not durable.`);
  }
  if (observation.kind === 'ShimLost') {
    const sandbox = state.sandboxes.get(observation.podSandboxId);
    if (sandbox?.steps.shim === 'done' && sandbox.shimContact !== 'gone')
      fail(`The end of the shim of ${sandbox.id} was acknowledged and is not durable.`);
  }
}

export const CHECKS = {
  /** Runs whenever durable records were made visible. */
  afterPublish(history: History, state: Readonly<NodeState>, records: readonly Sequenced[]): void {
    const head = history.contents.rows.length;
    for (const { seq } of records) if (seq > head) fail(`Record ${seq} is visible and not durable (head is ${head}).`);
    checkNames(state);
    checkLabels(state);
    checkShown(history.ledger, state);
    checkExitCodes(history, records);
    checkExecs(history);
    checkFrozen(history);
    checkLimits(history);
    checkRestored(state);
    if (records[0]?.type === 'daemon.started') checkFoundDead(history, state);
  },

  /** Runs when an effect begins: its intent is durable, and Delete destroys no exit that is not written down. */
  beforeEffect(history: History, kind: EffectKind, effect: EffectOf<EffectKind>): void {
    const stream = streamOf(effect);
    if (stream !== null && kind !== 'WaitUntil' && !history.durable.hasIntent(stream, kind))
      fail(`${kind} on ${stream} begins without a durable intent.`);
    checkBearable(history.world, kind, effect);
    if (effect.kind === 'DeleteTask') checkDelete(history, effect.podSandboxId, effect.containerId);
    if (effect.kind === 'StopShim') checkStopShim(history.world, effect.podSandboxId);
    if (effect.kind === 'CleanContainer') checkClean(history.world, effect.containerId);
  },

  /** The journal as a whole: one exit per container, names reserved once at a time, sequence without gaps. */
  wholeJournal(records: readonly Sequenced[]): void {
    const exits = new Map<string, number>();
    for (const { stream, type } of records)
      if (type === 'container.exited') exits.set(stream, (exits.get(stream) ?? 0) + 1);
    for (const [stream, count] of exits) if (count > 1) fail(`${stream} exited ${count} times.`);
  },
};

/** A command that runs is under way, or owed an end. Only its shim can end it by itself: without one it ends with its task. */
function checkExecs({ daemon, world }: History): void {
  for (const task of runningContainers(world)) {
    if (world.shims.get(task.podSandboxId)?.alive !== true) continue;
    const container = daemon?.engine.state.containers.get(task.id);
    if (container === undefined) continue;
    for (const execId of task.execs)
      if (!execsOf(container).includes(execId))
        fail(`The command ${execId} runs in container ${task.id} and nobody knows of it.`);
  }
}

/** Whom a checkpoint has frozen is thawed, or owed it. */
function checkFrozen({ daemon, world }: History): void {
  for (const task of runningContainers(world)) {
    const container = daemon?.engine.state.containers.get(task.id);
    if (!task.frozen || container === undefined) continue;
    const ofPod = daemon?.engine.state.sandboxes.get(container.podSandboxId)?.checkpoint;
    if (container.checkpoint === undefined && ofPod?.containerIds.includes(task.id) !== true)
      fail(`Container ${task.id} stays frozen.`);
  }
}

/** What a start found dead is not shown as RUNNING, from the first answer on (C18). */
function checkFoundDead({ foundDead }: History, state: Readonly<NodeState>): void {
  for (const container of state.containers.values())
    if (foundDead.includes(container.id) && containerStateOf(container) === 'CONTAINER_RUNNING')
      fail(`Container ${container.id} was dead when the daemon started and is RUNNING.`);
}

/** A pod that is restored is shown with all of its containers, and they with it. */
function checkRestored({ sandboxes, containers }: Readonly<NodeState>): void {
  for (const { id, restore, phase, goal } of sandboxes.values())
    for (const { containerId } of restore?.containers ?? []) {
      const container = containers.get(containerId);
      if (container === undefined) continue;
      if (isCreated(container) && container.goal === 'run' && container.files !== 'done')
        fail(`Container ${containerId} is shown before it is made.`);
      if (goal === 'run' && isCreated(container) !== (phase !== 'creating'))
        fail(`Container ${containerId} is ${isCreated(container) ? 'shown before' : 'not shown with'} its pod ${id}.`);
    }
}

/** What is shown of a container's limits is in force, unless a change is under way or in doubt. */
function checkLimits({ daemon, world }: History): void {
  for (const task of runningContainers(world)) {
    if (world.shims.get(task.podSandboxId)?.alive !== true) continue;
    const container = daemon?.engine.state.containers.get(task.id);
    if (container?.phase.kind !== 'running' || container.update !== undefined) continue;
    const shown = Number(container.resources?.cpuShares ?? DEFAULT_SHARES);
    if (shown !== task.shares) fail(`Container ${task.id} has ${task.shares} CPU shares and shows ${shown}.`);
    const pids = Number(container.nri?.adjusted?.adjust.linux?.resources?.pids?.limit ?? NO_LIMIT);
    if (pids !== task.pids) fail(`Container ${task.id} may have ${task.pids} processes, and plugins said ${pids}.`);
  }
}

/** As long as a shim lives that can tell it, the code that is written down is the true one. */
function checkExitCodes({ world, ledger, daemon }: History, records: readonly Sequenced[]): void {
  for (const record of records) {
    if (record.type !== 'container.exited' || record.body.reason === 'StartError') continue;
    const id = record.stream.slice('container/'.length);
    const truth = ledger.trueExits.get(id);
    const podSandboxId = daemon?.engine.state.containers.get(id)?.podSandboxId ?? '';
    if (truth === undefined || world.shims.get(podSandboxId)?.alive !== true) continue;
    if (record.body.message === 'its shim does not answer') continue;
    if (truth !== record.body.exitStatus)
      fail(
        `Container ${id} ended with ${truth} and is recorded as ${record.body.exitStatus} (${record.body.message}).`,
      );
  }
}

function checkDelete(history: History, podSandboxId: string, containerId: string): void {
  const shim = history.world.shims.get(podSandboxId);
  const task = shim?.tasks.get(containerId);
  if (shim?.alive !== true || task === undefined || task.status !== 'stopped') return;
  const known = history.durable.hasEnd(containerId);
  if (!known && !isUndone(history, podSandboxId))
    fail(
      `The task of ${containerId} is deleted before its exit is durable: ${JSON.stringify(history.daemon?.engine.state.sandboxes.get(podSandboxId))} ${JSON.stringify(history.daemon?.engine.state.containers.get(containerId))}`,
    );
}

/** Of a task that was not started, the process would wait for ever. */
function checkStopShim({ shims }: World, podSandboxId: string): void {
  const shim = shims.get(podSandboxId);
  if (shim?.alive !== true) return;
  for (const { id, status } of shim.tasks.values())
    if (status === 'created' && id !== podSandboxId)
      fail(`The shim of ${podSandboxId} is stopped and has a task of ${id}.`);
}

/** Its root file system is mounted as long as there is a task. */
function checkClean({ shims, orphans }: World, containerId: string): void {
  const isThere = [...shims.values()].some(({ alive, tasks }) => alive && tasks.has(containerId));
  if (isThere || orphans.has(containerId)) fail(`The files of ${containerId} are removed before its task is deleted.`);
}

/** Undoing a creation that a crash left in doubt needs no exit, nor does removing it: nobody ever saw it run. */
const isUndone = ({ daemon, durable }: History, podSandboxId: string): boolean =>
  daemon?.engine.state.sandboxes.get(podSandboxId)?.goal === 'undo' ||
  !durable.records.some(({ type, stream }) => type === 'sandbox.ready' && stream === `sandbox/${podSandboxId}`);

function streamOf(effect: EffectOf<EffectKind>): string | null {
  if ('containerId' in effect)
    return 'podSandboxId' in effect && effect.podSandboxId === effect.containerId
      ? `sandbox/${effect.containerId}`
      : `container/${effect.containerId}`;
  if ('podSandboxId' in effect) return `sandbox/${effect.podSandboxId}`;
  return null;
}
