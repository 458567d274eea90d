/**
 * How plugins are told what there is: in slices, so that the daemon's loop goes on meanwhile. What becomes of one that has
 * to answer and does not.
 */
import assert from 'node:assert/strict';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { test } from 'node:test';
import { createNriEffects } from '../../../src/adapters/nri/effects.ts';
import { messageOf } from '../../../src/domain/model/errors.ts';
import { ContainerUpdate } from '../../../src/wire/nri/api.ts';
import type { NriContainer, NriPodSandbox } from '../../../src/domain/model/nri-views.ts';

const OBJECTS = 2_000;
/** Views that may be made in one turn of the loop. */
const AT_ONCE_MAX = 20;

test('C17: views of thousands of objects are made a few at a time, the loop between them', async () => {
  const told = { pods: 0, containers: 0 };
  const { SynchronizePlugin } = createNriEffects({
    plugins: {
      ask: () => assert.fail('nobody is asked'),
      synchronize: async (_id, pods, containers) => {
        Object.assign(told, { pods: pods.length, containers: containers.length });
        return { ok: true, update: [], durationNs: 1n };
      },
      dismiss: () => assert.fail('nobody is dismissed'),
    },
    tokenOf: (value) => value,
    warn: () => undefined,
    valuesOf: async () => () => null,
  });
  const loop = { turns: 0, isOver: false };
  const madeIn = new Map<number, number>();
  function* views<T>(viewOf: (id: string) => T): Iterable<T> {
    for (let at = 0; at < OBJECTS; at += 1) {
      madeIn.set(loop.turns, (madeIn.get(loop.turns) ?? 0) + 1);
      yield viewOf(`object-${at}`);
    }
  }
  const turning = (async () => {
    for (; !loop.isOver; loop.turns += 1) await nextTurn();
  })();
  const container = (id: string): NriContainer => ({ id, podSandboxId: 'pod', name: id, state: 'CONTAINER_RUNNING' });
  await SynchronizePlugin(
    {
      kind: 'SynchronizePlugin',
      plugin: { id: 'p', name: 'p', index: '10', hooks: [] },
      pods: views((id): NriPodSandbox => ({ id })),
      containers: views(container),
    },
    { signal: AbortSignal.timeout(60_000), attach: () => undefined },
  );
  loop.isOver = true;
  await turning;
  assert.deepEqual(told, { pods: OBJECTS, containers: OBJECTS });
  assert.ok(Math.max(...madeIn.values()) <= AT_ONCE_MAX, `${Math.max(...madeIn.values())} in one turn`);
});

test('one that has to answer and does not is told so, and nobody is asked after it', async () => {
  const asked: string[] = [];
  const message = 'The NRI plugin 10-must did not answer CreateContainer within 50 ms.';
  const { CallPlugins } = createNriEffects({
    plugins: {
      ask: async (id) => {
        asked.push(id);
        return { ok: false, why: 'timedOut', message, durationNs: 50n };
      },
      synchronize: () => assert.fail('nobody is synchronized'),
      dismiss: () => assert.fail('nobody is dismissed'),
    },
    tokenOf: (value) => value,
    warn: () => undefined,
    valuesOf: async () => () => null,
  });
  const plugin = (index: string, name: string) => ({ id: name, name, index, hooks: [] });
  const { answers } = await CallPlugins(
    {
      kind: 'CallPlugins',
      hook: 'CreateContainer',
      plugins: [plugin('05', 'may'), { ...plugin('10', 'must'), isRequired: true }, plugin('20', 'later')],
      pod: { id: 'pod' },
    },
    { signal: AbortSignal.timeout(60_000), attach: () => undefined },
  );
  assert.deepEqual(asked, ['may', 'must']);
  assert.deepEqual(
    answers.map(({ failure }) => failure),
    [
      { kind: 'unanswered', message },
      { kind: 'unanswered', message, isRequired: true },
    ],
  );
});

test('of what one answers to Synchronize the updates that can not be are told and left out; one that is not told is dismissed', async () => {
  const [warnings, dismissed]: [string[], string[]] = [[], []];
  let updates = ['a', '', 'c'];
  const { SynchronizePlugin } = createNriEffects({
    plugins: {
      ask: () => assert.fail('nobody is asked'),
      synchronize: async () => ({
        ok: true,
        update: updates.map((containerId) => ContainerUpdate.fromPartial({ containerId })),
        durationNs: 1n,
      }),
      dismiss: (id, reason) => void dismissed.push(`${id}: ${reason}`),
    },
    tokenOf: (value) => value,
    warn: (message) => void warnings.push(message),
    valuesOf: async () => () => null,
  });
  const synchronize = () =>
    SynchronizePlugin(
      {
        kind: 'SynchronizePlugin',
        plugin: { id: 'p', name: 'odd', index: '10', hooks: [] },
        pods: [],
        containers: [],
      },
      { signal: AbortSignal.timeout(60_000), attach: () => undefined },
    );
  const { answers } = await synchronize();
  assert.deepEqual(answers[0]?.answer, { hook: 'Synchronize', updates: [{ containerId: 'a' }, { containerId: 'c' }] });
  assert.match(warnings.join(), /^NRI plugin "10-odd" sent an answer to Synchronize with update\[1\]\.container_id/);
  assert.deepEqual(dismissed, []);
  updates = Array.from({ length: 10_001 }, () => 'a');
  await assert.rejects(synchronize(), /10001 entries/);
  assert.equal(dismissed.length, 1);
  assert.match(dismissed.join(), /^p: it could not be synchronized: NRI plugin "10-odd" sent .* at most 10000$/);
});

test('the failure of one that is not told what there is says whose it is', async () => {
  const failed = async (why: 'refused' | 'timedOut', message: string): Promise<unknown> => {
    const { SynchronizePlugin } = createNriEffects({
      plugins: {
        ask: () => assert.fail('nobody is asked'),
        synchronize: async () => ({ ok: false, why, message, durationNs: 1n }),
        dismiss: () => undefined,
      },
      tokenOf: (value) => value,
      warn: () => undefined,
      valuesOf: async () => () => null,
    });
    const plugin = { id: 'p', name: 'odd', index: '10', hooks: [] };
    return await SynchronizePlugin(
      { kind: 'SynchronizePlugin', plugin, pods: [], containers: [] },
      { signal: AbortSignal.timeout(60_000), attach: () => undefined },
    ).catch((error: unknown) => messageOf(error));
  };
  assert.equal(
    await failed('refused', 'I do not want to'),
    'NRI plugin "10-odd" refused Synchronize: I do not want to',
  );
  const late = 'The NRI plugin 10-odd did not answer Synchronize within 20 ms.';
  assert.equal(await failed('timedOut', late), late);
});
