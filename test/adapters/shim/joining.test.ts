/** When the spawner is told to get over with the kernel's wait for joins of control groups: around work, and no more often than it helps. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createJoining } from '../../../src/adapters/shim/joining.ts';
import { memoryHierarchy } from '../../../src/platform/linux/memory-cgroup.ts';

const hierarchy = { version: 2, mountPoint: '/sys/fs/cgroup' } as const;

const noted = (answer: () => Promise<boolean>) => {
  const asked: number[] = [];
  const joinAhead = (forMs: number): Promise<boolean> => {
    asked.push(forMs);
    return answer();
  };
  return { asked, joining: createJoining({ joinAhead }, hierarchy) };
};

test('it is asked for once for work side by side, and for a moment more at the end, also when work fails', async () => {
  const { asked, joining } = noted(async () => true);
  const first = Promise.withResolvers<string>();
  const second = Promise.withResolvers<string>();
  const both = [joining.during(() => first.promise), joining.during(() => second.promise)];
  assert.deepEqual(asked, [1_000]);
  first.resolve('done');
  assert.equal(await both[0], 'done');
  assert.deepEqual(asked, [1_000]);
  second.reject(new Error('the work failed'));
  await assert.rejects(both[1] ?? Promise.resolve(), /the work failed/);
  assert.deepEqual(asked, [1_000, 10]);
  await joining.during(async () => undefined);
  assert.deepEqual(asked, [1_000, 10, 1_000, 10]);
});

test('where it never helps it is not asked for again, and a spawner that has ended fails no work', async () => {
  const { asked, joining } = noted(async () => false);
  await joining.during(async () => new Promise(setImmediate));
  await joining.during(async () => undefined);
  assert.deepEqual(asked, [1_000]);

  const gone = noted(() => Promise.reject(new Error('the spawner has ended')));
  assert.equal(await gone.joining.during(async () => 'done'), 'done');
});

test('without a memory controller nothing is asked for', async () => {
  assert.equal(memoryHierarchy({ version: 1, controllers: {} }), null);
  assert.deepEqual(memoryHierarchy({ version: 2, controllers: { memory: '/sys/fs/cgroup' } }), hierarchy);
  const joining = createJoining({ joinAhead: () => Promise.reject(new Error('asked')) }, null);
  assert.equal(await joining.during(async () => 'done'), 'done');
});
