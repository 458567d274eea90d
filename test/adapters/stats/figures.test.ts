/** Figures for metrics, from cgroup trees as kernels of both versions write them, and interface counters. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import fc from 'fast-check';
import { readFigures } from '../../../src/adapters/stats/figures.ts';
import { readFileSystem } from '../../../src/adapters/stats/file-system.ts';
import { createBufferPool } from '../../../src/adapters/stats/buffer-pool.ts';
import { parseNetDev, readInterfaces } from '../../../src/adapters/stats/network.ts';
import { readProcessStat } from '../../../src/platform/linux/processes.ts';
import { netnsOf } from '../../support/netns.ts';
import { runOk, startProcess } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { cgroupOf, hierarchies } from './support.ts';

const withBuffer = createBufferPool(1, 16 * 1024);

/** Writes the files of one cgroup below each of the controllers' roots. */
const tree = async (t: TestContext, files: Readonly<Record<string, string>>): Promise<string> => {
  const root = await tempDir(t);
  await mkdir(join(root, 'pod/c1'), { recursive: true });
  for (const [name, text] of Object.entries(files)) await writeFile(join(root, 'pod/c1', name), text);
  return root;
};

const target = { id: 'c1', cgroupPath: '/pod/c1' };

describe('figures of a cgroup', () => {
  it('of version 2', async (t) => {
    const pressure =
      'some avg10=0.00 avg60=0.00 avg300=0.00 total=1500000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n';
    const root = await tree(t, {
      'cpu.stat':
        'usage_usec 5000000\nuser_usec 3000000\nsystem_usec 2000000\nnr_periods 9\nnr_throttled 4\nthrottled_usec 8\n',
      'cpu.max': '50000 100000\n',
      'cpu.weight': '100\n',
      'cpu.pressure': pressure,
      'memory.current': '1000\n',
      'memory.peak': '2000\n',
      'memory.max': 'max\n',
      'memory.low': '700\n',
      'memory.events': 'low 0\nhigh 0\nmax 3\noom 2\noom_kill 1\n',
      'memory.stat':
        'anon 500\nfile 300\nkernel 40\nfile_mapped 20\ninactive_file 100\nactive_file 90\npgfault 70\npgmajfault 6\n',
      'io.stat':
        '8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n8:16 rbytes=5 wbytes=0 rios=1 wios=0 dbytes=0 dios=0\n',
      'cgroup.procs': '5\n6\n7\n',
      'pids.current': '12\n',
      'pids.max': 'max\n',
    });
    const figures = await readFigures({ version: 2, controllers: { memory: root } }, target, 'cgroup', withBuffer);
    assert.ok(figures);
    const { cpuNs, cpuUserNs, cfsThrottledPeriods, cfsThrottledNs, cpuQuotaUs, cpuPeriodUs, cpuShares } = figures;
    assert.deepEqual([cpuNs, cpuUserNs, cfsThrottledPeriods], [5_000_000_000n, 3_000_000_000n, 4n]);
    assert.deepEqual([cfsThrottledNs, cpuQuotaUs, cpuPeriodUs, cpuShares], [8000n, 50_000n, 100_000n, 2597n]);
    const { memoryUsage, memoryWorkingSet, memoryMaxUsage, memoryLimit, memoryFailures, oomKills, memoryRss } = figures;
    assert.deepEqual([memoryUsage, memoryWorkingSet, memoryMaxUsage, memoryLimit], [1000n, 900n, 2000n, undefined]);
    assert.deepEqual([memoryFailures, oomKills, memoryRss, figures.memoryKernel], [3n, 1n, 500n, 40n]);
    const { memoryActiveFile, memoryInactiveFile, memoryReservation } = figures;
    assert.deepEqual([memoryActiveFile, memoryInactiveFile, memoryReservation], [90n, 100n, 700n]);
    const told = (counts: typeof figures.deviceBytes) =>
      counts.map(({ major, minor, operation, count }) => `${major}:${minor} ${operation} ${count}`);
    const words = (counts: readonly number[]): string[] =>
      ['8:0', '8:16'].flatMap((device, index) =>
        ['Read', 'Write', 'Discard'].map((operation, at) => `${device} ${operation} ${counts[3 * index + at]}`),
      );
    assert.deepEqual(told(figures.deviceBytes), words([10, 20, 0, 5, 0, 0]));
    assert.deepEqual(told(figures.deviceTimes), words([1, 2, 0, 1, 0, 0]));
    assert.deepEqual([figures.processes, figures.threads, figures.threadsMax], [3n, 12n, undefined]);
    assert.deepEqual(
      [figures.cpuWaitingNs, figures.cpuStalledNs, figures.ioWaitingNs],
      [1_500_000_000n, 7000n, undefined],
    );
  });

  it('of version 1', async (t) => {
    const root = await tree(t, {
      'cpuacct.usage': '5000000000\n',
      'cpuacct.stat': 'user 300\nsystem 200\n',
      'cpu.stat': 'nr_periods 9\nnr_throttled 4\nthrottled_time 8000\n',
      'cpu.shares': '512\n',
      'cpu.cfs_quota_us': '-1\n',
      'memory.usage_in_bytes': '1000\n',
      'memory.max_usage_in_bytes': '2000\n',
      'memory.failcnt': '3\n',
      'memory.soft_limit_in_bytes': '9223372036854771712\n',
      'memory.oom_control': 'oom_kill_disable 0\nunder_oom 0\noom_kill 1\n',
      'memory.stat': [
        'rss 1',
        'hierarchical_memory_limit 4096',
        'hierarchical_memsw_limit 9223372036854771712',
        'total_cache 300',
        'total_rss 500',
        'total_inactive_file 100',
        'total_active_file 90',
        'total_pgfault 70',
        '',
      ].join('\n'),
      'blkio.throttle.io_service_bytes_recursive':
        '7777:0 Read 10\n7777:0 Write 20\n7777:0 Total 30\n7777:16 Read 5\nTotal 35\n',
      'pids.current': '12\n',
    });
    const controllers = { cpu: root, cpuacct: root, memory: root, pids: root, blkio: root };
    const figures = await readFigures({ version: 1, controllers }, target, 'cgroup', withBuffer);
    assert.ok(figures);
    const { cpuNs, cpuUserNs, cpuSystemNs, cfsThrottledNs, cpuShares, cpuQuotaUs } = figures;
    assert.deepEqual([cpuNs, cpuUserNs, cpuSystemNs], [5_000_000_000n, 3_000_000_000n, 2_000_000_000n]);
    assert.deepEqual([cfsThrottledNs, cpuShares, cpuQuotaUs], [8000n, 512n, undefined]);
    const { memoryWorkingSet, memoryLimit, memorySwapLimit, memoryCache, oomKills } = figures;
    assert.deepEqual([memoryWorkingSet, memoryLimit, memorySwapLimit], [900n, 4096n, undefined]);
    assert.deepEqual([memoryCache, oomKills], [300n, 1n]);
    const { memoryActiveFile, memoryInactiveFile, memoryReservation } = figures;
    assert.deepEqual([memoryActiveFile, memoryInactiveFile, memoryReservation], [90n, 100n, undefined]);
    // A device that is not there, or has no name, is called by its numbers.
    assert.deepEqual(figures.deviceBytes, [
      { major: '7777', minor: '0', device: '7777:0', operation: 'Read', count: 10n },
      { major: '7777', minor: '0', device: '7777:0', operation: 'Write', count: 20n },
      { major: '7777', minor: '16', device: '7777:16', operation: 'Read', count: 5n },
    ]);
  });

  it('count all processes, though the kernel tells some hundred at a time', async (t) => {
    const { version, controllers } = await hierarchies();
    const group = await cgroupOf(t, Object.values(controllers));
    // They end by themselves, should the test do so before them.
    const work = await group.run('for n in $(seq 1000); do sleep 15 >&- 2>&- & done; echo all; wait');
    await work.until(/all/);
    const figures = await readFigures({ version, controllers }, { id: 'c', cgroupPath: group.path }, 'all', withBuffer);
    await work.stop();
    const listed = await readFile(join(controllers['memory'] ?? '', group.path, 'cgroup.procs'), 'utf8');
    for (const pid of listed.trim().split('\n')) process.kill(Number(pid), 'SIGKILL');
    assert.equal(figures?.processes, 1001n);
  });

  it('count open files and sockets of all processes, and tell the limit of the first', async (t) => {
    const { version, controllers } = await hierarchies();
    const group = await cgroupOf(t, Object.values(controllers));
    const script = `
      const servers = Array.from({ length: 20 }, () => require("net").createServer());
      let listening = 0;
      const files = Array.from({ length: 30 }, () => require("fs").openSync("/dev/null"));
      for (const server of servers)
        server.listen(0, "127.0.0.1", () => (listening += 1) === servers.length && console.log("all", files.length));
    `;
    const work = await group.run(`ulimit -S -n 1234; ${process.execPath} -e '${script}' & wait`);
    await work.until(/all 30/);
    const read = () => readFigures({ version, controllers }, { id: 'c', cgroupPath: group.path }, 'all', withBuffer);
    const figures = await read();
    await work.stop();
    const listed = await readFile(join(controllers['memory'] ?? '', group.path, 'cgroup.procs'), 'utf8');
    for (const pid of listed.trim().split('\n').filter(Boolean)) process.kill(Number(pid), 'SIGKILL');
    const { fileDescriptors = 0n, sockets = 0n, openFilesMax } = figures ?? {};
    assert.ok(sockets >= 20n && sockets < 30n, `${sockets} sockets`);
    assert.ok(fileDescriptors >= sockets + 30n && fileDescriptors < 200n, `${fileDescriptors} files`);
    assert.equal(openFilesMax, 1234n);
  });

  it('are of whole lines, where a file has more than is read of it', async (t) => {
    const line = (_: unknown, index: number): string => `8:${100 + index} rbytes=1000000000 wbytes=0 rios=3 wios=0\n`;
    const devices = Array.from({ length: 600 }, line);
    const root = await tree(t, { 'io.stat': devices.join('') });
    const figures = await readFigures({ version: 2, controllers: { io: root } }, target, 'cgroup', withBuffer);
    const reads = (figures?.deviceBytes ?? []).filter(({ operation }) => operation === 'Read');
    assert.ok(reads.length > 100);
    assert.ok(reads.every(({ count }) => count === 1_000_000_000n));
  });

  it('are none of one that is gone, or that cannot be known', async (t) => {
    const root = await tempDir(t);
    const cgroup = { version: 2, controllers: { memory: root } } as const;
    assert.equal(await readFigures(cgroup, target, 'cgroup', withBuffer), null);
    assert.equal(await readFigures(cgroup, { id: 'x', cgroupPath: '/a/../..' }, 'all', withBuffer), null);
  });
});

describe('the file system of a directory', () => {
  it('is told with its device as the kernel writes it in cgroup files', async (t) => {
    const dir = await tempDir(t);
    const { major, minor, device, limitBytes, inodes, inodesFree } = await readFileSystem(dir);
    const mounted = (await runOk(['findmnt', '--noheadings', '--output', 'MAJ:MIN', '--target', dir])).trim();
    assert.equal(`${major}:${minor}`, mounted);
    const names = await readdir('/sys/class/block');
    const numbers = await Promise.all(names.map((name) => readFile(`/sys/class/block/${name}/dev`, 'utf8')));
    const name = names.find((_, index) => numbers[index]?.trim() === mounted);
    assert.equal(device, name === undefined ? mounted : `/dev/${name}`);
    assert.ok(limitBytes > 1_000_000n && inodes >= inodesFree && inodesFree > 0n);
  });
});

describe('interface counters', () => {
  const header = `Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
`;
  it('are those of all interfaces but loopback', () => {
    const text = `${header}    lo:   99    1    0    0    0     0          0         0       99       1    0    0    0     0       0          0
  eth0: 1000   10    1    2    0     0          0         0     2000      20    3    4    0     0       0          0
`;
    assert.deepEqual(parseNetDev(text), [
      {
        name: 'eth0',
        rxBytes: 1000n,
        rxPackets: 10n,
        rxErrors: 1n,
        rxDropped: 2n,
        txBytes: 2000n,
        txPackets: 20n,
        txErrors: 3n,
        txDropped: 4n,
      },
    ]);
  });

  it('can be any text without harm', () => {
    fc.assert(fc.property(fc.string(), (text) => void parseNetDev(`${header}${text}`)));
  });

  it('are those of all interfaces, though the kernel tells some at a time', async (t) => {
    const netns = await netnsOf(t);
    const names = Array.from({ length: 60 }, (_, index) => `bridge${index}`);
    for (const name of names) await runOk(['ip', '-n', netns.name, 'link', 'add', 'name', name, 'type', 'bridge']);
    const inside = await startProcess(t, netns.inside(['sh', '-c', 'echo inside; exec sleep 1000']));
    await inside.until(/inside/);
    const stat = await readProcessStat(inside.pid);
    assert.ok(stat);
    const buffer = Buffer.alloc(16 * 1024);
    const found = await readInterfaces({ pid: inside.pid, startTicks: stat.startTicks }, buffer);
    assert.deepEqual(found?.map(({ name }) => name).sort(), names.sort());
    await inside.stop();
  });

  it('are null of a process that is gone, and of another with its pid', async () => {
    const buffer = Buffer.alloc(16 * 1024);
    const own = await readProcessStat(process.pid);
    assert.ok(own);
    assert.ok(await readInterfaces({ pid: process.pid, startTicks: own.startTicks }, buffer));
    assert.equal(await readInterfaces({ pid: process.pid, startTicks: '1' }, buffer), null);
    assert.equal(await readInterfaces({ pid: 2 ** 22 + 1, startTicks: '1' }, buffer), null);
  });
});
