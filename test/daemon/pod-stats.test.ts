/** What the stats of pods are put together from: their own cgroup, or their containers', and any process's interfaces. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { CgroupUsage, StatsReader } from '../../src/adapters/stats/types.ts';
import { createPodStats } from '../../src/daemon/pod-stats.ts';
import { createContainerStats } from '../../src/daemon/container-stats.ts';
import type { PodNetwork } from '../../src/domain/model/cni.ts';
import { container, idOf, podSandbox, testModel } from '../adapters/cri/support.ts';

const usageOf = (bytes: number): CgroupUsage => ({
  cpu: { timestamp: '1', usageCoreNanoSeconds: { value: '10' }, usageNanoCores: undefined, psi: undefined },
  memory: {
    timestamp: '1',
    workingSetBytes: { value: String(bytes) },
    availableBytes: undefined,
    usageBytes: { value: String(bytes) },
    rssBytes: undefined,
    pageFaults: undefined,
    majorPageFaults: undefined,
    psi: undefined,
  },
  swap: undefined,
  io: undefined,
  process: { timestamp: '1', processCount: { value: '3' } },
});

const eth0 = { name: 'eth0', rxBytes: 7n, rxPackets: 1n, rxErrors: 0n, rxDropped: 0n };
const interfaces = [{ ...eth0, txBytes: 8n, txPackets: 1n, txErrors: 0n, txDropped: 0n }];
const network: PodNetwork = {
  podSandboxId: idOf('a'),
  netnsPath: '/n',
  ifName: 'eth0',
  confList: { cniVersion: '1.0.0', name: 'n', plugins: [] },
  name: 'p',
  namespace: 'n',
  uid: 'u',
  portMappings: [],
  podAnnotations: {},
};

/** Pods a (with a cgroup of its own), b (without) and h (on the node's network), each with two containers. */
const setUp = () => {
  const view = testModel();
  const askedForInterfaces: number[] = [];
  const forgotten: string[] = [];
  const watched: string[] = [];
  const reports: string[] = [];
  /** Processes that have gone, by pid, and what those that are there see. */
  const gone = new Set<number>();
  /** Of namespaces that are pinned, by path. */
  const pinned = new Map<string, typeof interfaces>();
  let seen = interfaces;
  let whileReading = (): void => undefined;
  const reader: StatsReader = {
    read: () => Promise.resolve(null),
    readAll: (targets) =>
      Promise.resolve(new Map(targets.map(({ id }) => [id, usageOf(id === idOf('a') ? 1000 : 10)]))),
    readFigures: ({ id }) =>
      id === idOf('b2')
        ? Promise.reject(new Error('EIO'))
        : Promise.resolve({ cpuNs: 3_500_000_000n, memoryRss: 4n, threads: 3n, deviceBytes: [], deviceTimes: [] }),
    readInterfaces: ({ pid }) => {
      askedForInterfaces.push(pid);
      whileReading();
      return Promise.resolve(gone.has(pid) ? null : seen);
    },
    watch: ({ id }) => void watched.push(id),
    forget: (id) => void forgotten.push(id),
    close: () => undefined,
  };
  const usage = {
    watch: () => undefined,
    forget: () => undefined,
    counted: () => Promise.resolve(),
    usageOf: () => undefined,
  };
  const total = () => ({ timestamp: '1', usedBytes: 0n, inodesUsed: 0n });
  const layers = { ...usage, total, close: () => undefined };
  const config = (cgroupParent: string) => ({ metadata: { name: 'p', namespace: 'n' }, linux: { cgroupParent } });
  const pods = [
    podSandbox(idOf('a'), { config: config('/kubepods/poda'), network }),
    podSandbox(idOf('b'), { config: config(''), task: null, sandboxer: 'none', network }),
    podSandbox(idOf('e'), { config: config('') }),
  ];
  const inPods = ['a', 'b', 'e'].flatMap((pod) => [1, 2].map((n) => container(idOf(`${pod}${n}`), idOf(pod))));
  view.put({ sandboxes: pods, containers: inPods });
  const containers = createContainerStats({ view, reader, usage: layers });
  const clock = { nowNs: () => 5n };
  const readFileSystem = () =>
    Promise.resolve({ major: '8', minor: '1', device: '/dev/sda1', limitBytes: 9n, inodes: 7n, inodesFree: 6n });
  const report = (message: string): void => void reports.push(message);
  const interfacesIn = (path: string) => Promise.resolve(pinned.get(path) ?? null);
  const parts = { view, reader, usage: layers, clock, containers, interfacesIn, readFileSystem, report };
  const stats = createPodStats(parts);
  const see = (now: typeof interfaces): void => {
    seen = now;
  };
  const meanwhile = (happens: () => void): void => {
    whileReading = happens;
  };
  return { view, stats, pods, askedForInterfaces, forgotten, watched, reports, gone, pinned, see, meanwhile };
};

describe('stats of pods', { timeout: 20_000 }, () => {
  it("are those of the cgroup that is the pod's own, else of its containers together", async () => {
    const { stats, pods } = setUp();
    const [own, sum] = await stats.podStatsOf(pods);
    assert.equal(own?.linux?.memory?.usageBytes?.value, '1000');
    assert.equal(own.linux.process?.processCount?.value, '3');
    assert.equal(sum?.linux?.memory?.usageBytes?.value, '20');
    assert.equal(sum.linux.cpu?.usageCoreNanoSeconds?.value, '20');
    // One of its two containers can't be read.
    assert.equal(sum.linux.process?.processCount?.value, '3');
    assert.equal(sum.linux.cpu.usageNanoCores, undefined, 'of no use unless it is known of both');
    assert.deepEqual(
      sum.linux.containers.map(({ attributes }) => attributes?.id),
      [idOf('b1'), idOf('b2')],
    );
  });

  it("have the network as the pause task sees it, else a container's; none on the node's network", async () => {
    const { stats, pods, askedForInterfaces } = setUp();
    const [paused, pinned, onNode] = await stats.podStatsOf(pods);
    assert.deepEqual(askedForInterfaces, [41, 42]);
    assert.equal(paused?.linux?.network?.defaultInterface?.rxBytes?.value, '7');
    assert.equal(pinned?.linux?.network?.defaultInterface?.txBytes?.value, '8');
    assert.equal(onNode?.linux?.network, undefined);
  });

  it('have no network without an interface: kubelet reads the first one unseen', async () => {
    const { stats, pods, see } = setUp();
    see([]);
    const [pod] = await stats.podStatsOf(pods.slice(0, 1));
    assert.equal(pod?.linux?.network, undefined);
  });

  it("ask a container's process where the pause task has just gone", async () => {
    const { stats, pods, gone, askedForInterfaces } = setUp();
    gone.add(41);
    const [pod] = await stats.podStatsOf(pods.slice(0, 1));
    assert.deepEqual(askedForInterfaces, [41, 42]);
    assert.equal(pod?.linux?.network?.defaultInterface?.name, 'eth0');
  });

  it('have the network as it is seen in its namespace, where no process of the pod is', async () => {
    const { stats, pods, gone, pinned } = setUp();
    for (const pid of [41, 42]) gone.add(pid);
    const networks = async () => (await stats.podStatsOf(pods)).map(({ linux }) => linux?.network);
    assert.deepEqual(await networks(), [undefined, undefined, undefined], 'none is pinned');
    pinned.set(network.netnsPath, interfaces);
    assert.deepEqual(
      (await networks()).map((told) => told?.defaultInterface?.rxBytes?.value),
      ['7', '7', undefined],
    );
  });

  it('leave out a pod that goes while it is read', async () => {
    const { view, stats, pods, meanwhile } = setUp();
    meanwhile(() => view.remove([idOf('a')]));
    const found = await stats.podStatsOf(pods);
    assert.deepEqual(
      found.map(({ attributes }) => attributes?.id),
      [idOf('b'), idOf('e')],
    );
  });

  it('are sampled from the first container on, where the pod has a cgroup of its own', () => {
    const { view, watched } = setUp();
    const started = {
      type: 'container.started',
      body: { pid: 1, startTicks: '1' },
      seq: 1,
      atNs: 0n,
      monoNs: 0n,
    } as const;
    const of = (id: string) => ({ ...started, cause: null, call: null, stream: `container/${idOf(id)}` });
    watched.length = 0;
    view.put({}, [of('a1'), of('b1')]);
    assert.ok(watched.includes(idOf('a')));
    assert.ok(!watched.includes(idOf('b')));
  });

  it('metrics: a container that cannot be read costs its own and is reported', async () => {
    const { stats, pods, reports } = setUp();
    const metrics = await stats.podMetricsOf(pods);
    assert.deepEqual(
      metrics.map(({ containerMetrics }) => containerMetrics.length),
      [2, 1, 2],
    );
    assert.match(reports[0] ?? '', /EIO/);
    const cpu = metrics[0]?.containerMetrics[0]?.metrics.find(
      ({ name }) => name === 'container_cpu_usage_seconds_total',
    );
    assert.equal(cpu?.value?.value, '3');
  });

  it('a pod that stops, or is removed, is forgotten', () => {
    const { view, forgotten } = setUp();
    const removed = {
      type: 'sandbox.removed',
      body: {},
      seq: 1,
      atNs: 0n,
      monoNs: 0n,
      cause: null,
      call: null,
    } as const;
    view.remove([idOf('a')], [{ ...removed, stream: `sandbox/${idOf('a')}` }]);
    assert.ok(forgotten.includes(idOf('a')));
  });
});
