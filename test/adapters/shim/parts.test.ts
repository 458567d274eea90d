/** The small parts of the shim adapter: times, cgroups, ids, specs, FIFOs, the shim's log. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { closeSync, constants, openSync, writeSync } from 'node:fs';
import { mkdir, mkdtemp, open, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import fc from 'fast-check';
import { pino } from 'pino';
import type { RuntimeHandler } from '../../../src/domain/model/runtime-handler.ts';
import { readCgroupsPath, readExecProcess } from '../../../src/adapters/shim/bundle-spec.ts';
import { capture, createOutputBound, createOutputMemory } from '../../../src/adapters/shim/execs/exec-output.ts';
import { fifoSocket } from '../../../src/platform/linux/fifo-socket.ts';
import { pooledCalls } from '../../../src/platform/linux/file-calls.ts';
import { makeFifo, openFifoReader, openFifoWriter } from '../../../src/adapters/shim/fifos.ts';
import { openLogDrain } from '../../../src/adapters/shim/process/log-drain.ts';
import { cgroupPathOfSpec, createOomCounters } from '../../../src/adapters/shim/tasks/oom.ts';
import { memoryCgroupPath } from '../../../src/platform/linux/memory-cgroup.ts';
import { checkBundlePath, checkedId, shimPaths } from '../../../src/adapters/shim/paths.ts';
import { orAfter } from '../../../src/platform/rpc/timeout.ts';
import { isInitOf, isSignalledHere } from '../../../src/adapters/shim/tasks/signal-init.ts';
import { exitTimeNs } from '../../../src/adapters/shim/tasks/timestamps.ts';

const run = promisify(execFile);
let dir: string;
before(async () => {
  dir = await mkdtemp(join(tmpdir(), 'scribe-shim-parts-'));
});
after(() => rm(dir, { recursive: true }));

const statusWith = (parentPid: number, namespacePids: string): string =>
  `Name:\tsh\nPPid:\t${parentPid}\nNSpid:\t${namespacePids}\nThreads:\t1\n`;

describe('the process that a task is signalled by', () => {
  it('is a child of the shim, and the first of a PID namespace of its own', () => {
    assert.equal(isInitOf(statusWith(40, '512\t1'), 40), true);
    assert.equal(isInitOf(statusWith(40, '512\t33\t1'), 40), true);
    assert.equal(isInitOf(statusWith(41, '512\t1'), 40), false, "another's child");
    assert.equal(isInitOf(statusWith(40, '512\t7'), 40), false, "in the pod's namespace");
    assert.equal(isInitOf(statusWith(40, '512'), 40), false, "in the node's namespace");
    assert.equal(isInitOf(statusWith(0, '1'), 0), false, 'the first of all');
    assert.equal(isInitOf('', 40), false, 'gone');
  });

  it('is that of runc and crun only, in the hands of their own shim', () => {
    const handler = { name: 'x', runtimeType: 'io.containerd.runc.v2', binaryName: 'runc', systemdCgroup: false };
    const signalled = (more: Partial<RuntimeHandler>) => isSignalledHere({ ...handler, ...more });
    assert.deepEqual(
      [{}, { binaryName: '/usr/bin/crun' }, { binaryName: 'runsc' }, { runtimeType: 'io.containerd.kata.v2' }].map(
        signalled,
      ),
      [true, true, false, false],
    );
  });
});

describe('the time of an exit', () => {
  it('is told in nanoseconds', () => {
    assert.equal(exitTimeNs({ seconds: '1700000000', nanos: 123456789 }), '1700000000123456789');
  });
  it('is now where the shim tells none that could be', () => {
    const earliest = BigInt(Date.now()) * 1_000_000n;
    const anyTime = fc.record({
      seconds: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
      nanos: fc.integer(),
    });
    fc.assert(
      fc.property(anyTime, (time) => {
        const ns = BigInt(exitTimeNs(time));
        assert.ok(ns > 0n && ns < 2n ** 63n);
      }),
    );
    for (const time of [undefined, { seconds: '-62135596800', nanos: 0 }, { seconds: '99999999999', nanos: 0 }]) {
      assert.ok(BigInt(exitTimeNs(time)) >= earliest);
    }
  });
});

describe('the memory cgroup of a task', () => {
  it('is found in /proc/<pid>/cgroup of all layouts', () => {
    const hybrid = '8:pids:/a\n4:memory:/kubepods/pod1/c1\n1:cpu,cpuacct:/b\n0::/unified\n';
    assert.equal(memoryCgroupPath(hybrid, 1), '/kubepods/pod1/c1');
    assert.equal(memoryCgroupPath('0::/kubepods.slice/c1.scope\n', 2), '/kubepods.slice/c1.scope');
    assert.equal(memoryCgroupPath('0::/x\n', 1), null);
    assert.equal(memoryCgroupPath('garbage', 2), null);
  });
  it('is where the spec says, in either form', () => {
    assert.equal(cgroupPathOfSpec('/kubepods/pod1/c1'), '/kubepods/pod1/c1');
    assert.equal(
      cgroupPathOfSpec('kubepods-burstable-pod1.slice:cri-containerd:c1'),
      '/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice/cri-containerd-c1.scope',
    );
    for (const odd of ['relative/path', 'a:b', 'x.slice:b:c:d', 'noslice:b:c', 'a.slice:../b:c']) {
      assert.equal(cgroupPathOfSpec(odd), null);
    }
  });
  it('tells the kills of both versions, and 0 where it is gone', async () => {
    await writeFile(join(dir, 'memory.oom_control'), 'oom_kill_disable 0\nunder_oom 0\noom_kill 3\n');
    await writeFile(join(dir, 'memory.events'), 'low 0\nhigh 0\nmax 17\noom 2\noom_kill 1\noom_group_kill 0\n');
    const counters = (version: 1 | 2) => createOomCounters({ version, controllers: { memory: '/x' } });
    assert.equal(await counters(1).oomKills(dir), 3);
    assert.equal(await counters(2).oomKills(dir), 1);
    assert.equal(await counters(2).oomKills(join(dir, 'gone')), 0);
  });
  it('tells the kills in one that systemd has removed by what the kernel wrote of them', async () => {
    const scope = (id: string): string => `/kubepods.slice/kubepods-pod1.slice/cri-scribe-${id}.scope`;
    const killed = (id: string): string =>
      `<6>[  148.202] oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=${scope(id)},mems_allowed=0,oom_memcg=${scope(id)},task_memcg=${scope(id)},task=tail,pid=683,uid=0`;
    const log = [
      killed('one'),
      '<3>[  148.203] Memory cgroup out of memory: Killed process 683 (tail)',
      killed('other'),
      killed('one'),
    ].join('\n');
    const counters = createOomCounters({ version: 2, controllers: {} }, async () => log);
    assert.equal(await counters.oomKills(scope('one')), 2);
    assert.equal(await counters.oomKills(scope('on')), 0);
    const forbidden = async (): Promise<string> => {
      throw new Error('EPERM');
    };
    assert.equal(await createOomCounters({ version: 2, controllers: {} }, forbidden).oomKills(scope('one')), 0);
  });
});

describe('ids', () => {
  it('never lead out of a directory', () => {
    for (const id of ['', '.', '..', '../x', 'a/b', '-x', 'a\0b', 'x'.repeat(129)]) {
      assert.throws(() => checkedId(id), { name: 'FailureError' });
    }
    assert.equal(shimPaths('/s').ioDir('a1'), '/s/io/a1');
    assert.throws(() => shimPaths('/s').execFifo('../../etc/x', 'stdout'), { name: 'FailureError' });
    assert.throws(() => {
      checkBundlePath('abc', '/bundles/other');
    }, /in a directory named abc/);
  });
});

describe('the spec of a bundle', () => {
  it('gives an exec the process of its container, with other arguments and no terminal', async () => {
    const bundle = join(dir, 'bundle');
    await mkdir(bundle);
    const process = {
      terminal: true,
      consoleSize: { width: 1 },
      args: ['sleep'],
      env: ['SECRET=s3cret'],
      user: { uid: 7 },
      cwd: '/w',
    };
    await writeFile(join(bundle, 'config.json'), JSON.stringify({ process, linux: { cgroupsPath: '/x/y' } }));
    assert.deepEqual(await readExecProcess(bundle, ['id'], false), {
      terminal: false,
      args: ['id'],
      env: ['SECRET=s3cret'],
      user: { uid: 7 },
      cwd: '/w',
    });
    const withTerminal = await readExecProcess(bundle, ['id'], true);
    assert.equal(withTerminal['terminal'], true);
    assert.deepEqual(withTerminal['env'], ['SECRET=s3cret', 'TERM=xterm']);
    assert.equal(await readCgroupsPath(bundle), '/x/y');
  });
  it('is not followed through a link, and garbage is a failure', async () => {
    const bundle = join(dir, 'linked');
    await mkdir(bundle);
    await symlink('/etc/hostname', join(bundle, 'config.json'));
    await assert.rejects(readExecProcess(bundle, ['id'], false), { code: 'ELOOP' });
    assert.equal(await readCgroupsPath(bundle), null);
    const garbage = join(dir, 'garbage');
    await mkdir(garbage);
    await writeFile(join(garbage, 'config.json'), '[]');
    await assert.rejects(readExecProcess(garbage, ['id'], false), /no OCI spec/);
    await writeFile(join(garbage, 'config.json'), '{"process":7}');
    await assert.rejects(readExecProcess(garbage, ['id'], false), /no process/);
  });
});

describe('FIFOs', () => {
  it('are made once, and never in the place of something else', async () => {
    const path = join(dir, 'fifo');
    await makeFifo(path);
    await makeFifo(path);
    const file = join(dir, 'file');
    await writeFile(file, '');
    await assert.rejects(makeFifo(file), /in the way/);
  });
  it('end for a reader that opens them behind the last byte, and not before it did', async () => {
    const path = join(dir, 'late-reader');
    await makeFifo(path);
    const writer = await openFifoWriter(path, pooledCalls);
    // As a shim has it: its own end for writing from the beginning, which is closed where there is no more to come.
    const shimsOwn = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
    writeSync(writer.fd, 'early');
    closeSync(writer.fd);
    let isEnded = false;
    const ended = writer.end(() => false).then(() => (isEnded = true));
    await sleep(50);
    assert.equal(isEnded, false, 'nobody reads it yet');
    const read = run('cat', [path], { timeout: 10_000 });
    await ended;
    closeSync(shimsOwn);
    assert.equal((await read).stdout, 'early');
    writer.release();
  });

  it('are not waited for once it is over', async () => {
    const path = join(dir, 'no-reader');
    await makeFifo(path);
    const writer = await openFifoWriter(path, pooledCalls);
    closeSync(writer.fd);
    let isOver = false;
    const ended = writer.end(() => isOver);
    isOver = true;
    await ended;
    writer.release();
    assert.throws(
      () => openSync(path, constants.O_WRONLY | constants.O_NONBLOCK),
      { code: 'ENXIO' },
      'nothing is held',
    );
  });

  it('end when the writer has gone, not before one has come', async () => {
    const path = join(dir, 'ending');
    await makeFifo(path);
    const memory = createOutputMemory(1_000_000);
    const captured = capture(fifoSocket(await openFifoReader(path), 'reader'), { memory, bound: createOutputBound(5) });
    assert.equal(await orAfter(captured.ended, 50, 'open'), 'open');
    await run('sh', ['-c', `echo 123456 > ${path}`]);
    await captured.ended;
    assert.match(
      captured.take().toString(),
      /^12345\nscribe: output is cut here, after 5 bytes; 2 bytes more were dropped/,
    );
    captured.close();
  });
});

describe('the output of commands', () => {
  it('has a bound for both streams, of which one leaves some to the other', () => {
    const bound = createOutputBound(800);
    assert.deepEqual(
      [bound.take(900, 0), bound.take(10, 700), bound.take(60, 0), bound.take(60, 60), bound.take(1, 100)],
      [700, 0, 60, 40, 0],
    );
  });

  it('has room together, the last quarter of it for those who have little', () => {
    const memory = createOutputMemory(400_000);
    assert.equal(memory.take(300_001, 0), false);
    assert.equal(memory.take(300_000, 0), true);
    assert.equal(memory.take(60_000, 60_000), false);
    assert.equal(memory.take(65_536, 0), true);
    assert.equal(memory.take(65_536, 0), false);
    memory.giveBack(300_000);
    assert.equal(memory.take(65_536, 0), true);
  });
});

describe('the log of a shim', () => {
  it('is read however much comes, in bounded lines, and outlives its writers', async () => {
    const bundle = join(dir, 'logging');
    await mkdir(bundle);
    const lines: string[] = [];
    const log = pino({ level: 'debug', base: null }, { write: (line: string) => lines.push(line) });
    const drain = await openLogDrain(bundle, log);
    for (const _round of [1, 2]) {
      const writer = await open(join(bundle, 'log'), 'w');
      await writer.write(`${'x'.repeat(300_000)}\nshort\n`);
      for (let line = 0; line < 500; line += 1) await writer.write(`line ${line}\n`);
      await writer.close();
    }
    drain.close();
    assert.ok(lines.some((line) => line.includes('short')));
    assert.ok(lines.length <= 300, `${lines.length} lines were admitted`);
    assert.ok(lines.every((line) => line.length < 5000));
  });
});
