/** Joining one's own control group while something else is about to: in the real hierarchy, and in directories that note it. */
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createCgroupJoining } from '../../../src/platform/linux/cgroup-joining.ts';
import { readCgroupFacts } from '../../../src/platform/linux/cgroups.ts';
import { memoryCgroupOf, memoryHierarchy } from '../../../src/platform/linux/memory-cgroup.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { eventually } from '../../support/pods.ts';

const joins = async (directory: string): Promise<string> => readFile(join(directory, 'cgroup.procs'), 'utf8');

const groupOf = async (t: TestContext): Promise<string> => {
  const directory = await mkdtemp(join(tmpdir(), 'scribe-joining-'));
  onCleanup(t, () => rm(directory, { recursive: true }));
  await writeFile(join(directory, 'cgroup.procs'), '');
  return directory;
};

test('the group that this process is in is joined, and it stays where it is', async () => {
  const hierarchy = memoryHierarchy(await readCgroupFacts());
  assert.ok(hierarchy !== null);
  let lookups = 0;
  const joinFor = createCgroupJoining(() => {
    lookups += 1;
    return memoryCgroupOf(hierarchy, process.pid);
  });
  const before = await readFile('/proc/self/cgroup', 'utf8');
  assert.equal(joinFor(50), true);
  await sleep(100);
  assert.equal(await readFile('/proc/self/cgroup', 'utf8'), before);
  // A join that the kernel refused would have ended it for good.
  assert.equal(joinFor(20), true);
  await sleep(60);
  assert.equal(lookups, 2);
});

test('it is joined as long as was said last, by whoever is in it then, and not after', async (t) => {
  const groups = [await groupOf(t), await groupOf(t)] as const;
  let current: string = groups[0];
  const joinFor = createCgroupJoining(async () => current);
  joinFor(5_000);
  await eventually('the first group is joined', async () => (await joins(groups[0])) === '0', 5_000);
  joinFor(0);
  await sleep(60);
  for (const group of groups) await writeFile(join(group, 'cgroup.procs'), '');
  [, current] = groups;
  joinFor(5_000);
  await eventually('the second group is joined', async () => (await joins(groups[1])) === '0', 5_000);
  joinFor(0);
  await sleep(60);
  await writeFile(join(groups[1], 'cgroup.procs'), '');
  await sleep(30);
  assert.deepEqual(await Promise.all(groups.map(joins)), ['', '']);
});

test('where joining is cheap, and where there is no group to join, it ends for good', async (t) => {
  const cheap = await groupOf(t);
  const joinFor = createCgroupJoining(async () => cheap);
  const isJoined = async (): Promise<boolean> => {
    await writeFile(join(cheap, 'cgroup.procs'), '');
    joinFor(10);
    // As long as it takes until a join says something of the kernel again.
    await sleep(85);
    return (await joins(cheap)) === '0';
  };
  assert.equal(await isJoined(), true);
  await eventually('no group is joined any more', async () => !(await isJoined()), 20_000);
  assert.equal(joinFor(10), false);
  assert.equal(await isJoined(), false);

  let lookups = 0;
  const without = createCgroupJoining(async () => {
    lookups += 1;
    return null;
  });
  assert.equal(without(10), true);
  await sleep(20);
  for (let count = 0; count < 3; count += 1) assert.equal(without(10), false);
  assert.equal(lookups, 1);
});
