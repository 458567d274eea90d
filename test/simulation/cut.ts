/**
 * A journal that is cut at an arbitrary record in the middle of everything, as a disk that lied leaves it after a power loss, or
 * a backup that was put back: the world of shims and files goes on from where it was, or was rebooted, and what a daemon finds
 * there is ahead of what it knows. Clients go on with what they were told. Nothing is promised of what the lost records said
 * but that the daemon comes to serve, answers every call, loses nothing again, and that whatever is listed can be removed.
 */
import { decide } from '../../src/domain/turn/decide.ts';
import { evolve } from '../../src/domain/turn/evolve.ts';
import { containerStateOf, liveTaskOf } from '../../src/domain/model/container-state.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';
import type { Sequenced } from '../../src/domain/model/records.ts';
import { copyState, initialState, type NodeState } from '../../src/domain/model/state.ts';
import { pinsThatShouldBe, tasksThatShouldRun } from '../../src/domain/node/expected-tasks.ts';
import { writeState } from '../../src/domain/turn/snapshot.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import { createMemoryJournal, type MemoryContents } from '../../src/journal/memory-journal.ts';
import { isOwnType } from '../../src/journal/own-records.ts';
import { createView, type View } from '../../src/projections/view.ts';
import { digestOf, redecided } from '../support/redecided.ts';
import { configureNetwork, NET_HANDLER } from './changing.ts';
import { simulatedEffects } from './effects.ts';
import { beginHistory, type History } from './history.ts';
import { idOf } from './ids.ts';
import { mend } from './unresponsive.ts';
import { Violation } from './violation.ts';
import { endUnbegun, forgetFetches, isAlive, leftovers, rebootWorld, tasksIn, type World } from './world.ts';

export interface CutResult {
  /** Records that were lost. */
  readonly lost: number;
  readonly strays: number;
  readonly answers: number;
}

const STEPS_MIN = 60;
const STEPS_MORE = 400;
const STEPS_MAX = 60_000;
const LOST_MAX = 120;
const REBOOTED_RATE = 0.5;
const DOUBTED_RATE = 0.7;
/** Longer than a claim (two minutes), and a few waits between two tries. */
const ANSWERED_WITHIN_MS = 600_000;
const FIRST_NEW_ID = 1_000_000;

/** What is left of a journal whose records after `seq` are gone. */
function cutContents(contents: MemoryContents, seq: number): MemoryContents {
  const upTo = <K>(seqs: ReadonlyMap<K, readonly number[]>): Map<K, number[]> =>
    new Map([...seqs].map(([key, all]) => [key, all.filter((one) => one <= seq)]));
  return {
    rows: contents.rows.slice(0, seq),
    seqsOfStream: upTo(contents.seqsOfStream),
    seqsOfCall: upTo(contents.seqsOfCall),
    chunks: [...contents.chunks],
    closed: [...contents.closed],
    snapshots: contents.snapshots.filter((snapshot) => snapshot.seq <= seq),
  };
}

/** A seq not too far back: what a journal's own records say of others' bodies came to the disk with these, and a turn is whole. */
function cutAt({ random, durable: { records, sync } }: History): number {
  sync();
  const own = records.findLastIndex(({ type }) => isOwnType(type)) + 1;
  const wanted = Math.max(own, 1, records.length - 1 - random.below(LOST_MAX));
  const next = records.findIndex(({ seq, cause, type }) => seq > wanted && (cause === null || type === 'effect.ended'));
  return next < 0 ? records.length : next;
}

const fold = (records: readonly (Sequenced | null)[]): NodeState => {
  const state = initialState();
  for (const record of records) if (record !== null) evolve(state, record);
  return state;
};

interface Life {
  readonly engine: Engine;
  readonly view: View;
  readonly records: readonly Sequenced[];
}

/** The daemon that starts on what is left. */
function startOn(history: History, contents: MemoryContents, state: NodeState, rebooted: boolean): Life {
  const { scheduler, random, world, guard } = history;
  const records: Sequenced[] = [];
  let nextId = FIRST_NEW_ID;
  const journal = createMemoryJournal({
    contents,
    commit: () => new Promise((resolve) => void scheduler.after(0.3, () => resolve())),
  });
  const view = createView(copyState(state), journal.head().seq);
  const real = simulatedEffects({
    world,
    scheduler,
    random,
    dimensions: history.dimensions,
    isDead: () => false,
    reached: () => undefined,
    isCalm: () => true,
    check: () => undefined,
    observe: () => engine.observe,
  });
  const engine = createEngine({
    journal,
    state,
    perform: {
      ...real,
      StopShim: (effect, context) =>
        endShimOf(world, engine.state, effect.podSandboxId, () => real.StopShim(effect, context)),
    },
    clock: { nowNs: scheduler.nowNs, monoNs: scheduler.monoNs, at: (dueAtNs, fire) => scheduler.at(dueAtNs, fire) },
    ids: { hex64: () => idOf(++nextId), uuid: () => `call-${++nextId}` },
    boot: 'boot',
    publish: guard((published) => {
      view.apply(published);
      records.push(...published);
      const bug = published.find(({ type }) => type === 'turn.failed');
      if (bug !== undefined) throw new Violation(`A turn failed: ${JSON.stringify(bug.body)}`);
    }),
    published: view.state,
    report: () => undefined,
    diskIsFull: () => false,
    fatal: history.violate,
    decide,
    digestOf,
  });
  const dead = tasksThatShouldRun(state).filter(({ task }) => !isAlive(world, task));
  const unpinned = pinsThatShouldBe(state).filter(({ paths }) => !paths.every((path) => world.netns.has(path)));
  const deadTasks = [...dead, ...unpinned].map(({ id }) => id);
  hear(history, engine);
  if (random.chance(DOUBTED_RATE))
    engine
      .observe({ kind: 'JournalDoubted', doubt: { what: 'Its newest records are missing.' } })
      .catch(history.violate);
  engine.start({ facts: world.changing.facts, rebooted, deadTasks, crash: null }).catch(history.violate);
  for (const handler of ['', NET_HANDLER.name])
    engine
      .observe({ kind: 'NetworkConfigured', problem: null, ...configureNetwork(world.changing, handler, 0) })
      .catch(history.violate);
  return { engine, view, records };
}

/** A shim takes the pause task with it when it is ended; tasks that it was never asked to end stay without one. */
function endShimOf<T>(world: World, { containers }: Readonly<NodeState>, podSandboxId: string, end: () => T): T {
  const { tasks } = world.shims.get(podSandboxId) ?? {};
  for (const task of tasks?.values() ?? []) {
    const container = containers.get(task.id);
    if (container !== undefined && liveTaskOf(container) !== null) continue;
    tasks?.delete(task.id);
    if (task.id !== podSandboxId && task.status === 'running') world.orphans.set(task.id, task);
  }
  return end();
}

/** Shims tell the new daemon. */
function hear({ world, scheduler, violate }: History, { observe }: Engine): void {
  const tell = (observation: Parameters<typeof observe>[0]): void =>
    void scheduler.after(3, () => void observe(observation).catch(violate));
  world.onExit = ({ id, podSandboxId, pid, exitStatus, exitedAtNs, oomKills }) =>
    tell({
      kind: 'TaskExited',
      podSandboxId,
      containerId: id,
      execId: null,
      exit: { pid, exitStatus, exitedAtNs: String(exitedAtNs), oomKills },
    });
  world.onShimDeath = (podSandboxId) => tell({ kind: 'ShimLost', podSandboxId });
  world.onOom = ({ id }) => tell({ kind: 'TaskOomed', containerId: id });
}

/** Steps on until the promise is settled; nothing may take longer than `limitMs` of virtual time. */
async function until<T>(history: History, what: string, promise: Promise<T>, limitMs = ANSWERED_WITHIN_MS): Promise<T> {
  const { scheduler } = history;
  let done: { readonly value: T } | null = null;
  promise.then((value) => void (done = { value }), history.violate);
  const untilNs = scheduler.monoNs() + BigInt(limitMs) * 1_000_000n;
  const last = scheduler.steps() + STEPS_MAX;
  for (;;) {
    const settled = done as { readonly value: T } | null;
    if (settled !== null) return settled.value;
    if (history.violation !== null) throw history.violation as Error;
    if (scheduler.monoNs() > untilNs || scheduler.steps() > last) throw new Violation(`${what} has no answer.`);
    if (!(await scheduler.step())) throw new Violation(`${what} has no answer, and nothing is left to happen.`);
  }
}

/** What an operator does once he knows: whatever no record explains goes. */
function clearStrays(world: World, { sandboxes, containers }: Readonly<NodeState>): number {
  const isKnown = (text: string): boolean =>
    [...sandboxes.keys(), ...containers.keys()].some((id) => text.includes(id));
  const before = leftovers(world).length;
  for (const set of [world.dirs, world.bundles, world.netns, world.snapshots, world.unpacked])
    for (const name of set) if (!isKnown(name)) set.delete(name);
  for (const path of world.imageMounts.keys()) if (!isKnown(path)) world.imageMounts.delete(path);
  for (const [address, owner] of world.addresses) if (!isKnown(owner)) world.addresses.delete(address);
  for (const id of world.orphans.keys()) if (!isKnown(id)) world.orphans.delete(id);
  for (const [id, { tasks, podSandboxId }] of world.shims) {
    if (!isKnown(podSandboxId)) world.shims.delete(id);
    else for (const task of tasks.keys()) if (!isKnown(task)) tasks.delete(task);
  }
  const held = new Set([...world.shims.values()].map(({ pid }) => pid));
  for (const [id, pid] of world.sharedShims) if (!held.has(pid)) world.sharedShims.delete(id);
  return before - leftovers(world).length;
}

/** Calls of clients that go on with what they were told before the cut. */
function goingOn({ random }: History, before: Readonly<NodeState>): CallDraft[] {
  const drafts: CallDraft[] = [];
  for (const { id: podSandboxId, config } of before.sandboxes.values())
    drafts.push(
      random.pick<CallDraft>([
        { method: 'RunPodSandbox', config, runtimeHandler: '' },
        { method: 'RunPodSandbox', config, runtimeHandler: '' },
        { method: 'StopPodSandbox', podSandboxId },
        { method: 'RemovePodSandbox', podSandboxId },
      ]),
    );
  for (const { id: containerId, podSandboxId, config } of before.containers.values()) {
    drafts.push(
      random.pick<CallDraft>([
        { method: 'StartContainer', containerId },
        { method: 'StopContainer', containerId, timeoutSeconds: '2' },
        { method: 'RemoveContainer', containerId },
        { method: 'CreateContainer', podSandboxId, config },
        { method: 'UpdateContainerResources', containerId, resources: { cpuShares: '300' } },
        { method: 'ReopenContainerLog', containerId },
      ]),
    );
  }
  drafts.push({ method: 'PullImage', image: 'registry.test/app:1', credentials: null });
  drafts.push({ method: 'ReloadConfig', changes: [] }, { method: 'ClearStrays', strays: ['a shim'], count: 1 });
  return drafts;
}

/** One history up to some moment, cut, and what comes of it. */
export async function runCut(seed: number): Promise<CutResult> {
  const history = await beginHistory(seed, STEPS_MIN + (seed % STEPS_MORE));
  const { random, world, daemon, durable } = history;
  if (daemon === null) throw new Violation('No daemon lives.');
  const seq = cutAt(history);
  const lost = durable.records.length - seq;
  const before = copyState(durable.state);
  daemon.dead = true;
  history.daemon = null;
  world.nextCommitFails = false;
  world.diskIsFull = false;
  forgetFetches(world);
  mend(world);
  const rebooted = random.chance(REBOOTED_RATE);
  if (rebooted) rebootWorld(world);
  // Nobody reads any more what a process writes that waits to be let go.
  else
    for (const task of tasksIn(world, null)) if (task.status === 'created') endUnbegun(world, history.scheduler, task);
  const known = durable.parsed.slice(0, seq);
  const life = startOn(history, cutContents(history.contents, seq), fold(known), rebooted);
  return await liveOn(history, life, { known, before, lost });
}

interface Cut {
  readonly known: readonly (Sequenced | null)[];
  readonly before: Readonly<NodeState>;
  readonly lost: number;
}

async function liveOn(history: History, life: Life, { known, before, lost }: Cut): Promise<CutResult> {
  const { random, world } = history;
  const { engine, view } = life;
  let answers = 0;

  async function call(draft: CallDraft, isPatient = true): Promise<boolean> {
    const abort = new AbortController();
    if (!isPatient) history.scheduler.after(200, () => abort.abort('the client has gone'));
    const options = { caller: null, deadlineNs: null, signal: abort.signal };
    const { outcome } = await until(history, JSON.stringify(draft), engine.call(draft, options));
    answers += 1;
    if (!outcome.ok && outcome.failure.reason === 'Bug' && !history.dimensions.turnsThrow)
      throw new Violation(`${JSON.stringify(draft)} was answered with ${outcome.failure.message}`);
    return outcome.ok;
  }

  for (const draft of goingOn(history, before)) await call(draft, random.chance(0.7));
  await call({ method: 'AcknowledgeJournal', reason: 'It was cut.' });
  for (const draft of goingOn(history, before)) await call(draft);
  // Creations that nobody claims are undone after two minutes.
  await until(history, 'time', new Promise<void>((resolve) => void history.scheduler.after(300_000, resolve)), 700_000);
  let strays = clearStrays(world, view.state);
  for (let round = 0; view.state.sandboxes.size + view.state.containers.size + view.state.images.size > 0; round += 1) {
    if (round > 40) throw new Violation(`It can't be removed: ${JSON.stringify([...view.state.sandboxes.values()])}`);
    for (const container of [...view.state.containers.values()])
      if (containerStateOf(container) !== null) await call({ method: 'RemoveContainer', containerId: container.id });
    for (const podSandboxId of [...view.state.sandboxes.keys()]) {
      await call({ method: 'StopPodSandbox', podSandboxId });
      await call({ method: 'RemovePodSandbox', podSandboxId });
    }
    for (const { id, removing } of [...view.state.images.values()])
      if (!removing) await call({ method: 'RemoveImage', image: id });
    await until(history, 'time', new Promise<void>((resolve) => void history.scheduler.after(5_000, resolve)));
  }
  strays += clearStrays(world, view.state);
  const left = leftovers(world);
  if (left.length > 0) throw new Violation(`All was removed and this is left: ${left.join(', ')}.`);
  checkJournal(history, life, known);
  return { lost, strays, answers };
}

function checkJournal(history: History, { engine, view, records }: Life, known: readonly (Sequenced | null)[]): void {
  const live = writeState(engine.state);
  if (writeState(view.state) !== live) throw new Violation('The view differs from the live state.');
  const all = [...known.filter((record) => record !== null), ...records];
  if (writeState(fold(all)) !== live) throw new Violation('fold(all) differs from the live state.');
  const [difference] = redecided(all, { digestOf }).differences;
  if (difference !== undefined)
    throw new Violation(`Record ${difference.seq} is decided otherwise a second time: ${JSON.stringify(difference)}.`);
  if (history.violation !== null) throw history.violation as Error;
}
