/**
 * One history: daemons that live and die on one simulated node, clients that use them, and checks on every step.
 * Everything that varies comes from the seed. A plant replaces one piece by a faulty one, to see that it is found.
 */
import type { decide as decideInput } from '../../src/domain/decide.ts';
import { evolve } from '../../src/domain/evolve.ts';
import { redecide } from '../../src/domain/redecide.ts';
import { initialState, type NodeState } from '../../src/domain/state.ts';
import { writeState, readState } from '../../src/domain/snapshot.ts';
import { isClosedStream } from '../../src/engine/closed-streams.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { createEngine, type Engine } from '../../src/engine/engine.ts';
import type { Observation, PerformEffects } from '../../src/engine/ports.ts';
import { pinsThatShouldBe, tasksThatShouldRun } from '../../src/engine/recovery.ts';
import { createMemoryJournal, emptyContents, type MemoryContents } from '../../src/journal/memory-journal.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { createView, type View } from '../../src/projections/view.ts';
import { foldJournal } from '../support/fold.ts';
import { BOUNDARIES, type Boundary } from './boundaries.ts';
import { CHECKS, checkRecovered, createLedger, type Ledger, Violation } from './checks.ts';
import { startClients } from './clients.ts';
import { simulatedEffects } from './effects.ts';
import { IMAGE } from './images.ts';
import { CONF_LIST, factsOf } from './facts.ts';
import { createRandom, type Random } from './random.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import { createWorld, disturb, isAlive, leftovers, rebootWorld, runningContainers, type World } from './world.ts';

export interface Plant {
  readonly name: string;
  /** Where the daemon has to die for the bug to matter, if that is seldom; whatever comes up otherwise. */
  readonly target?: Boundary;
  readonly decide?: typeof decideInput;
  /** Replies before the records are durable. */
  readonly replyBeforeCommit?: boolean;
  readonly perform?: (real: PerformEffects, world: World) => PerformEffects;
  /** Deletes a task at its exit, before the exit is written down. */
  readonly deleteAtExit?: boolean;
}

export interface HistoryOptions {
  readonly seed: number;
  /** Where the daemon dies first; random moments besides. */
  readonly target: Boundary;
  readonly plant?: Plant;
}

export interface HistoryResult {
  readonly steps: number;
  readonly crashes: ReadonlyMap<Boundary | 'between steps', number>;
  /** Hash of the last record: two runs of a seed write the same journal. */
  readonly headHash: string;
  readonly records: readonly JournalRecord[];
}

/** One life of the daemon. */
export interface Daemon {
  readonly engine: Engine;
  readonly view: View;
  dead: boolean;
}

export interface History {
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly world: World;
  readonly contents: MemoryContents;
  readonly ledger: Ledger;
  /** The living daemon, if there is one. */
  daemon: Daemon | null;
  /** Sessions are rare unless they are what the history is about. */
  readonly sessionRate: number;
  /** One of so many pods is restored from a checkpoint: few, unless the history is about that. */
  readonly restoredEvery: number;
  /** Faults, disturbances and crashes are over: the history winds down. */
  calm: boolean;
}

const STEPS_MIN = 140;
const STEPS_MAX = 20_000;

const CUT_SHORT = [
  ['EndExec', 'RunExec'],
  ['EndCheckpoint', 'CheckpointTask'],
  ['EndPodCheckpoint', 'CheckpointPod'],
] as const;

export async function runHistory({ seed, target, plant }: HistoryOptions): Promise<HistoryResult> {
  const random = createRandom(seed);
  const scheduler = createScheduler(random);
  const world = createWorld();
  const crashes = new Map<Boundary | 'between steps', number>();
  const history: History = {
    random,
    scheduler,
    world,
    contents: emptyContents(),
    ledger: createLedger(),
    daemon: null,
    sessionRate: target.includes('Stream') ? 1 : 0.4,
    // A multiple of three never has users of its own, which the checkpointed pod did not have.
    restoredEvery: target.includes('ReadPodCheckpoint') ? 3 : 6,
    calm: false,
  };
  // What is cleared up only by a daemon that has not begun it has to be cut short first.
  const cutShort = CUT_SHORT.find(([clearedUpBy]) => target.includes(clearedUpBy))?.[1] ?? null;
  let targetIn = cutShort !== null || random.chance(0.7) ? 1 : 2 + random.below(2);
  // What only happens after a restart needs an earlier crash to be reached.
  const crashRate = /ReconnectShim|daemon.started/.test(target) ? 0.02 : 0.004;
  // Tasks that run out of memory and shims that die are rare unless they are what the history is about.
  const disturbRate = target.includes('shim.lost') ? 0.08 : 0.02;
  const oomRate = target.includes('oomed') ? 0.5 : 0;
  let violation: unknown = null;
  let nextId = 0;
  let restarting = false;

  const guard =
    <A extends unknown[]>(run: (...args: A) => void) =>
    (...args: A): void => {
      try {
        run(...args);
      } catch (error) {
        violation ??= error;
      }
    };

  function crash(where: Boundary | 'between steps'): void {
    if (history.daemon === null || history.daemon.dead) return;
    crashes.set(where, (crashes.get(where) ?? 0) + 1);
    history.daemon.dead = true;
    history.daemon = null;
    scheduleRestart();
  }

  function scheduleRestart(): void {
    if (restarting) return;
    restarting = true;
    scheduler.after(200, () => {
      restarting = false;
      void start().catch((error: unknown) => (violation ??= error));
    });
  }

  /** True when the daemon dies here. */
  function reached(boundary: Boundary): boolean {
    if (boundary !== target || history.calm || targetIn <= 0) return false;
    targetIn -= 1;
    if (targetIn > 0) return false;
    crash(boundary);
    return true;
  }

  async function start(): Promise<void> {
    const rebooted = !history.calm && history.contents.rows.length > 0 && random.chance(0.07);
    if (rebooted) rebootWorld(world);
    const life: { dead: boolean } = { dead: false };
    const journal = createMemoryJournal({ contents: history.contents, commit: (records) => commit(life, records) });
    const appending = plant?.replyBeforeCommit ? { ...journal, append: hasty(journal.append) } : journal;
    const state = await foldJournal(journal);
    const viewState = readState(writeState(state));
    const view = createView(viewState, journal.head().seq);
    checkRecovered(history.ledger, state, rebooted);

    const real = simulatedEffects({
      world,
      scheduler,
      random,
      isDead: () => life.dead,
      reached: (kind, moment) => {
        if (life.dead) return;
        const isRunning = kind === cutShort && moment === 'half' && !history.calm;
        if (isRunning && random.chance(0.8)) crash(`effect ${kind} half`);
        else reached(`effect ${kind} ${moment}`);
      },
      failureRate: () => (history.calm ? 0 : 0.03),
      check: guard((kind, effect) => CHECKS.beforeEffect(history, kind, effect)),
      observe: () => engine.observe,
    });
    const engine = createEngine({
      journal: appending,
      state,
      perform: plant?.perform?.(real, world) ?? real,
      clock: {
        nowNs: scheduler.nowNs,
        monoNs: scheduler.monoNs,
        at: (dueAtNs, fire) => scheduler.at(dueAtNs, () => void (life.dead ? undefined : fire())),
      },
      ids: { hex64: () => String(++nextId).padStart(64, '0'), uuid: () => `call-${++nextId}` },
      boot: 'boot',
      publish: guard((records) => {
        if (life.dead) return;
        view.apply(records);
        CHECKS.afterPublish(history, view.state, records);
      }),
      diskIsFull: () => false,
      fatal: (error) => (life.dead ? undefined : (violation ??= error)),
      ...(plant?.decide === undefined ? {} : { decide: plant.decide }),
    });
    const daemon: Daemon = {
      engine,
      view,
      get dead() {
        return life.dead;
      },
      set dead(value) {
        life.dead = value;
      },
    };
    history.daemon = daemon;
    const dead = tasksThatShouldRun(state).filter(({ task }) => !isAlive(world, task.pid));
    const unpinned = pinsThatShouldBe(state).filter(({ paths }) => !paths.every((path) => world.netns.has(path)));
    const deadTasks = [...dead, ...unpinned].map(({ id }) => id);
    engine
      .start({
        facts: factsOf(seed, IMAGE.repoTags[0] ?? null),
        rebooted,
        deadTasks,
        crash: null,
      })
      .catch((error: unknown) => (violation ??= error));
    tell({ kind: 'NetworkConfigured', confList: CONF_LIST, problem: null });
    if (random.chance(0.6)) {
      scheduler.after(50, () =>
        tell({ kind: 'NetworkConfigured', confList: { ...CONF_LIST, name: `sim${random.below(3)}` }, problem: null }),
      );
    }
  }

  /** The disk: a batch takes a moment, and a crash meanwhile loses it or keeps it. */
  function commit(life: { readonly dead: boolean }, records: readonly JournalRecord[]): Promise<void> {
    return new Promise((resolve) => {
      if (life.dead) return;
      const inputs = records.filter((record) => record.cause === null || record.type === 'effect.ended');
      if (inputs.some((record) => reached(`append ${record.type} lost` as Boundary))) return;
      scheduler.after(0.3, () => {
        if (life.dead) return void (random.chance(0.5) ? resolve() : undefined);
        // kept: durable from here, though the daemon dies before it learns it.
        for (const record of inputs) reached(`append ${record.type} kept` as Boundary);
        resolve();
      });
    });
  }

  /** Tells the living daemon, now and perhaps once more; an event that nobody hears is lost. */
  function tell(observation: Observation): void {
    history.daemon?.engine.observe(observation).catch(() => undefined);
  }

  world.onExit = (task) => {
    const exit = {
      pid: task.pid,
      exitStatus: task.exitStatus,
      exitedAtNs: String(task.exitedAtNs),
      oomKills: task.oomKills,
    };
    const observation: Observation = {
      kind: 'TaskExited',
      podSandboxId: task.podSandboxId,
      containerId: task.id,
      execId: null,
      exit,
    };
    const hearing = history.daemon;
    if (world.shims.get(task.podSandboxId)?.alive) history.ledger.trueExits.set(task.id, task.exitStatus);
    if (plant?.deleteAtExit) world.shims.get(task.podSandboxId)?.tasks.delete(task.id);
    // The pending Wait answers whoever asked; the event goes to whoever listens, at times late or twice or never.
    scheduler.after(
      3,
      () =>
        void (hearing !== null && !hearing.dead && world.shims.get(task.podSandboxId)?.alive
          ? tell(observation)
          : undefined),
    );
    if (random.chance(0.8)) scheduler.after(random.chance(0.2) ? 3000 : 3, () => tell(observation));
    if (random.chance(0.3)) scheduler.after(20, () => tell(observation));
    if (task.oomKills > 0 && random.chance(0.9))
      scheduler.after(0.5, () => tell({ kind: 'TaskOomed', containerId: task.id }));
  };
  world.onOom = (task) => void scheduler.after(1, () => tell({ kind: 'TaskOomed', containerId: task.id }));
  world.onShimDeath = (podSandboxId) => {
    const hearing = history.daemon;
    scheduler.after(
      3,
      () => void (hearing !== null && !hearing.dead ? tell({ kind: 'ShimLost', podSandboxId }) : undefined),
    );
  };

  await start();
  const clients = startClients(history);
  const planned = STEPS_MIN + random.below(150) + (cutShort !== null ? STEPS_MIN : 0);
  while (scheduler.steps() < planned) {
    if (violation !== null) break;
    if (random.chance(crashRate)) crash('between steps');
    if (random.chance(disturbRate)) disturb(world, scheduler, random);
    if (random.chance(oomRate)) for (const task of runningContainers(world)) world.onOom(task);
    if (!(await scheduler.step())) break;
  }
  if (targetIn > 0 && crashes.size === 0) crash('between steps');
  history.calm = true;
  clients.windDown();
  while (violation === null && scheduler.steps() < STEPS_MAX && !clients.done()) if (!(await scheduler.step())) break;
  if (violation === null && !clients.done())
    violation = new Violation(`The history did not come to rest: ${describe(history)}`);
  // Whatever is still on its way settles: the last deletions, doubled events.
  for (let i = 0; i < 2000 && violation === null; i += 1) if (!(await scheduler.step())) break;
  if (violation === null) await checkEnd(history);
  if (violation !== null)
    throw violation instanceof Error ? violation : new Error('A check failed.', { cause: violation });
  const head = history.contents.rows.at(-1);
  const records = history.contents.rows.flatMap(({ record }) => (record === null ? [] : [record]));
  return { steps: scheduler.steps(), crashes, records, headHash: Buffer.from(head?.hash ?? []).toString('hex') };
}

/** A journal whose append says yes before the disk did. */
const hasty =
  (append: (records: readonly JournalRecord[]) => Promise<void>) =>
  (records: readonly JournalRecord[]): Promise<void> => {
    void append(records);
    return Promise.resolve();
  };

/** When all is removed: nothing is left, and every way of folding gives the live state. */
async function checkEnd(history: History): Promise<void> {
  const { contents, daemon, world } = history;
  const left = leftovers(world);
  if (left.length > 0) throw new Violation(`All was removed and this is left: ${left.join(', ')}.`);
  if (daemon === null) throw new Violation('No daemon lives at the end.');
  const all = contents.rows.flatMap(({ record }) => (record === null ? [] : [record]));
  const folded = fold(initialState(), all);
  const live = writeState(daemon.engine.state);
  const differs = (name: string, text: string): void => {
    if (text !== live) throw new Violation(`${name} differs from the live state:\n${text}\n${live}`);
  };
  differs('fold(all)', writeState(folded));
  differs('The view', writeState(daemon.view.state));
  const cut = history.random.below(all.length + 1);
  const snapshot = readState(writeState(fold(initialState(), all.slice(0, cut))));
  differs('fold(snapshot + tail)', writeState(fold(snapshot, all.slice(cut))));
  const pruned = all.filter(({ stream }) => !isClosedStream(folded, stream));
  differs('fold(pruned)', writeState(fold(initialState(), pruned)));
  CHECKS.wholeJournal(all);
  const { divergence } = redecide(all.flatMap((record) => fromJournalRecord(record) ?? []));
  if (divergence !== null) throw new Violation(`Record ${divergence.seq} is decided otherwise a second time.`);
}

function fold(state: NodeState, records: readonly JournalRecord[]): NodeState {
  for (const record of records) {
    const sequenced = fromJournalRecord(record);
    if (sequenced !== null) evolve(state, sequenced);
  }
  return state;
}

export const targetOfSeed = (seed: number): Boundary =>
  BOUNDARIES[seed % BOUNDARIES.length] ?? 'append call.received lost';

/** What a history that does not end is stuck in. */
function describe({ daemon }: History): string {
  if (daemon === null) return 'no daemon lives';
  const { state, underWay } = daemon.engine;
  return JSON.stringify({
    calls: [...state.calls.values()].slice(0, 4).map(({ request, target }) => `${request.method} ${target.slice(-6)}`),
    effects: [...state.effects.values()].map(
      ({ stream, intent }) => `${stream.slice(0, 4)}${stream.slice(-4)} ${intent.kind}`,
    ),
    underWay: underWay().map(({ kind }) => kind),
    sandboxes: [...state.sandboxes.values()].map(
      ({ id, goal, phase, steps, shimContact, kill, taskExit, owedFailure }) => ({
        id: id.slice(-4),
        goal,
        phase,
        steps,
        shimContact,
        kill,
        taskExit,
        owedFailure,
      }),
    ),
    containers: [...state.containers.values()].map(
      ({ id, podSandboxId, goal, steps, inspection, kill, exit, lost, stop, startInDoubt, starting, exitPending }) => ({
        id: id.slice(-4),
        pod: podSandboxId.slice(-4),
        goal,
        steps,
        inspection,
        kill,
        exit,
        lost,
        stop,
        startInDoubt,
        starting,
        exitPending,
      }),
    ),
    images: [...state.images.values()].map(({ removing }) => removing),
  });
}
