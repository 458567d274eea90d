/** The namespaces of pods without a pause task, made for real by the spawner (root is needed). */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { startSpawner } from '../../../src/adapters/spawner/client.ts';
import { FailureError } from '../../../src/domain/errors.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const lookAround = 'readlink /proc/self/ns/net /proc/self/ns/ipc /proc/self/ns/uts; hostname';

test('the spawner makes all namespaces of a pod at once, sets them up, and stays in its own', async (t) => {
  requireRoot();
  const dir = await tempDir(t);
  const spawner = await startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 10_000 });
  onCleanup(t, () => spawner.close());
  const pins = { network: join(dir, 'net'), ipc: join(dir, 'ipc'), uts: join(dir, 'uts') };
  const paths = Object.values(pins);
  onCleanup(t, async () => void (await runOk(['umount', ...paths])));
  const seenBySpawner = async (): Promise<string> => {
    const run = { command: 'sh', args: ['-c', lookAround], env: { PATH: '/usr/sbin:/usr/bin:/sbin:/bin' }, cwd: '/' };
    return Buffer.from((await spawner.run({ ...run, timeoutMs: 10_000, outputBytesMax: 4096 })).stdout).toString();
  };
  const home = await seenBySpawner();
  const sysctls = { 'net.ipv4.ip_forward': '0', 'net.ipv4.conf.lo.forwarding': '0', 'kernel.shmmni': '99' };
  const request = { pins, hostname: 'a.pod', sysctls };

  await assert.rejects(
    spawner.pinNamespaces({ ...request, sysctls: { ...sysctls, 'net.no_such': '1' } }),
    (error) => error instanceof FailureError && /ENOENT.*net\/no_such/.test(error.message),
  );
  assert.equal(await seenBySpawner(), home, 'it comes back from a failure');

  await spawner.pinNamespaces(request);
  const inodes = (): Promise<number[]> => Promise.all(paths.map(async (path) => (await stat(path)).ino));
  const made = await inodes();
  await spawner.pinNamespaces(request);
  assert.deepEqual(await inodes(), made, 'doing it again makes no others');
  const enter = ['nsenter', `--net=${pins.network}`, `--ipc=${pins.ipc}`, `--uts=${pins.uts}`];
  const files = ['/proc/sys/net/ipv4/ip_forward', '/proc/sys/kernel/shmmni', '/proc/sys/kernel/hostname'];
  assert.equal(await runOk([...enter, 'cat', ...files]), '0\n99\na.pod\n');

  await runOk([...enter, 'sh', '-c', 'echo 98 > /proc/sys/kernel/shmmni']);
  await runOk(['umount', pins.uts]);
  await spawner.pinNamespaces(request);
  assert.equal(await runOk([...enter, 'cat', ...files]), '0\n99\na.pod\n', 'where one is missing all are made anew');
  assert.equal(await seenBySpawner(), home);
});
