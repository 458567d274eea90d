/**
 * The phases of a container: every record leads from a phase to one that the picture in model/state.ts has an arrow to,
 * and to nothing that is not wholly of that phase; what CRI shows follows from the phase alone. Seen over all phases that
 * records can lead to, over the golden journals, and over simulated histories.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { describe, it } from 'node:test';
import { type ContainerState, containerStateOf, liveTaskOf } from '../../../src/domain/model/container-state.ts';
import type { EffectKind } from '../../../src/domain/model/effects.ts';
import { type BodyOf, containerStream, type Intent, type RecordType } from '../../../src/domain/model/records.ts';
import type { Sequenced } from '../../../src/domain/model/records.ts';
import { type Container, type ContainerPhase, initialState, type NodeState } from '../../../src/domain/model/state.ts';
import { evolve } from '../../../src/domain/turn/evolve.ts';
import { fromJournalRecord } from '../../../src/engine/codec.ts';
import { readGolden } from '../../../src/cli/replay/golden-text.ts';
import { FACTS } from '../../simulation/facts.ts';
import { runHistory, targetOfSeed } from '../../simulation/history.ts';

type Kind = ContainerPhase['kind'];

/** The arrows of the picture. */
const NEXT: Readonly<Record<Kind, readonly Kind[]>> = {
  creating: ['created'],
  created: ['starting'],
  starting: ['exited', 'running', 'startLost'],
  startLost: ['exited'],
  running: ['dead', 'exited', 'lost'],
  dead: ['exited', 'lost'],
  lost: ['exited'],
  exited: [],
};

const FIELDS: Readonly<Record<Kind, readonly string[]>> = {
  creating: ['inspection'],
  created: ['claimed'],
  starting: ['exitSeen', 'launch', 'oomed', 'stop'],
  startLost: ['exitSeen', 'message', 'oomed', 'stop', 'taskLeft'],
  running: ['run'],
  dead: ['run'],
  lost: ['foundDead', 'message', 'run', 'taskLeft'],
  exited: ['exit', 'run', 'taskLeft'],
};
const RUN_FIELDS = ['execs', 'oomed', 'staleExecs', 'startedAtNs', 'stop', 'task'];

/** Fields of other phases would stay unseen by the compiler: a spread takes them along. */
function checkPhase(phase: ContainerPhase): void {
  const { kind, ...fields } = phase;
  // A task that was made by itself: plugins know its process before it runs.
  if ('made' in fields) delete fields.made;
  if ('ahead' in fields) delete fields.ahead;
  if ('evicted' in fields) delete fields.evicted;
  assert.deepEqual(Object.keys(fields).toSorted(), FIELDS[kind], kind);
  if ('run' in phase && phase.run !== null) assert.deepEqual(Object.keys(phase.run).toSorted(), RUN_FIELDS, kind);
  if (phase.kind !== 'exited') return;
  const taskLeft: string = phase.taskLeft;
  assert.notEqual(taskLeft, phase.run === null ? 'done' : 'none');
}

function checkStep(before: ContainerPhase, after: ContainerPhase, type: string): void {
  checkPhase(after);
  const isArrow = before.kind === after.kind || NEXT[before.kind].includes(after.kind);
  assert.ok(isArrow, `${type} leads from ${before.kind} to ${after.kind}`);
  if (before.kind === 'exited' && after.kind === 'exited') assert.deepEqual(after.exit, before.exit);
}

/** Beside its phase: what a container has at that time of its life. */
function checkContainer({ phase, goal, files, facts, id }: Container): void {
  const isInspected = phase.kind !== 'creating' || phase.inspection === 'done';
  assert.equal(facts !== null, isInspected, id);
  if (phase.kind !== 'creating' && goal === 'run') assert.equal(files, 'done', id);
  // They are asked for along with the inspection, and not begun before its end.
  if (!isInspected) assert.ok(files !== 'done', `${id}: ${files}`);
}

const ID = 'c';
const STREAM = containerStream(ID);
const FAILURE = { reason: 'RuntimeFailed', message: 'no' } as const;
const EXIT = { exitStatus: 3, exitedAtNs: '9', reason: 'Error', message: '' } as const;

const sequenced = (record: object, stream = STREAM): Sequenced =>
  ({ seq: 7, atNs: 5n, monoNs: 5n, stream, cause: null, call: null, ...record }) as Sequenced;

const requested = sequenced({
  type: 'container.requested',
  body: { name: 'n', podSandboxId: 'p', config: {}, imageId: 'i' },
});

type Bodies<T extends RecordType> = { readonly [K in T]: readonly BodyOf<K>[] };

const BODIES: Bodies<Exclude<Extract<RecordType, `container.${string}`>, 'container.requested' | 'container.removed'>> &
  Bodies<'task.exited' | 'task.oomed' | 'undo.retried'> = {
  'container.adjusted': [{ adjust: {}, owners: { simple: {}, compound: {} } }],
  'container.created': [{ claimed: true }, { claimed: false }],
  'container.claimed': [{}],
  'container.failed': [{ failure: FAILURE }],
  'container.starting': [{}],
  'container.started': [{ pid: 1, startTicks: '1' }],
  'container.stopping': [
    { signal: 15, killAtNs: '9' },
    { signal: 9, killAtNs: null },
    { signal: 9, killAtNs: null, evicted: { plugin: '50-mover', reason: 'why' } },
  ],
  'container.exited': [EXIT],
  'container.updated': [{ resources: {} }],
  'container.lost': [{ message: 'its shim ended' }],
  'container.removing': [{}],
  'task.exited': [{ exit: { pid: 1, exitStatus: 3, exitedAtNs: '9', oomKills: 0 } }],
  'task.oomed': [{}],
  'undo.retried': [{}],
};

/** Intents on a container; what they are for beside their kind is of no matter here. */
const INTENTS = [
  { kind: 'InspectContainer' },
  { kind: 'PrepareContainer' },
  { kind: 'CleanContainer' },
  { kind: 'CreateTask' },
  { kind: 'StartTask' },
  { kind: 'DeleteTask' },
  { kind: 'KillTask', signal: 15, all: false },
  { kind: 'RunExec', execId: 'x', args: [], timeoutMs: null },
  { kind: 'EndExec', execId: 'x' },
  { kind: 'UpdateContainer', resources: {} },
  { kind: 'CheckpointTask', location: '/c.tar', timeoutMs: null },
  { kind: 'EndCheckpoint', location: '/c.tar' },
  { kind: 'CallPlugins', hook: 'CreateContainer', plugins: ['a'] },
  { kind: 'CallPlugins', hook: 'StartContainer', plugins: ['a'] },
] as const satisfies readonly Intent[];

const RESULTS: { readonly [K in EffectKind]?: object } = {
  InspectContainer: { facts: { user: { uid: 0, gid: 0, additionalGids: [] }, devices: [], mounts: [] } },
  PrepareContainer: { rootfs: [] },
  CreateTask: { task: { pid: 12, startTicks: '12' } },
};

interface Step {
  readonly record: Sequenced;
  /** The effect that the record tells the end of. */
  readonly open?: Intent;
}

const daemonStarted = (rebooted: boolean, deadTasks: readonly string[]): Step => ({
  record: sequenced({ type: 'daemon.started', body: { facts: FACTS, rebooted, deadTasks, crash: null } }, 'node'),
});

const stepsOf = (intent: Intent): Step[] => {
  const { kind } = intent;
  const ended = (how: object): Step => ({
    record: sequenced({ type: 'effect.ended', body: { effect: '1.0', kind, ...how } }),
    open: intent,
  });
  const input = { type: 'effect.ended', body: { effect: '1.0', kind } };
  return [
    { record: sequenced({ type: 'effects.requested', body: { effects: [intent] } }) },
    ended({ result: RESULTS[kind] ?? {} }),
    ended({ failure: FAILURE }),
    {
      record: sequenced({
        type: 'turn.failed',
        body: { handling: 'interrupted', input, effect: '1.0', error: 'a bug' },
      }),
      open: intent,
    },
  ];
};

const STEPS: readonly Step[] = [
  ...Object.entries(BODIES).flatMap(([type, bodies]) => bodies.map((body) => ({ record: sequenced({ type, body }) }))),
  ...INTENTS.flatMap(stepsOf),
  daemonStarted(false, []),
  daemonStarted(false, [ID]),
  daemonStarted(true, []),
];

const containerIn = (state: NodeState): Container => {
  const container = state.containers.get(ID);
  assert.ok(container !== undefined);
  return container;
};

function after(container: Container, { record, open }: Step): Container {
  const state = initialState();
  state.containers.set(ID, container);
  if (open !== undefined) state.effects.set('1.0', { id: '1.0', stream: STREAM, intent: open, call: null });
  evolve(state, record);
  return containerIn(state);
}

/** Commands come and go without an end; which there are changes nothing else. */
const keyOf = (phase: ContainerPhase): string =>
  JSON.stringify(phase, (name, value: unknown) => (name === 'execs' || name === 'staleExecs' ? [] : value));

/** All phases that records lead to from the first, whatever they are and in whatever order, and the ways between them. */
function allPhases(): { readonly found: Map<string, Container>; readonly ways: Set<string> } {
  const state = initialState();
  evolve(state, requested);
  const first = containerIn(state);
  const found = new Map([[keyOf(first.phase), first]]);
  const ways = new Set<string>();
  for (const container of found.values())
    for (const step of STEPS) {
      const next = after(container, step);
      checkStep(container.phase, next.phase, step.record.type);
      if (next.phase.kind !== container.phase.kind) ways.add(`${container.phase.kind} ${next.phase.kind}`);
      const key = keyOf(next.phase);
      if (!found.has(key)) found.set(key, next);
    }
  return { found, ways };
}

/** Folds a journal and looks at every container after every record. */
function checkJournal(records: readonly Sequenced[]): Set<Kind> {
  const state = initialState();
  const seen = new Set<Kind>();
  for (const record of records) {
    const before = new Map(state.containers);
    evolve(state, record);
    for (const [id, container] of state.containers) {
      const was = before.get(id);
      if (was === container) continue;
      seen.add(container.phase.kind);
      checkContainer(container);
      if (was === undefined) checkPhase(container.phase);
      else checkStep(was.phase, container.phase, record.type);
    }
  }
  return seen;
}

const HISTORIES = 12;

describe('the phases of a container', () => {
  const { found, ways } = allPhases();

  it('are those of the picture, and its arrows are the only ways between them, whatever the records', () => {
    const arrows = Object.entries(NEXT).flatMap(([from, to]) => to.map((kind) => `${from} ${kind}`));
    assert.deepEqual([...ways].toSorted(), arrows.toSorted());
  });

  it('say what CRI shows', () => {
    const shown = new Map<string, Set<ContainerState | null>>();
    for (const container of found.values()) {
      const { phase } = container;
      const name = phase.kind === 'lost' ? `lost, found ${phase.foundDead ? 'dead' : 'alive'}` : phase.kind;
      shown.set(name, (shown.get(name) ?? new Set()).add(containerStateOf(container)));
    }
    assert.deepEqual(Object.fromEntries([...shown].map(([name, states]) => [name, [...states]])), {
      creating: [null],
      created: ['CONTAINER_CREATED'],
      starting: ['CONTAINER_CREATED'],
      startLost: ['CONTAINER_CREATED'],
      running: ['CONTAINER_RUNNING'],
      dead: ['CONTAINER_EXITED'],
      'lost, found alive': ['CONTAINER_RUNNING'],
      'lost, found dead': ['CONTAINER_EXITED'],
      exited: ['CONTAINER_EXITED'],
    });
  });

  it('have a process as long as nobody knows that it ended', () => {
    const alive = [...found.values()].filter((container) => liveTaskOf(container) !== null);
    assert.deepEqual([...new Set(alive.map(({ phase }) => phase.kind))].toSorted(), ['dead', 'lost', 'running']);
  });

  it('are legal after every record of the golden journals', async () => {
    const dir = new URL('../../golden/v1/', import.meta.url);
    const names = (await readdir(dir)).filter((name) => name.endsWith('.jsonl'));
    const seen = new Set<Kind>();
    for (const name of names) {
      const records = readGolden(await readFile(new URL(name, dir), 'utf8'));
      for (const kind of checkJournal(records.flatMap((record) => fromJournalRecord(record) ?? []))) seen.add(kind);
    }
    assert.ok(seen.has('running') && seen.has('exited'));
  });

  it('are legal after every record of simulated histories', async () => {
    for (let seed = 1; seed <= HISTORIES; seed += 1) {
      const { records } = await runHistory({ seed, target: targetOfSeed(seed) });
      checkJournal(records.flatMap((record) => fromJournalRecord(record) ?? []));
    }
  });
});
