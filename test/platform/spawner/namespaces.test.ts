/** The namespaces of pods without a pause task, made for real by the spawner (root is needed). */
import assert from 'node:assert/strict';
import { chown, mkdir, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import { parseNetDev } from '../../../src/adapters/stats/network.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { withReason } from '../../support/failures.ts';
import { requireRoot } from '../../support/netns.ts';
import { runOk, startProcess } from '../../support/process.ts';
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

  for (const [name, value, code] of [
    ['net.no_such', '1', 'ENOENT'],
    ['net.ipv4.ip_forward', 'many', 'EINVAL'],
    ['net.ipv4', '1', 'EISDIR'],
  ] as const) {
    await assert.rejects(
      spawner.pinNamespaces({ ...request, sysctls: { ...sysctls, [name]: value } }),
      withReason(
        'InvalidField',
        new RegExp(`^linux\\.sysctls\\[${name.replaceAll('.', '\\.')}\\] cannot be set to "${value}" .*${code}`),
      ),
    );
  }
  assert.equal(await seenBySpawner(), home, 'it comes back from a failure');

  await spawner.pinNamespaces(request);
  const inodes = (): Promise<number[]> => Promise.all(paths.map(async (path) => (await stat(path)).ino));
  const made = await inodes();
  await spawner.pinNamespaces(request);
  assert.deepEqual(await inodes(), made, 'doing it again makes no others');
  const enter = ['nsenter', `--net=${pins.network}`, `--ipc=${pins.ipc}`, `--uts=${pins.uts}`];
  const files = ['/proc/sys/net/ipv4/ip_forward', '/proc/sys/kernel/shmmni', '/proc/sys/kernel/hostname'];
  assert.equal(await runOk([...enter, 'cat', ...files]), '0\n99\na.pod\n');

  await runOk([...enter, 'ip', 'link', 'add', 'd0', 'type', 'veth', 'peer', 'name', 'd1']);
  const interfaces = parseNetDev((await spawner.readNetDev(pins.network)) ?? '');
  assert.deepEqual(interfaces.map(({ name }) => name).sort(), ['d0', 'd1']);
  const unpinned = join(dir, 'unpinned');
  await writeFile(unpinned, '');
  for (const path of [unpinned, join(dir, 'nowhere')]) assert.equal(await spawner.readNetDev(path), null);
  assert.equal(await seenBySpawner(), home, 'it comes back from a look');

  await runOk([...enter, 'sh', '-c', 'echo 98 > /proc/sys/kernel/shmmni']);
  await runOk(['umount', pins.uts]);
  await spawner.pinNamespaces(request);
  assert.equal(await runOk([...enter, 'cat', ...files]), '0\n99\na.pod\n', 'where one is missing all are made anew');
  assert.equal(await seenBySpawner(), home);
});

test('the spawner pins the network of a process, and mounts trees for its users', async (t) => {
  requireRoot();
  const dir = await tempDir(t);
  const spawner = await startSpawner({ lockPath: join(dir, 'spawner.lock'), startTimeoutMs: 10_000 });
  onCleanup(t, () => spawner.close());
  const { pid, until } = await startProcess(t, ['unshare', '--user', '--net', 'sh', '-c', 'echo made; exec sleep 100']);
  await until(/made/);
  for (const map of ['uid_map', 'gid_map']) await writeFile(`/proc/${pid}/${map}`, '0 65536 1000');
  const holder = { pid, startTicks: (await readProcessStat(pid))?.startTicks ?? '' };

  const pin = join(dir, 'net');
  onCleanup(t, async () => void (await runOk(['umount', pin])));
  await spawner.pinNetnsOf(holder, pin);
  await spawner.pinNetnsOf(holder, pin);
  const enter = ['nsenter', `--net=${pin}`];
  assert.equal(
    (await runOk([...enter, 'readlink', '/proc/self/ns/net'])).trim(),
    await readlink(`/proc/${pid}/ns/net`),
  );
  assert.match(await runOk([...enter, 'ip', '-o', 'link', 'show', 'lo']), /LOOPBACK,UP/);

  const source = join(dir, 'source');
  await mkdir(join(source, 'below'), { recursive: true });
  await writeFile(join(source, 'file'), '');
  await chown(join(source, 'file'), 33, 34);
  const mounts = [
    { source, target: join(dir, 'made/tree') },
    { source: join(source, 'file'), target: join(dir, 'made/file') },
  ];
  onCleanup(t, () => Promise.all(mounts.map(({ target }) => spawner.unmount(target))).then(() => undefined));
  await spawner.mountMapped({ holder, mounts });
  for (const path of ['tree/file', 'file']) {
    const { uid, gid } = await stat(join(dir, 'made', path));
    assert.deepEqual([uid, gid], [65536 + 33, 65536 + 34], path);
  }
  await spawner.mount({
    source: 'x',
    target: join(dir, 'source/below'),
    type: 'overlay',
    options: ['ro', 'lowerdir=tree:.'],
    from: join(dir, 'made'),
  });
  onCleanup(t, () => spawner.unmount(join(dir, 'source/below')));
  assert.equal((await stat(join(dir, 'source/below/tree'))).isDirectory(), true);

  await assert.rejects(
    spawner.mountMapped({ holder, mounts: [{ source: '/proc', target: join(dir, 'proc') }] }),
    withReason('HostLacks', /^\/proc is on a file system that cannot be mounted with mapped ids/),
  );

  // Mounts below a shared one are taken away wherever it is seen, unless what is seen there only follows it.
  const shared = join(dir, 'shared');
  const below = join(shared, 'below');
  await mkdir(shared);
  await runOk(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'shared', shared]);
  onCleanup(t, async () => void (await runOk(['umount', '-R', shared])));
  await runOk(['mount', '--make-shared', shared]);
  await mkdir(below);
  await runOk(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'below', below]);
  await writeFile(join(below, 'file'), '');
  const seen = join(dir, 'made/shared');
  await spawner.mountMapped({ holder, mounts: [{ source: shared, target: seen }] });
  onCleanup(t, () => spawner.unmount(seen));
  assert.equal((await stat(join(seen, 'below/file'))).isFile(), true);
  await mkdir(join(shared, 'later'));
  await runOk(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'later', join(shared, 'later')]);
  await writeFile(join(shared, 'later/file'), '');
  assert.equal((await stat(join(seen, 'later/file'))).isFile(), true, 'later mounts come along');
  await spawner.unmount(seen);
  for (const name of ['below', 'later']) assert.equal((await stat(join(shared, name, 'file'))).isFile(), true, name);

  const other = { ...holder, startTicks: '1' };
  await assert.rejects(spawner.mountMapped({ holder: other, mounts }), withReason('WrongState', /has ended/));
  await assert.rejects(spawner.pinNetnsOf(other, join(dir, 'other')), withReason('WrongState', /has ended/));
});
