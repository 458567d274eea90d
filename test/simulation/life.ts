/**
 * Lives of the daemon on the simulated node: how one starts from what is durable, what its disk does, what it is told
 * of the world, and how it ends: killed, or stopped in order.
 */
import { decide } from '../../src/domain/turn/decide.ts';
import { copyState, type NodeState } from '../../src/domain/model/state.ts';
import { writeState } from '../../src/domain/turn/snapshot.ts';
import { createEngine } from '../../src/engine/engine.ts';
import type { Observation } from '../../src/domain/model/observation.ts';
import { pinsThatShouldBe, tasksThatShouldRun } from '../../src/domain/node/expected-tasks.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { createView } from '../../src/projections/view.ts';
import { digestOf } from '../support/redecided.ts';
import type { Boundary, CrashPlace, EffectMoment } from './boundaries.ts';
import { changeConfiguration, configureNetwork, NET_HANDLER } from './changing.ts';
import { checkChanging, checkDamageNoted, checkImageNames } from './changing-checks.ts';
import { CHECKS, checkAcknowledged, checkRecovered } from './checks.ts';
import { simulatedEffects } from './effects.ts';
import type { Kind } from './unresponsive.ts';
import { checkLeftAlone, doubtJournal, halfMadeIn } from './doubts.ts';
import type { Durable } from './durable.ts';
import { idOf } from './ids.ts';
import type { Daemon, History } from './history.ts';
import { keepHouse } from './house.ts';
import { startSimulatedNri } from './nri.ts';
import type { Plant } from './plant.ts';
import { createOrderCheck, createPlugins, type Plugins } from './plugins.ts';
import { lookAtChanges, watched } from './seen.ts';
import { decidingIn } from './throwing.ts';
import { Violation } from './violation.ts';
import { endUnbegun, forgetFetches, isAlive, rebootWorld, type SimulatedTask, tasksIn } from './world.ts';

interface Life {
  dead: boolean;
  /** No other has begun since. */
  readonly isNewest: () => boolean;
}

export interface Lives {
  readonly start: () => Promise<void>;
  readonly crash: (where: CrashPlace) => void;
  /** Tells the living daemon, now; an event that nobody hears is lost. */
  readonly tell: (observation: Observation) => void;
  /** Has the daemon end in order, as at an upgrade. */
  readonly stop: () => void;
  readonly plugins: Plugins;
}

export interface LivesOptions {
  readonly seed: number;
  readonly plant: Plant | undefined;
  /** True when the daemon is to die here. */
  readonly diesAt: (boundary: Boundary) => boolean;
  readonly diesInEffect: (kind: Kind, moment: EffectMoment) => Boundary | null;
  readonly died: (where: CrashPlace) => void;
}

/** How soon whoever keeps the daemon running starts it again. */
const RESTART_MS = 200;
const MUTE_AGAIN_MS = 3_000;
/** Longer than StartShim takes to answer once the shim is there: who has no connection yet is told of its loss afterwards. */
const LOSS_MS = 8;
const REBOOT_RATE = 0.07;
const SLOW_RATE = 0.005;
const UNHEARD_RATE = 0.5;
const COMMIT_FAILED = 'the disk is broken';

const isFailedCommit = (error: unknown): boolean => error instanceof Error && error.message.includes(COMMIT_FAILED);

export function createLives(history: History, options: LivesOptions): Lives {
  const { random, scheduler, world, contents, durable } = history;
  const { plant } = options;
  let restarting = false;
  let started = 0;
  let nextId = 0;

  function crash(where: CrashPlace): void {
    if (history.daemon === null || history.daemon.dead) return;
    options.died(where);
    endSomeUnbegun(history);
    history.daemon.dead = true;
    history.daemon = null;
    if (restarting) return;
    restarting = true;
    scheduler.after(RESTART_MS, () => {
      restarting = false;
      void start().catch(history.violate);
    });
  }

  function stop(): void {
    const { daemon } = history;
    if (daemon === null || daemon.dead) return;
    daemon.engine.stop('asked to').then(
      () => void (history.daemon === daemon ? crash('stopped') : undefined),
      (error: unknown) => void (daemon.dead || isFailedCommit(error) ? undefined : history.violate(error)),
    );
  }

  async function start(): Promise<void> {
    const rebooted = !history.calm && contents.rows.length > 0 && random.chance(REBOOT_RATE);
    if (rebooted) rebootWorld(world);
    forgetFetches(world);
    world.ready.clear();
    if (history.dimensions.configurationChanges && !history.calm && contents.rows.length > 0)
      changeConfiguration(world.changing, random);
    history.model.signals.restarted();
    started += 1;
    const number = started;
    const life: Life = { dead: false, isNewest: () => started === number };
    const ended = (error: unknown): void => {
      if (life.dead) return;
      // The process ends, and its last words are what the next one finds.
      if (!isFailedCommit(error)) return history.violate(error);
      crash('failed commit');
    };
    const { journal: kept, state } = history.disk.open((records) => commit(life, records), durable);
    const journal = plant?.journal?.(kept) ?? kept;
    checkFold(state, durable);
    const view = createView(copyState(state), kept.head().seq);
    checkRecovered(history.ledger, state, rebooted);

    const checkOrder = createOrderCheck();
    const real = simulatedEffects({
      world,
      scheduler,
      random,
      dimensions: history.dimensions,
      isDead: () => life.dead,
      reached: (kind, moment) => {
        const boundary = life.dead ? null : options.diesInEffect(kind, moment);
        if (boundary !== null) crash(boundary);
      },
      isCalm: () => history.calm,
      check: history.guard((kind, effect) => {
        durable.sync();
        CHECKS.beforeEffect(history, kind, effect);
        checkChanging(history, effect);
        checkOrder(effect);
        if (effect.kind === 'KillTask')
          history.model.signals.sent(effect.containerId, effect.podSandboxId, effect.signal, scheduler.nowNs());
      }),
      observe: () => daemon.engine.observe,
    });
    const clock = {
      nowNs: scheduler.nowNs,
      monoNs: scheduler.monoNs,
      at: (dueAtNs: bigint, fire: () => void) => scheduler.at(dueAtNs, () => void (life.dead ? undefined : fire())),
    };
    const engine = createEngine({
      journal,
      state,
      perform: watched(plant?.perform?.(real, world) ?? real, world, history.model.signals),
      clock: plant?.clock?.(clock) ?? clock,
      ids: { hex64: () => idOf(++nextId), uuid: () => `call-${++nextId}` },
      boot: 'boot',
      publish: history.guard((records) => {
        if (life.dead) return;
        view.apply(records);
        durable.sync();
        CHECKS.afterPublish(history, view.state, records);
        checkImageNames(view.state, records);
        checkLeftAlone(history, view.state, records);
        lookAtChanges(history.model, view.state.containers, records);
        nri?.published(records);
      }),
      published: view.state,
      report: () => undefined,
      diskIsFull: () => world.diskIsFull,
      fatal: ended,
      decide: decidingIn(history, plant?.decide ?? decide),
      digestOf,
    });
    const observe = plant?.observe?.(engine.observe) ?? engine.observe;
    const nri = history.dimensions.pluginsAreThere
      ? startSimulatedNri(history, engine, view.state, () => life.dead)
      : null;
    const daemon: Daemon = {
      engine: { ...engine, observe },
      view,
      nri,
      get dead() {
        return life.dead;
      },
      set dead(value) {
        life.dead = value;
      },
    };
    history.daemon = daemon;
    history.house = keepHouse(history, daemon, kept, plant, () => crash('between steps'));
    const dead = tasksThatShouldRun(state).filter(({ task }) => !isAlive(world, task));
    const unpinned = pinsThatShouldBe(state).filter(({ paths }) => !paths.every((path) => world.netns.has(path)));
    const found = [...dead, ...unpinned].map(({ id }) => id);
    history.foundDead = found;
    history.foundHalfMade = halfMadeIn(state);
    doubtJournal(history, daemon);
    const deadTasks = plant?.deadTasks?.(found, state, world) ?? found;
    engine.start({ facts: world.changing.facts, rebooted, deadTasks, crash: null }).catch(ended);
    const configure = (number: number): void => {
      for (const handler of ['', NET_HANDLER.name])
        tell({ kind: 'NetworkConfigured', problem: null, ...configureNetwork(world.changing, handler, number) });
    };
    configure(0);
    plugins.register();
    const other = random.below(3);
    if (random.chance(0.6)) scheduler.after(50, () => configure(other));
  }

  /** The disk: a batch takes a moment, and a crash meanwhile loses it or keeps it. */
  function commit(life: Life, records: readonly JournalRecord[]): Promise<void> {
    return new Promise((resolve, reject) => {
      if (life.dead) return;
      if (world.nextCommitFails) {
        world.nextCommitFails = false;
        return reject(new Error(COMMIT_FAILED));
      }
      const inputs = records.filter((record) => record.cause === null || record.type === 'effect.ended');
      for (const { type } of inputs) {
        const lost = `append ${type} lost` as Boundary;
        if (options.diesAt(lost)) return crash(lost);
      }
      // Now and then the disk takes its time.
      scheduler.after(!history.calm && random.chance(SLOW_RATE) ? 500 : 0.3, () => {
        // What a dead daemon had begun to write is there when the next one starts, or never.
        if (life.dead) return void (life.isNewest() && random.chance(0.5) ? resolve() : undefined);
        // kept: durable from here, though the daemon dies before it learns it.
        for (const { type } of inputs) {
          const kept = `append ${type} kept` as Boundary;
          if (options.diesAt(kept)) crash(kept);
        }
        resolve();
      });
    });
  }

  function tell(observation: Observation): void {
    const { daemon } = history;
    if (daemon === null) return;
    daemon.engine.observe(observation).then(
      history.guard(() => {
        if (daemon.dead) return;
        checkAcknowledged(world, daemon.view.state, observation);
        checkDamageNoted(history, observation);
      }),
      () => undefined,
    );
  }

  const plugins = createPlugins(history, tell);
  hearWorld(history, tell, plant);
  return { start, crash, tell, stop, plugins };
}

/** A process that was being let go may find that nobody reads any more what it writes. Nobody lets one go before it is written down. */
function endSomeUnbegun({ world, scheduler, random, durable }: History): void {
  for (const task of tasksIn(world, null)) {
    const phase = durable.state.containers.get(task.id)?.phase;
    const isLetGo = task.status === 'created' && phase?.kind === 'starting' && phase.launch === 'doing';
    if (isLetGo && random.chance(UNHEARD_RATE)) endUnbegun(world, scheduler, task);
  }
}

function checkFold(state: NodeState, durable: Durable): void {
  if (writeState(durable.state) !== writeState(state))
    throw new Violation('What a start finds leads to another state than all records do.');
}

/** Exits and deaths reach the daemon as shims tell of them: at times late, twice or never. */
function hearWorld(history: History, tell: (observation: Observation) => void, plant: Plant | undefined): void {
  const { random, scheduler, world, ledger } = history;
  world.onExit = (task) => {
    const observation: Observation = {
      kind: 'TaskExited',
      podSandboxId: task.podSandboxId,
      containerId: task.id,
      execId: null,
      exit: exitOf(task),
    };
    const hearing = history.daemon;
    const isAwaited = (): boolean =>
      hearing !== null && !hearing.dead && world.shims.get(task.podSandboxId)?.alive === true;
    const { mute } = world;
    const isHeard = world.shims.get(task.podSandboxId)?.alive === true && !mute.has(task.podSandboxId);
    if (isHeard) ledger.trueExits.set(task.id, task.exitStatus);
    if (plant?.deleteAtExit) world.shims.get(task.podSandboxId)?.tasks.delete(task.id);
    if (task.isSilent) return;
    // What a mute shim has to tell it tells when it speaks again, to who is still connected.
    const tellLate = (): void => {
      if (!isAwaited()) return;
      if (mute.has(task.podSandboxId)) scheduler.after(MUTE_AGAIN_MS, tellLate);
      else tell(observation);
    };
    if (mute.has(task.podSandboxId)) return tellLate();
    // The pending Wait answers whoever asked; the event goes to whoever listens.
    scheduler.after(3, () => void (isAwaited() ? tell(observation) : undefined));
    if (random.chance(0.8)) scheduler.after(random.chance(0.2) ? 3000 : 3, () => tell(observation));
    if (random.chance(0.3)) scheduler.after(20, () => tell(observation));
    if (task.oomKills > 0 && random.chance(0.9))
      scheduler.after(0.5, () => tell({ kind: 'TaskOomed', containerId: task.id }));
  };
  world.onOom = (task) => void scheduler.after(1, () => tell({ kind: 'TaskOomed', containerId: task.id }));
  world.onShimDeath = (podSandboxId) => {
    const hearing = history.daemon;
    const shim = world.shims.get(podSandboxId);
    // Who stops a shim has let go of it before, and is not told of its end: another one may be there by then.
    const isConnected = (): boolean => hearing !== null && !hearing.dead && world.shims.get(podSandboxId) === shim;
    scheduler.after(LOSS_MS, () => void (isConnected() ? tell({ kind: 'ShimLost', podSandboxId }) : undefined));
  };
}

const exitOf = ({ pid, exitStatus, exitedAtNs, oomKills }: SimulatedTask) => ({
  pid,
  exitStatus,
  exitedAtNs: String(exitedAtNs),
  oomKills,
});
