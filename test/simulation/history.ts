/**
 * One history: daemons that live and die on one simulated node, clients that use them, and checks on every step.
 * Everything that varies comes from the seed. A plant replaces one piece by a faulty one, to see that it is found.
 */
import type { Engine } from '../../src/engine/engine.ts';
import { createMemoryJournal, type MemoryContents } from '../../src/journal/memory-journal.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import type { View } from '../../src/projections/view.ts';
import { BOUNDARIES, type Boundary, type CrashPlace } from './boundaries.ts';
import { createLedger, type Ledger } from './checks.ts';
import { createChanging } from './changing.ts';
import { startClients } from './clients.ts';
import { createMemoryDisk, type Disk } from './disk.ts';
import { type Durable, followDurable } from './durable.ts';
import { knowJournal } from './doubts.ts';
import { checkEnd } from './ending.ts';
import type { House } from './house.ts';
import { Finding } from './finding.ts';
import { createLives } from './life.ts';
import type { SimulatedNri } from './nri.ts';
import { createModel, type Model } from './model/model.ts';
import { type Dimension, type Dimensions, drawDimensions } from './dimensions.ts';
import type { Plant } from './plant.ts';
import { beQuiet } from './quiet.ts';
import { type CountedRandom, createChoices, type Random, type Stretch } from './random.ts';
import { createScheduler, type Scheduler } from './scheduler.ts';
import { nodeOf, tellModel } from './seen.ts';
import { createSqliteDisk } from './sqlite-disk.ts';
import { Violation } from './violation.ts';
import { haveWeather } from './weather.ts';
import { createWorld, disturb, runningContainers, runOutOfMemory, type World } from './world.ts';

export interface HistoryOptions {
  readonly seed: number;
  /** Where the daemon dies first; random moments besides. */
  readonly target: Boundary;
  readonly plant?: Plant;
  /** Dimensions that it is about in any case. */
  readonly about?: readonly Dimension[];
  /** How much happens; chosen by the seed where it is absent. */
  readonly size?: { readonly clients: number; readonly steps: number };
  /** On the journal that scribe runs on, in a directory of its own, and not on its twin in memory. */
  readonly onSqlite?: boolean;
  /** Choices that are put back to what happens when nothing does. */
  readonly uneventful?: readonly Stretch[];
}

export interface HistoryResult {
  readonly steps: number;
  readonly crashes: ReadonlyMap<CrashPlace, number>;
  /** Hash of the last record: two runs of a seed write the same journal. */
  readonly headHash: () => string;
  readonly records: readonly JournalRecord[];
}

/** One life of the daemon. */
export interface Daemon {
  readonly engine: Engine;
  readonly view: View;
  /** null: the history is not about plugins. */
  readonly nri: SimulatedNri | null;
  dead: boolean;
}

export interface History {
  readonly random: Random;
  readonly scheduler: Scheduler;
  readonly world: World;
  readonly contents: MemoryContents;
  readonly disk: Disk;
  readonly durable: Durable;
  readonly ledger: Ledger;
  readonly model: Model;
  /** The living daemon, if there is one. */
  daemon: Daemon | null;
  /** Whose processes had ended when it started. */
  foundDead: readonly string[];
  /** Streams of what it found half made and nobody has asked for since. */
  foundHalfMade: Set<string>;
  /** Its housekeeping. */
  house: House | null;
  readonly dimensions: Dimensions;
  /** What the history is about. */
  readonly target: Boundary;
  /** Sessions are rare unless they are what the history is about. */
  readonly sessionRate: number;
  /** One of so many pods is restored from a checkpoint: few, unless the history is about that. */
  readonly restoredEvery: number;
  /** Faults, disturbances and crashes are over, for now or for good. */
  calm: boolean;
  /** While clients make no calls: those that want to. */
  held: (() => void)[] | null;
  /** The first thing that was found; the history ends with it. */
  violation: unknown;
  readonly violate: (error: unknown) => void;
  /** What goes wrong in it is a finding. */
  readonly guard: <A extends unknown[]>(run: (...args: A) => void) => (...args: A) => void;
}

const CLIENTS = 3;
const STEPS_MIN = 140;
const STEPS_MAX = 20_000;
const CRASH_RATE = 0.004;
const DISTURB_RATE = 0.02;

const CUT_SHORT = [
  ['EndExec', 'RunExec'],
  ['EndCheckpoint', 'CheckpointTask'],
  ['EndPodCheckpoint', 'CheckpointPod'],
] as const;

function createHistory(random: Random, { seed, target, onSqlite, plant, about }: HistoryOptions): History {
  const scheduler = createScheduler(random);
  const disk = onSqlite === true ? createSqliteDisk(random, scheduler.after, plant?.startWriter) : createMemoryDisk();
  const dimensions = drawDimensions(random, plant?.about ?? about ?? []);
  const world = createWorld(createChanging(dimensions, seed));
  const model = createModel(nodeOf(world), (message) => {
    throw new Violation(message);
  });
  const history: History = {
    random,
    scheduler,
    world,
    contents: disk.contents,
    disk,
    durable: followDurable(disk, (record) => tellModel(model, record)),
    model,
    ledger: createLedger(),
    daemon: null,
    foundDead: [],
    foundHalfMade: new Set(),
    house: null,
    dimensions,
    target,
    sessionRate: target.includes('Stream') ? 1 : 0.4,
    // A multiple of three never has users of its own, which the checkpointed pod did not have.
    restoredEvery: target.includes('ReadPodCheckpoint') ? 3 : 6,
    calm: false,
    held: null,
    violation: null,
    violate: (error) => void (history.violation ??= error),
    guard:
      (run) =>
      (...args) => {
        try {
          run(...args);
        } catch (error) {
          history.violate(error);
        }
      },
  };
  return history;
}

export async function runHistory(options: HistoryOptions): Promise<HistoryResult> {
  const random = createChoices(options.seed, options.uneventful ?? []);
  const history = createHistory(random, options);
  try {
    return await run(history, random, options);
  } finally {
    history.disk.dispose();
  }
}

/** A history that is in the middle of everything after so many steps, with a daemon that lives. Nobody ends it. */
export async function beginHistory(seed: number, steps: number): Promise<History> {
  const random = createChoices(seed, []);
  const options: HistoryOptions = { seed, target: 'append call.received lost' };
  const history = createHistory(random, options);
  const { scheduler, world } = history;
  const lives = createLives(history, {
    seed,
    plant: undefined,
    diesAt: () => false,
    diesInEffect: () => null,
    died: () => undefined,
  });
  await lives.start();
  startClients(history, CLIENTS);
  for (let step = 0; history.violation === null && (step < steps || history.daemon === null); step += 1) {
    if (random.chance(CRASH_RATE)) lives.crash('between steps');
    haveWeather(history, lives);
    if (random.chance(DISTURB_RATE)) disturb(world, scheduler, random);
    if (!(await scheduler.step())) break;
  }
  if (history.violation !== null) throw history.violation as Error;
  return history;
}

async function run(history: History, random: CountedRandom, options: HistoryOptions): Promise<HistoryResult> {
  const { seed, target, plant, size } = options;
  const { scheduler, world } = history;
  const crashes = new Map<CrashPlace, number>();
  // What is cleared up only by a daemon that has not begun it has to be cut short first.
  const cutShort = CUT_SHORT.find(([clearedUpBy]) => target.includes(clearedUpBy))?.[1] ?? null;
  let targetIn = cutShort !== null || random.chance(0.7) ? 1 : 2 + random.below(2);
  // What only happens after a restart needs an earlier crash to be reached.
  const diesOften = history.dimensions.failuresLast || /ReconnectShim|daemon.started/.test(target);
  const crashRate = diesOften ? 0.02 : CRASH_RATE;
  // Tasks that run out of memory and shims that die are rare unless they are what the history is about.
  const disturbRate = target.includes('shim.lost') ? 0.08 : DISTURB_RATE;
  const oomRate = target.includes('oomed') ? 0.5 : 0;

  function diesAt(boundary: Boundary): boolean {
    if (boundary !== target || history.calm || targetIn <= 0) return false;
    targetIn -= 1;
    return targetIn === 0;
  }

  const lives = createLives(history, {
    seed,
    plant,
    diesAt,
    diesInEffect(kind, moment) {
      const boundary: Boundary = `effect ${kind} ${moment}`;
      const isRunning = kind === cutShort && moment === 'half' && !history.calm;
      return (isRunning && random.chance(0.8)) || diesAt(boundary) ? boundary : null;
    },
    died: (where) => void crashes.set(where, (crashes.get(where) ?? 0) + 1),
  });

  await lives.start();
  const comesLate = /ReopenLog|CheckpointPod|EndPod/.test(target);
  knowJournal(history);
  const clients = startClients(history, size?.clients ?? CLIENTS);
  const planned =
    size?.steps ??
    STEPS_MIN + random.below(150) + (cutShort !== null ? STEPS_MIN : 0) + (comesLate ? 3 * STEPS_MIN : 0);
  const quietAt = random.chance(QUIET_RATE) ? Math.floor(planned * (0.3 + 0.6 * random.next())) : planned;
  for (let step = 0; history.violation === null && step < planned; step += 1) {
    if (step === quietAt) await beQuiet(history, { mended: random.chance(0.5) });
    if (random.chance(crashRate)) lives.crash('between steps');
    haveWeather(history, lives);
    if (random.chance(disturbRate)) disturb(world, scheduler, random);
    if (random.chance(oomRate)) for (const task of runningContainers(world)) runOutOfMemory(world, task);
    if (!(await scheduler.step())) break;
  }
  if (targetIn > 0 && crashes.size === 0) lives.crash('between steps');
  await beQuiet(history, { mended: true });
  history.calm = true;
  clients.windDown();
  while (history.violation === null && scheduler.steps() < STEPS_MAX && !clients.done())
    if (!(await scheduler.step())) break;
  if (!clients.done()) history.violate(new Violation(`The history did not come to rest: ${describe(history)}`));
  // Whatever is still on its way settles: the last deletions, doubled events.
  await beQuiet(history, { mended: true });
  if (history.violation === null) history.guard(() => checkEnd(history, plant))();
  const { violation } = history;
  if (violation !== null)
    throw new Finding(
      violation,
      history.durable.parsed.filter((record) => record !== null),
      random.count(),
    );
  return {
    steps: scheduler.steps(),
    crashes,
    records: history.durable.records,
    headHash: () => Buffer.from(createMemoryJournal({ contents: history.contents }).head().hash).toString('hex'),
  };
}

/** Half of the histories are quiet in their middle, all of them at their end. */
const QUIET_RATE = 0.5;

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
    containers: [...state.containers.values()].map(({ id, podSandboxId, goal, files, phase }) => ({
      id: id.slice(-4),
      pod: podSandboxId.slice(-4),
      goal,
      files,
      phase,
    })),
    images: [...state.images.values()].map(({ removing }) => removing),
  });
}
