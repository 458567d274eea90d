/** Which containers are counted in the background, and what stats are put together from. */
import assert from 'node:assert/strict';
import { describe, it, type TestContext } from 'node:test';
import { createUsageCollector } from '../../src/adapters/stats/usage-collector.ts';
import type { CgroupUsage, StatsReader, StatsTarget, UsageCollector } from '../../src/adapters/stats/types.ts';
import { createContainerStats } from '../../src/daemon/container-stats.ts';
import type { Mount } from '../../src/domain/model/tasks.ts';
import type { DomainRecord, Sequenced } from '../../src/domain/model/records.ts';
import { container, idOf, podSandbox, testModel } from '../adapters/cri/support.ts';
import { eventually } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';
import { CREATED } from '../support/phases.ts';

const pod = idOf('a');
const overlay = (upper: string): readonly Mount[] => [
  { type: 'overlay', source: 'overlay', options: ['index=off', 'lowerdir=/l', `upperdir=${upper}`, 'workdir=/w'] },
];
const bind = (source: string): readonly Mount[] => [{ type: 'bind', source, options: ['rbind', 'rw'] }];
const usage: CgroupUsage = { cpu: undefined, memory: undefined, swap: undefined, io: undefined, process: undefined };

const record = (event: DomainRecord, id: string): Sequenced => ({
  ...event,
  seq: 1,
  atNs: 0n,
  monoNs: 0n,
  stream: `container/${id}`,
  cause: null,
  call: null,
});

/** A reader that knows containers whose id does not begin with "gone", and collects what it is told. */
const fakes = () => {
  const told: string[] = [];
  const asked: StatsTarget[] = [];
  const isThere = ({ id }: StatsTarget): boolean => !id.startsWith('f');
  const reader: StatsReader = {
    read: (target) => Promise.resolve(isThere(target) ? usage : null),
    readAll: (targets) => {
      asked.push(...targets);
      return Promise.resolve(new Map(targets.filter(isThere).map(({ id }) => [id, usage])));
    },
    readFigures: () => Promise.resolve(null),
    readInterfaces: () => Promise.resolve(null),
    watch: ({ id, cgroupPath }) => void told.push(`cgroup + ${id.slice(0, 2)} ${cgroupPath}`),
    forget: (id) => void told.push(`cgroup - ${id.slice(0, 2)}`),
    close: () => undefined,
  };
  const layers: UsageCollector = {
    watch: (id, dirs) => void told.push(`layer + ${id.slice(0, 2)} ${dirs.join()}`),
    forget: (id) => void told.push(`layer - ${id.slice(0, 2)}`),
    counted: () => Promise.resolve(),
    usageOf: (id) =>
      id === idOf('c1')
        ? { timestamp: '7', fsId: { mountpoint: '/c' }, usedBytes: { value: '1' }, inodesUsed: { value: '2' } }
        : undefined,
    total: () => ({ timestamp: '7', usedBytes: 1n, inodesUsed: 2n }),
    close: () => undefined,
  };
  return { told, asked, reader, layers };
};

const setUp = (t: TestContext) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  const view = testModel();
  const config = { metadata: { name: 'p' }, linux: { cgroupParent: '/parent' } };
  view.put({
    sandboxes: [podSandbox(pod, { config })],
    containers: [
      container(idOf('c1'), pod, { rootfs: overlay('/upper/c1') }),
      container(idOf('c2'), pod, { rootfs: overlay('/upper/c2'), phase: CREATED }),
    ],
  });
  const made = fakes();
  const stats = createContainerStats({ view, reader: made.reader, usage: made.layers });
  return { view, stats, ...made };
};

describe('stats of containers', { timeout: 20_000 }, () => {
  it('are collected of those that run: after a while of those that ran before, at once of others', (t) => {
    const { view, told } = setUp(t);
    assert.deepEqual(told, []);
    t.mock.timers.tick(2_000);
    assert.deepEqual(told.splice(0), [`cgroup + c1 /parent/${idOf('c1')}`, 'layer + c1 /upper/c1']);
    view.put({ containers: [container(idOf('d1'), pod, { rootfs: bind('/upper/d1') })] }, [
      record({ type: 'container.started', body: { pid: 1, startTicks: '1' } }, idOf('d1')),
    ]);
    assert.deepEqual(told.splice(0), [`cgroup + d1 /parent/${idOf('d1')}`, 'layer + d1 /upper/d1']);
    view.remove([idOf('d1')], [record({ type: 'container.removed', body: {} }, idOf('d1'))]);
    assert.deepEqual(told.splice(0), ['cgroup - d1', 'layer - d1']);
  });

  it('hold the last count of the writable layer, where there is one; those that have gone are left out', async (t) => {
    const { view, stats, asked } = setUp(t);
    const [one, two, gone] = ['c1', 'c2', 'f1'].map((id) => container(idOf(id), pod));
    assert.ok(one && two && gone);
    view.put({ containers: [one, two, gone] });
    const all = await stats.statsOfAll([one, two, gone]);
    assert.deepEqual(
      all.map(({ attributes, writableLayer }) => [attributes?.id, writableLayer?.usedBytes?.value]),
      [
        [idOf('c1'), '1'],
        [idOf('c2'), undefined],
      ],
    );
    assert.equal(asked.length, 3);
    assert.equal((await stats.statsOf(one))?.writableLayer?.fsId?.mountpoint, '/c');
    assert.equal(await stats.statsOf(gone), null);
  });

  it("are asked of the shim first where that is not runc's", async (t) => {
    const { view, stats, asked } = setUp(t);
    const own = container(idOf('c1'), pod);
    const other = container(idOf('d1'), idOf('b'));
    const handler = { ...podSandbox(pod).handler, runtimeType: 'io.containerd.runsc.v1' };
    view.put({ sandboxes: [podSandbox(idOf('b'), { handler })], containers: [other] });
    await stats.statsOfAll([own, other]);
    assert.deepEqual(
      asked.map(({ podSandboxId }) => podSandboxId),
      [undefined, idOf('b')],
    );
  });

  it('are looked for where the handler of the pod puts them; one that cannot be there does not fail the list', async (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const view = testModel();
    const inSlice = { metadata: { name: 'p' }, linux: { cgroupParent: 'a.slice' } };
    const elsewhere = { metadata: { name: 'p' }, linux: { cgroupParent: '/no/slice' } };
    const [good, bad] = [container(idOf('c1'), idOf('a')), container(idOf('c2'), idOf('b'))];
    const other = container(idOf('d1'), idOf('c'));
    const systemd = { ...podSandbox(idOf('a')).handler, systemdCgroup: true };
    view.put({
      sandboxes: [
        podSandbox(idOf('a'), { config: inSlice, handler: systemd }),
        podSandbox(idOf('b'), { config: elsewhere, handler: systemd }),
        podSandbox(idOf('c'), { config: elsewhere }),
      ],
      containers: [good, bad, other],
    });
    const { reader, layers, asked } = fakes();
    const stats = createContainerStats({ view, reader, usage: layers });
    assert.deepEqual(
      (await stats.statsOfAll([good, bad, other])).map(({ attributes }) => attributes?.id),
      [idOf('c1'), idOf('d1')],
    );
    assert.deepEqual(
      asked.map(({ cgroupPath }) => cgroupPath),
      [`a.slice:cri-scribe:${idOf('c1')}`, `/no/slice/${idOf('d1')}`],
    );
    assert.equal(await stats.statsOf(bad), null);
  });

  it('are looked for where an NRI plugin puts the container', async (t) => {
    const { stats, asked } = setUp(t);
    const adjusted = { adjust: { linux: { cgroupsPath: '/of/the-plugin' } }, owners: { simple: {}, compound: {} } };
    await stats.statsOfAll([container(idOf('c4'), pod, { nri: { hooks: {}, adjusted } })]);
    assert.deepEqual(asked, [{ id: idOf('c4'), cgroupPath: '/of/the-plugin' }]);
  });

  it('the layer of a container that starts is counted soon, and never in a call', async (t) => {
    const upper = await tempDir(t);
    const view = testModel();
    const { reader } = fakes();
    const collector = createUsageCollector({
      clock: { nowNs: () => 5n },
      mountpoint: '/containers',
      report: (message) => assert.fail(message),
    });
    t.after(() => collector.close());
    const stats = createContainerStats({ view, reader, usage: collector });
    const one = container(idOf('c1'), pod, { rootfs: overlay(upper) });
    view.put({ sandboxes: [podSandbox(pod)], containers: [one] });
    assert.equal((await stats.statsOf(one))?.writableLayer, undefined);
    view.put({ containers: [one] }, [record({ type: 'container.started', body: { pid: 1, startTicks: '1' } }, one.id)]);
    const layer = await eventually('it is counted', async () => (await stats.statsOf(one))?.writableLayer);
    assert.equal(layer.timestamp, '5');
    assert.deepEqual(layer.fsId, { mountpoint: '/containers' });
    assert.equal(layer.inodesUsed?.value, '1');
  });
});
