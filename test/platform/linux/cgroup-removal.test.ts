/** Removing cgroups that an OCI runtime has left, in the real hierarchies of this machine. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, rmdir, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { removeCgroup } from '../../../src/platform/linux/cgroup-removal.ts';
import { readMountInfo } from '../../../src/platform/linux/mounts.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { cgroupsBelow } from '../../support/leftovers.ts';
import { startProcess } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const hierarchies = async (): Promise<string[]> =>
  (await readMountInfo())
    .filter(({ fileSystemType }) => /^cgroup2?$/.test(fileSystemType))
    .map(({ mountPoint }) => mountPoint);

test('a cgroup goes from every hierarchy with what is below and in it; its neighbours stay', async (t) => {
  const parent = `/scribe-test-${randomBytes(4).toString('hex')}`;
  const roots = await hierarchies();
  onCleanup(t, async () => {
    for (const dir of (await cgroupsBelow(parent)).reverse()) await rmdir(dir);
    for (const root of roots) await rmdir(join(root, parent)).catch(() => undefined);
  });
  const process = await startProcess(t, ['sleep', '1000']);
  for (const root of roots) {
    await mkdir(join(root, parent, 'neighbour'), { recursive: true });
    await mkdir(join(root, parent, 'left/below/deeper'), { recursive: true });
  }
  const pids = roots.find((root) => root.endsWith('/pids') || root === '/sys/fs/cgroup') ?? '';
  await writeFile(join(pids, parent, 'left/below/cgroup.procs'), String(process.pid));

  await removeCgroup(`${parent}/left`, 10_000);
  assert.equal(await process.ended, 'SIGKILL');
  assert.deepEqual(new Set(await cgroupsBelow(parent)), new Set(roots.map((root) => join(root, parent, 'neighbour'))));
  await removeCgroup(`${parent}/left`, 10_000);
});

test('a path that leads out of the hierarchies removes nothing', async (t) => {
  // Empty, so that it would go.
  const outside = await tempDir(t);
  for (const up of ['/..', '..', 'a/../..']) await removeCgroup(`${up}${'/..'.repeat(8)}${outside}`, 1_000);
  await removeCgroup('/', 1_000);
  assert.ok((await stat(outside)).isDirectory());
});
