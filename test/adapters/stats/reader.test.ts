/** ContainerStats from real control groups. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { describe, it, type TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createStatsReader } from '../../../src/adapters/stats/reader.ts';
import type { CgroupFigures, StatsReader, TaskFiguresOf } from '../../../src/adapters/stats/types.ts';
import type { CgroupFacts } from '../../../src/domain/model/node-facts.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { eventually } from '../../support/pods.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { cgroupOf, clock, hierarchies } from './support.ts';

const mebibyte = 1024 * 1024;

const noTask: TaskFiguresOf = () => assert.fail('no shim is to be asked');

const readerOf = (
  t: TestContext,
  cgroup: Pick<CgroupFacts, 'version' | 'controllers'>,
  taskFigures = noTask,
): StatsReader => {
  const report = (message: string): never => assert.fail(message);
  const reader = createStatsReader({ cgroup, clock, taskFigures, report });
  onCleanup(t, reader.close);
  return reader;
};

const valueOf = (field: { readonly value: string } | undefined): number => Number(field?.value ?? Number.NaN);

const ownDescriptors = async (): Promise<number> => (await readdir('/proc/self/fd')).length;

describe('the stats reader', () => {
  it('tells what a container uses: CPU by the second, memory, limits and processes', async (t) => {
    const facts = await hierarchies();
    const group = await cgroupOf(t, Object.values(facts.controllers));
    const limitFile = facts.version === 1 ? 'memory.limit_in_bytes' : 'memory.max';
    await group.set(facts.controllers['memory'] ?? '', limitFile, String(64 * mebibyte));
    const reader = readerOf(t, facts);
    const target = { id: 'busy', cgroupPath: group.path, withProcesses: true };
    const before = await reader.read(target);
    assert.equal(valueOf(before?.cpu?.usageNanoCores), 0, 'told at once, of two looks');
    const work = await group.run('x=$(head -c 8000000 /dev/zero | tr "\\0" x); while :; do :; done');
    await eventually('memory in use', async () => valueOf((await reader.read(target))?.memory?.usageBytes) > 8_000_000);
    await sleep(1200);
    const busy = (await reader.read(target)) ?? assert.fail('the container is there');
    const nanoCores = valueOf(busy.cpu?.usageNanoCores);
    assert.ok(nanoCores > 5e7 && nanoCores < 1.2e9, `one busy loop uses ${nanoCores}`);
    assert.ok(valueOf(busy.cpu?.usageCoreNanoSeconds) > 1e8);
    assert.ok(valueOf(busy.memory?.rssBytes) >= 8_000_000);
    assert.ok(valueOf(busy.memory?.pageFaults) > 0);
    const workingSet = valueOf(busy.memory?.workingSetBytes);
    assert.equal(valueOf(busy.memory?.availableBytes) + workingSet, 64 * mebibyte);
    assert.ok(workingSet <= valueOf(busy.memory?.usageBytes));
    assert.ok(Math.abs(Number(busy.cpu?.timestamp) / 1e6 - Date.now()) < 5000);
    assert.equal(busy.process?.processCount?.value, '1');
    await work.stop();
  });

  it('asks the shim of a container that it may hold elsewhere, and looks into its cgroup where that does not tell', async (t) => {
    const facts = await hierarchies();
    const group = await cgroupOf(t, Object.values(facts.controllers));
    let cpuNs = 0n;
    const figures = (): CgroupFigures => {
      cpuNs += 1_000_000_000n;
      return { cpuNs, memoryUsage: 700n, memoryInactiveFile: 200n, threads: 2n, deviceBytes: [], deviceTimes: [] };
    };
    const asked: string[] = [];
    const reader = readerOf(t, facts, (podSandboxId, id) => {
      asked.push(`${id} of ${podSandboxId}`);
      return Promise.resolve(id === 'told' ? figures() : null);
    });
    // Where its spec says there is no cgroup, as of what runs in a machine.
    const told = { id: 'told', cgroupPath: '/scribe-test-nowhere', podSandboxId: 'pod' };
    const mute = { id: 'mute', cgroupPath: group.path, podSandboxId: 'pod' };
    const usages = await reader.readAll([told, mute]);
    const { cpu, memory } = usages.get('told') ?? assert.fail('the shim tells it');
    assert.deepEqual([valueOf(memory?.usageBytes), valueOf(memory?.workingSetBytes)], [700, 500]);
    assert.equal(memory?.rssBytes, undefined, 'the shim does not tell it');
    assert.ok(valueOf(cpu?.usageNanoCores) > 0, 'of two looks');
    assert.ok(valueOf(usages.get('mute')?.memory?.usageBytes) >= 0);
    assert.equal((await reader.readFigures(told, 'all'))?.threads, 2n);
    assert.equal((await reader.readFigures(mute, 'all'))?.threads, 0n);
    assert.deepEqual([...new Set(asked)].toSorted(), ['mute of pod', 'told of pod']);
  });

  it('leaves out of a list what has gone, and closes its files', async (t) => {
    const facts = await hierarchies();
    const groups = await Promise.all(Array.from({ length: 5 }, () => cgroupOf(t, Object.values(facts.controllers))));
    const targets = groups.map(({ path }, index) => ({ id: String(index), cgroupPath: path }));
    const odd = [
      { id: 'nowhere', cgroupPath: '/scribe-test-nowhere' },
      { id: 'outside', cgroupPath: 'a/../..' },
    ];
    const reader = readerOf(t, facts);
    const before = await ownDescriptors();
    assert.deepEqual([...(await reader.readAll([...targets, ...odd])).keys()], ['0', '1', '2', '3', '4']);
    await groups[2]?.remove();
    assert.deepEqual([...(await reader.readAll([...targets, ...odd])).keys()], ['0', '1', '3', '4']);
    assert.equal(await reader.read(targets[2] ?? assert.fail()), null);
    reader.close();
    await eventually('closed files', async () => (await ownDescriptors()) <= before);
  });

  it('gives all who ask at once the same look, and survives cgroups that go while they are read', async (t) => {
    const facts = await hierarchies();
    const reader = readerOf(t, facts);
    for (let round = 0; round < 10; round += 1) {
      const group = await cgroupOf(t, Object.values(facts.controllers));
      const target = { id: `round ${round}`, cgroupPath: group.path };
      const looks = Promise.all(Array.from({ length: 20 }, () => reader.read(target)));
      const [removed, usages] = await Promise.all([group.remove(), looks]);
      assert.equal(removed, undefined);
      assert.equal(new Set(usages).size, 1);
      assert.equal(await reader.read(target), null);
    }
  });

  it('goes on after cgroups that cannot be opened', async (t) => {
    const root = await tempDir(t);
    await writeFile(`${root}/c`, 'no directory');
    const problems: string[] = [];
    const report = (message: string): void => void problems.push(message);
    const reader = createStatsReader({
      cgroup: { version: 2, controllers: { cpu: root } },
      clock,
      taskFigures: noTask,
      report,
    });
    onCleanup(t, reader.close);
    const target = { id: 'c', cgroupPath: '/c' };
    await assert.rejects(reader.read(target), { code: 'ENOTDIR' });
    assert.equal((await reader.readAll([target])).size, 0);
    assert.match(problems.join('\n'), /the cgroups of c failed: .*ENOTDIR/);
    await rm(`${root}/c`);
    await mkdir(`${root}/c`);
    await writeFile(`${root}/c/cpu.stat`, 'usage_usec 7\n');
    assert.equal((await reader.read(target))?.cpu?.usageCoreNanoSeconds?.value, '7000');
  });

  it('takes a cgroup that goes while it is opened for one that has gone', async (t) => {
    const root = await tempDir(t);
    await mkdir(`${root}/c`);
    // A device without a driver: opening it fails as opening a file of a cgroup does that is being removed.
    await runOk(['mknod', `${root}/c/cpu.stat`, 'c', '10', '250']);
    await assert.rejects(readFile(`${root}/c/cpu.stat`), { code: 'ENODEV' });
    const reader = readerOf(t, { version: 2, controllers: { cpu: root } });
    assert.equal(await reader.read({ id: 'c', cgroupPath: '/c' }), null);
  });

  it('reads pressure and CPU time of version 2, and memory where the controller is', async (t) => {
    const root = await tempDir(t);
    const controllers = { memory: root };
    await mkdir(`${root}/c`);
    const files = {
      'cpu.stat': 'usage_usec 7\nuser_usec 1\n',
      'memory.current': '100\n',
      'memory.stat': 'anon 40\ninactive_file 30\npgfault 2\npgmajfault 1\n',
      'memory.max': 'max\n',
      'io.pressure': 'some avg10=0.00 avg60=0.00 avg300=0.00 total=2\n',
    };
    for (const [name, text] of Object.entries(files)) await writeFile(`${root}/c/${name}`, text);
    const reader = readerOf(t, { version: 2, controllers });
    const target = { id: 'c', cgroupPath: '/c' };
    const usage = await reader.read(target);
    assert.equal(usage?.cpu?.usageCoreNanoSeconds?.value, '7000');
    assert.equal(usage.memory?.workingSetBytes?.value, '70');
    assert.equal(usage.memory.availableBytes, undefined);
    assert.equal(usage.io?.psi?.Some?.Total, '2000');
    assert.equal(usage.swap, undefined);
    await writeFile(`${root}/c/cpu.stat`, 'usage_usec 900\n');
    assert.equal((await reader.read(target))?.cpu?.usageCoreNanoSeconds?.value, '900000');
  });

  it('reads a real cgroup of version 2, where one is mounted', async (t) => {
    const { version, controllers } = await hierarchies();
    const root = version === 2 ? (controllers['memory'] ?? '') : '/sys/fs/cgroup/unified';
    const files: string[] = await readdir(root).catch(() => []);
    if (!files.includes('cgroup.controllers')) {
      t.skip('this machine mounts no cgroup2');
      return;
    }
    const group = await cgroupOf(t, [root]);
    const work = await group.run('while :; do :; done');
    const reader = readerOf(t, { version: 2, controllers: { cpu: root } });
    const target = { id: 'v2', cgroupPath: group.path };
    await eventually('CPU time', async () => valueOf((await reader.read(target))?.cpu?.usageCoreNanoSeconds) > 1e7);
    const usage = await reader.read(target);
    const pressureFiles = await readdir(`${root}${group.path}`);
    assert.equal(usage?.cpu?.psi !== undefined, pressureFiles.includes('cpu.pressure'));
    assert.equal(usage?.io?.psi !== undefined, pressureFiles.includes('io.pressure'));
    await work.stop();
    await group.remove();
    assert.equal(await reader.read(target), null);
  });

  it('lists a hundred containers many times a second', async (t) => {
    const facts = await hierarchies();
    const roots = Object.values(facts.controllers);
    const parent = await cgroupOf(t, roots);
    const groups = await Promise.all(Array.from({ length: 100 }, () => cgroupOf(t, roots, parent.path)));
    const targets = groups.map(({ path }, index) => ({ id: String(index), cgroupPath: path }));
    const reader = readerOf(t, facts);
    await reader.readAll(targets);
    const rounds = 50;
    const startedMs = performance.now();
    const cpuBefore = process.cpuUsage();
    for (let round = 0; round < rounds; round += 1) assert.equal((await reader.readAll(targets)).size, 100);
    const perSecond = Math.round((rounds * 1000) / (performance.now() - startedMs));
    const { user, system } = process.cpuUsage(cpuBefore);
    const cpuMs = (user + system) / 1000 / rounds;
    t.diagnostic(`${perSecond} lists of 100 containers a second, ${cpuMs.toFixed(1)} ms of CPU each`);
    assert.ok(cpuMs < 100, `${cpuMs} ms of CPU for a list`);
  });
});
