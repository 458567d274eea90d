/** Records that a fold may leave out: whatever they stand among, what is left folds to the same state, byte for byte. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { readGolden } from '../../src/cli/replay/golden-text.ts';
import { nodeFold } from '../../src/engine/node-fold.ts';
import { settledIn } from '../../src/engine/settled.ts';
import type { JournalRecord } from '../../src/journal/types.ts';

const goldenDir = join(import.meta.dirname, '../golden/v1');

const foldedPlainly = (records: readonly JournalRecord[]): string => {
  const state = nodeFold.initial();
  for (const record of records) nodeFold.evolve(state, record);
  return nodeFold.write(state);
};

/** Each page without what is settled in it. */
const foldedByPages = (pages: readonly (readonly JournalRecord[])[]): { written: string; settled: number } => {
  const state = nodeFold.initial();
  let settled = 0;
  for (const page of pages) {
    const passedOver = settledIn(page);
    settled += passedOver.size;
    for (const record of page) if (!passedOver.has(record.seq)) nodeFold.evolve(state, record);
  }
  return { written: nodeFold.write(state), settled };
};

const pagesOf = (records: readonly JournalRecord[], size: number): JournalRecord[][] =>
  Array.from({ length: Math.ceil(records.length / size) }, (_, index) =>
    records.slice(index * size, (index + 1) * size),
  );

describe('golden journals fold to the same without what is settled', async () => {
  for (const name of (await readdir(goldenDir)).filter((file) => file.endsWith('.jsonl')))
    test(name, async () => {
      const records = readGolden(await readFile(join(goldenDir, name), 'utf8'));
      const plainly = foldedPlainly(records);
      for (const size of [2, 5, 17, 512]) assert.equal(foldedByPages(pagesOf(records, size)).written, plainly);
      assert.ok(foldedByPages([records]).settled > 0);
    });
});

type Happening = readonly [type: string, body: unknown, call?: number];

const KILL = { kind: 'KillTask', signal: 15 };
const failed = { reason: 'TimedOut', message: 'nobody said' };
const exec = (execId: string) => ({ kind: 'RunExec', execId, args: ['},{"kind":"', 'x'], timeoutMs: 5000 });

/** What may happen to a container; `begun` is a request of an effect on it. */
const HAPPENINGS: Readonly<Record<string, (begun: number, seq: number) => Happening>> = {
  requested: () => [
    'container.requested',
    { name: 'c', podSandboxId: 'p', config: { metadata: { name: 'c' } }, imageId: 'none' },
  ],
  created: () => ['container.created', { claimed: true }],
  starting: () => ['container.starting', {}],
  started: () => ['container.started', { pid: 7, startTicks: '9' }],
  exec: (_, seq) => ['effects.requested', { effects: [exec(`e${seq}`)] }],
  execAndKill: (_, seq) => ['effects.requested', { effects: [exec(`e${seq}`), KILL] }],
  killAndExec: (_, seq) => ['effects.requested', { effects: [KILL, exec(`e${seq}`)] }],
  execEnded: (begun) => ['effect.ended', { effect: `${begun}.0`, kind: 'RunExec', result: { exitStatus: 0 } }],
  otherEnded: (begun) => ['effect.ended', { effect: `${begun}.1`, kind: 'KillTask', result: {} }],
  execFailed: (begun) => ['effect.ended', { effect: `${begun}.0`, kind: 'RunExec', failure: failed }],
  staleEnded: (begun) => ['effect.ended', { effect: `${begun}.0`, kind: 'EndExec', result: {} }],
  stopping: () => ['container.stopping', { signal: 15, killAtNs: '1' }],
  taskExited: () => ['task.exited', { exit: { pid: 7, exitStatus: 1, exitedAtNs: '5', oomKills: 0 } }],
  exited: () => ['container.exited', { exitStatus: 1, exitedAtNs: '5', reason: 'Error', message: '' }],
  lost: () => ['container.lost', { message: 'gone' }],
  removing: () => ['container.removing', {}],
  removed: () => ['container.removed', {}],
  turnFailed: (begun) => [
    'turn.failed',
    { input: { type: 'effect.ended' }, effect: `${begun}.0`, error: 'bug', handling: 'interrupted' },
  ],
};
const OF_CALLS: Readonly<Record<string, (begun: number) => Happening>> = {
  received: () => ['call.received', { request: { method: 'ExecSync', containerId: 'c', cmd: [] }, caller: null }],
  joined: (begun) => ['call.joined', { target: 'image/x' }, begun],
  detached: (begun) => ['call.detached', { received: begun }],
  completed: (begun) => ['call.completed', { method: 'ExecSync', durationNs: '1', code: 0 }, begun],
};
const OF_NODE: Readonly<Record<string, () => Happening>> = {
  restarted: () => ['daemon.started', { facts: { rules: 12 }, rebooted: false, deadTasks: ['c0'], crash: null }],
};

interface Step {
  readonly name: string;
  readonly object: number;
  /** Which of what began on its stream it is about, the newest first: no effect ends on another. */
  readonly back: number;
  readonly v: number;
}

const happeningOf = (name: string, begun: number, seq: number): Happening =>
  OF_CALLS[name]?.(begun) ?? OF_NODE[name]?.() ?? HAPPENINGS[name]?.(begun, seq) ?? ['', {}];

const BEGINNINGS: readonly string[] = ['effects.requested', 'call.received'];

const recordsOf = (steps: readonly Step[]): JournalRecord[] => {
  const begunOn = new Map<string, number[]>();
  return steps.map(({ name, object, back, v }, index) => {
    const seq = index + 1;
    const stream = name in OF_NODE ? 'node' : name in OF_CALLS ? `call/${object}` : `container/c${object}`;
    const begun = begunOn.get(stream)?.at(-back) ?? 0;
    const [type, body, call = null] = happeningOf(name, begun, seq);
    if (BEGINNINGS.includes(type)) begunOn.set(stream, [...(begunOn.get(stream) ?? []), seq]);
    return { seq, atNs: 0n, monoNs: 0n, boot: 'b', type, v, stream, cause: null, call, body: JSON.stringify(body) };
  });
};

const often = ['exec', 'execEnded', 'received', 'completed'];
const stepsArbitrary = fc.array(
  fc.record({
    name: fc.constantFrom(
      ...Object.keys({ ...HAPPENINGS, ...OF_CALLS, ...OF_NODE }),
      ...Array.from({ length: 12 }, () => often).flat(),
    ),
    object: fc.constantFrom(0, 0, 0, 1),
    back: fc.constantFrom(1, 1, 1, 2, 3),
    v: fc.constantFrom(...Array.from({ length: 20 }, () => 1), 99),
  }),
  { minLength: 10, maxLength: 60, size: 'max' },
);
const running: readonly Step[] = ['requested', 'created', 'starting', 'started'].flatMap((name) =>
  [0, 1].map((object) => ({ name, object, back: 1, v: 1 })),
);

describe('what is settled', () => {
  test('whatever happens between, the rest folds to the same', () => {
    let settledInAll = 0;
    fc.assert(
      fc.property(stepsArbitrary, fc.integer({ min: 1, max: 80 }), (steps, size) => {
        const records = recordsOf([...running, ...steps]);
        const { written, settled } = foldedByPages(pagesOf(records, size));
        settledInAll += settled;
        assert.equal(written, foldedPlainly(records));
      }),
      { numRuns: 3000 },
    );
    assert.ok(settledInAll > 10_000, `settled: ${settledInAll}`);
  });

  const seqsIn = (...names: readonly string[]): readonly number[] =>
    [...settledIn(recordsOf(names.map((name) => ({ name, object: 0, back: 1, v: 1 }))))].toSorted((a, b) => a - b);

  test('a probe is, all four records of it', () => {
    assert.deepEqual(seqsIn('received', 'exec', 'execEnded', 'completed'), [1, 2, 3, 4]);
  });

  test('nothing is where it did not end, failed, or was asked for beside something else', () => {
    assert.deepEqual(seqsIn('received', 'exec'), []);
    assert.deepEqual(seqsIn('exec', 'execFailed'), []);
    assert.deepEqual(seqsIn('execAndKill', 'execEnded'), []);
  });

  test('nothing is across what may change anything', () => {
    assert.deepEqual(seqsIn('received', 'exec', 'restarted', 'execEnded', 'completed'), []);
    assert.deepEqual(seqsIn('exec', 'exited', 'execEnded'), []);
  });
});
