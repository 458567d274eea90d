/**
 * The kernel's answers as scribe reads them: parsing of hostile and odd lines, and the calls themselves against the
 * real kernel (root is needed for most).
 */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { createConnection, createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { controllersOfV1, isUnified, parseEnabledControllers } from '../../../src/platform/linux/cgroups.ts';
import { capabilitiesOfMask, hugepageSizeOf, readHostFacts } from '../../../src/platform/linux/host-facts.ts';
import { mountCalls, mountInfoOf, mountLinesIn, parseMountInfo } from '../../../src/platform/linux/mounts.ts';
import {
  holdProcess,
  isAlive,
  parseProcessStat,
  readExecutable,
  readProcessStat,
} from '../../../src/platform/linux/processes.ts';
import { errorCodeOf } from '../../../src/platform/error-code.ts';
import {
  deviceNumber,
  listXattrs,
  makeNode,
  mount,
  NodeType,
  peerCredentials,
  readXattr,
  writeXattr,
} from '../../../src/platform/linux/syscalls.ts';

const timeout = 20_000;
let dir = '';

before(async () => {
  assert.equal(process.getuid?.(), 0, 'these tests make device nodes and mounts: run them as root');
  dir = await mkdtemp(join(tmpdir(), 'scribe-linux-'));
});

after(() => rm(dir, { recursive: true, force: true }));

describe('/proc', () => {
  it('reads a stat line whose command holds spaces, parentheses and newlines', () => {
    const fields = ['S', '7', '42', ...Array.from({ length: 16 }, () => '0'), '998877', '0'].join(' ');
    const stat = parseProcessStat(`123 (a ) S 1 (b)\n c) ${fields}\n`);
    assert.deepEqual(stat, { pid: 123, state: 'S', parentPid: 7, processGroup: 42, session: 0, startTicks: '998877' });
  });

  it('refuses a line that is no stat line', () => {
    assert.throws(() => parseProcessStat('garbage'), /Not a line/);
    assert.throws(() => parseProcessStat('1 (x) S'), /Not a line/);
  });

  it('tells a live process from another with its pid, and from a zombie', { timeout }, async () => {
    // The shell starts a child and then becomes a program that never reaps it: the child stays a zombie.
    const parent = spawn('/bin/sh', ['-c', '/bin/sleep 0 & echo $!; exec /bin/sleep 60']);
    const [line] = (await once(parent.stdout, 'data')) as [Buffer];
    const zombiePid = Number(line.toString());
    const parentStat = await readProcessStat(parent.pid ?? 0);
    assert.ok(parentStat);
    assert.equal(await isAlive(parentStat), true);
    assert.equal(await isAlive({ pid: parentStat.pid, startTicks: '1' }), false);
    assert.equal(await isAlive({ pid: 2 ** 22 + 1, startTicks: '1' }), false);
    assert.match((await readExecutable(parentStat.pid)) ?? '', /^\//);
    const zombie = await readProcessStat(zombiePid);
    assert.ok(zombie);
    // It may still be on its way to its end: held, it says when.
    const held = await holdProcess(zombie);
    if (held) {
      const keepRunning = setInterval(() => undefined, 1000);
      await held.ended;
      clearInterval(keepRunning);
      held.release();
    }
    assert.equal((await readProcessStat(zombiePid))?.state, 'Z');
    assert.equal(await isAlive(zombie), false);
    assert.equal(await holdProcess(zombie), null);
    parent.kill('SIGKILL');
    await once(parent, 'exit');
    assert.equal(await readExecutable(parentStat.pid), null);
  });

  it('holds a process: signals exactly it, and hears of its end', { timeout }, async () => {
    const child = spawn('/bin/sleep', ['60'], { stdio: 'ignore' });
    const stat = await readProcessStat(child.pid ?? 0);
    assert.ok(stat);
    assert.equal(await holdProcess({ ...stat, startTicks: '1' }), null);
    const held = await holdProcess(stat);
    assert.ok(held);
    const exited = once(child, 'exit');
    assert.equal(held.kill(9), true);
    await Promise.all([held.ended, exited]);
    assert.equal(held.kill(9), false);
    held.release();
    held.release();
    assert.equal(held.kill(9), false);
  });
});

describe('mount table', () => {
  const text = [
    '27 1 254:0 / / rw,relatime - ext4 /dev/vda rw',
    '31 27 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755',
    '32 31 0:29 /x /elsewhere/cpu rw - cgroup cgroup rw,cpu',
    '33 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:7 - cgroup cgroup rw,cpu,cpuacct',
    '34 31 0:38 / /sys/fs/cgroup/unified rw master:3 propagate_from:2 - cgroup2 cgroup2 rw',
    '35 27 0:40 / /run/pod/a\\040b rw - tmpfs shm rw',
    '36 35 0:41 / /run/pod/a\\040b/inner rw - tmpfs shm rw',
    '37 27 0:42 / /run/podlike rw - tmpfs shm rw',
    'nonsense',
    '',
  ].join('\n');
  const table = parseMountInfo(text);

  it('is read with its escapes, tags and options', () => {
    assert.equal(table.length, 8);
    assert.deepEqual(
      table.map((mount) => mount.propagation),
      ['private', 'private', 'private', 'shared', 'slave', 'private', 'private', 'private'],
    );
    assert.deepEqual(table[3]?.options, ['rw', 'nosuid']);
    assert.equal(table[2]?.root, '/x');
  });

  it('is read line by line, and taken apart where it is wanted', () => {
    const lines = mountLinesIn(text);
    assert.deepEqual(
      lines.map(({ mountPoint }) => mountPoint),
      table.map(({ mountPoint }) => mountPoint),
    );
    assert.deepEqual(
      lines.map(({ line }) => mountInfoOf(line)),
      table,
    );
    assert.equal(mountInfoOf('nonsense'), null);
  });

  it('finds the version 1 controllers, and the unified hierarchy only where runtimes look', () => {
    const enabled = parseEnabledControllers(
      '#subsys_name\thierarchy\tnum_cgroups\tenabled\ncpu\t1\t1\t1\ncpuacct\t1\t1\t1\nmemory\t0\t1\t0\n',
    );
    const combined = '/sys/fs/cgroup/cpu,cpuacct';
    assert.deepEqual(controllersOfV1(table, enabled), { cpu: combined, cpuacct: combined });
    assert.equal(isUnified(table), false);
    assert.equal(isUnified(parseMountInfo('31 27 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw')), true);
  });

  it('turns option words into calls', () => {
    assert.deepEqual(mountCalls(['nosuid', 'noexec', 'nodev', 'mode=1777', 'size=65536']), [
      { flags: 0x2 | 0x8 | 0x4, data: 'mode=1777,size=65536' },
    ]);
    assert.deepEqual(mountCalls(['rbind', 'ro']), [
      { flags: 0x5000, data: '' },
      { flags: 0x1 | 0x1000 | 0x20, data: '' },
    ]);
    assert.deepEqual(mountCalls(['bind', 'rw']), [{ flags: 0x1000, data: '' }]);
    assert.deepEqual(mountCalls(['constructor']), [{ flags: 0, data: 'constructor' }]);
  });
});

describe('host facts', () => {
  it('name capabilities and huge pages', () => {
    assert.deepEqual(capabilitiesOfMask('0000000001000001'), ['CAP_CHOWN', 'CAP_SYS_RESOURCE']);
    assert.equal(capabilitiesOfMask('ffffffffffffffff').at(-1), 'CAP_CHECKPOINT_RESTORE');
    assert.deepEqual(['hugepages-2048kB', 'hugepages-1048576kB', 'hugepages-64kB', 'hugepages-x'].map(hugepageSizeOf), [
      '2MB',
      '1GB',
      '64KB',
      null,
    ]);
  });

  it('are read from this machine', async () => {
    const facts = await readHostFacts();
    assert.match(facts.bootId, /^[0-9a-f-]{36}$/);
    assert.ok(facts.capabilities.includes('CAP_SYS_ADMIN'));
    assert.equal(facts.canRaiseLimits, facts.capabilities.includes('CAP_SYS_RESOURCE'));
    assert.ok(facts.cgroup.controllers.memory, 'no memory controller found');
    assert.match(facts.architecture, /^(amd64|arm64)$/);
    assert.ok(facts.cpuCount > 0);
  });
});

describe('system calls', () => {
  it('fail with code, path and call in the message', async () => {
    await assert.rejects(makeNode(join(dir, 'no', 'fifo'), NodeType.fifo | 0o600), (error) => {
      assert.equal(errorCodeOf(error), 'ENOENT');
      return /ENOENT: no such file or directory, mknod '.*fifo'/.test(String(error));
    });
    assert.throws(() => mount('x', join(dir, 'nowhere'), 'tmpfs', 0, ''), { code: 'ENOENT', syscall: 'mount' });
  });

  it('make FIFOs and devices', async () => {
    await makeNode(join(dir, 'fifo'), NodeType.fifo | 0o700);
    assert.equal((await stat(join(dir, 'fifo'))).isFIFO(), true);
    await makeNode(join(dir, 'null'), NodeType.characterDevice | 0o600, deviceNumber(1, 3));
    assert.equal((await stat(join(dir, 'null'))).rdev, (await stat('/dev/null')).rdev);
  });

  it('that the pool makes may be asked for by the thousand at once', async () => {
    const paths = Array.from({ length: 2000 }, (_, index) => join(dir, `one-of-many-${index}`));
    await Promise.all(paths.map((path) => makeNode(path, NodeType.fifo | 0o600)));
    const made = (await readdir(dir)).filter((name) => name.startsWith('one-of-many-'));
    assert.equal(made.length, paths.length);
  });

  it('set and read extended attributes of a link itself and of files', async () => {
    const path = join(dir, 'attributed');
    await writeFile(path, '');
    await symlink(path, join(dir, 'link'));
    await writeXattr(path, 'user.scribe', Buffer.from('value'));
    assert.deepEqual(await listXattrs(path), ['user.scribe']);
    assert.deepEqual(await listXattrs(join(dir, 'link')), []);
    assert.equal(Buffer.from((await readXattr(path, 'user.scribe')) ?? []).toString(), 'value');
    assert.equal(await readXattr(path, 'user.other'), null);
  });

  it('name the peer of a unix socket', { timeout }, async () => {
    const server = createServer();
    server.listen(join(dir, 'socket'));
    await once(server, 'listening');
    const client = createConnection(join(dir, 'socket'));
    const [accepted] = (await once(server, 'connection')) as [Socket];
    assert.deepEqual(peerCredentials(accepted), { pid: process.pid, uid: 0, gid: process.getgid?.() });
    accepted.destroy();
    await once(accepted, 'close');
    assert.throws(() => peerCredentials(accepted), { code: 'EBADF' });
    client.destroy();
    server.close();
  });
});
