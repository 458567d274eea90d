/** What is left of a task in a cgroup is taken away where that is the task's own, and nowhere else. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, rmdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { removeLeftCgroup } from '../../../src/adapters/shim/tasks/kill-and-delete.ts';
import { defaultTimings } from '../../../src/adapters/shim/timings.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';
import { readMountInfo } from '../../../src/platform/linux/mounts.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { type BackgroundProcess, startProcess } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** Of the hierarchy that a process is put into. */
const hierarchy = async (): Promise<string> => {
  const mounts = await readMountInfo();
  const found =
    mounts.find(({ fileSystemType, mountPoint }) => fileSystemType === 'cgroup' && mountPoint.endsWith('/pids')) ??
    mounts.find(({ fileSystemType }) => fileSystemType === 'cgroup2');
  return found?.mountPoint ?? assert.fail('this machine has no cgroups');
};

interface Left {
  readonly cgroup: string;
  readonly bundlePath: string;
  readonly process: BackgroundProcess;
}

/** A bundle whose spec names this cgroup, and a process in it. */
const leave = async (t: TestContext, containerId: string, cgroupsPath: string): Promise<Left> => {
  const cgroup = join(await hierarchy(), cgroupsPath);
  onCleanup(t, () => rmdir(cgroup).catch(() => undefined));
  const process = await startProcess(t, ['sleep', '1000']);
  await mkdir(cgroup);
  await writeFile(join(cgroup, 'cgroup.procs'), String(process.pid));
  const bundlePath = join(await tempDir(t), containerId);
  await mkdir(bundlePath);
  await writeFile(join(bundlePath, 'config.json'), JSON.stringify({ linux: { cgroupsPath } }));
  return { cgroup, bundlePath, process };
};

const context = { timings: { ...defaultTimings, reapMs: 10_000 }, files: pooledFiles };

test('a cgroup that an NRI plugin chose is left alone, with who is in it', async (t) => {
  // As long as ids are: a short one may be in what is random of the path.
  const containerId = randomBytes(32).toString('hex');
  const chosen = `/scribe-test-${randomBytes(4).toString('hex')}-chosen`;
  const { cgroup, bundlePath, process } = await leave(t, containerId, chosen);
  await removeLeftCgroup(context, bundlePath);
  assert.ok(process.isAlive());
  await rmdir(cgroup).then(
    () => assert.fail('nobody is in it any more'),
    () => undefined,
  );
  process.kill('SIGKILL');
  await process.ended;
});

test("a task's own cgroup goes, with what is left in it", async (t) => {
  const containerId = randomBytes(8).toString('hex');
  const { cgroup, bundlePath, process } = await leave(t, containerId, `/scribe-test-${containerId}`);
  await removeLeftCgroup(context, bundlePath);
  assert.equal(await process.ended, 'SIGKILL');
  await assert.rejects(rmdir(cgroup), { code: 'ENOENT' });
});
