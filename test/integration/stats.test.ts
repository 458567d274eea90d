/** Stats and metrics of pods, as crictl and kubelet ask for them, from real cgroups and interfaces. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import type { ContainerMetrics } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { criTool } from '../support/cri-tools.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, ownPids, removePod, runPod } from '../support/pods.ts';
import { runOk } from '../support/process.ts';

const numberOf = (field: { readonly value: string } | undefined): number => Number(field?.value ?? Number.NaN);

const patienceMs = 30_000;

/** There where the kernel keeps the account, and where a quota is set. */
const mayLack = /^container_pressure_|^container_spec_cpu_quota$/;

describe('stats of pods', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  const pods: { readonly podSandboxId: string; readonly containerId: string }[] = [];

  before(async () => {
    node = await startNode(owner);
    for (const [index, pause] of [{}, ownPids].entries()) {
      const linux = { ...pause.linux, cgroupParent: `${node.daemon.dirs.cgroupParent}/kubepods/pod${index}` };
      const overrides = { pod: { ...pause, linux, labels: { index: String(index) } } };
      pods.push(await runPod(node.daemon, `pod-${index}`, busyboxName, ['sh', '-c', 'while :; do :; done'], overrides));
    }
  });

  const crictl = async (...args: readonly string[]): Promise<string> =>
    runOk(node.daemon.netns.inside([criTool('crictl'), '-r', `unix://${node.daemon.socket}`, ...args]));

  test('tell CPU, memory, processes and network of pods with and without a pause task', async () => {
    const { runtime } = node.daemon.cri;
    for (const { podSandboxId, containerId } of pods) {
      const busy = await eventually('nano cores', async () => {
        const { stats } = await runtime.podSandboxStats({ podSandboxId });
        return numberOf(stats?.linux?.cpu?.usageNanoCores) > 1e6 && stats;
      });
      const { cpu, memory, process, network, containers = [] } = busy.linux ?? {};
      assert.ok(numberOf(cpu?.usageCoreNanoSeconds) > 1e6);
      assert.ok(numberOf(memory?.workingSetBytes) > 0);
      assert.ok(numberOf(memory?.usageBytes) >= numberOf(memory?.workingSetBytes));
      assert.ok(numberOf(process?.processCount) >= 1);
      assert.equal(network?.defaultInterface?.name, 'eth0');
      assert.ok(numberOf(network.defaultInterface.txBytes) >= 0);
      assert.deepEqual(
        containers.map(({ attributes }) => attributes?.id),
        [containerId],
      );
      assert.ok(numberOf(cpu?.usageCoreNanoSeconds) >= numberOf(containers[0]?.cpu?.usageCoreNanoSeconds));
    }
  });

  test('are listed by id and label, streamed, and shown by crictl', async () => {
    const { runtime } = node.daemon.cri;
    const [first, second] = pods;
    assert.ok(first && second);
    const idsOf = (stats: readonly { readonly attributes?: { readonly id: string } | undefined }[]) =>
      stats.map(({ attributes }) => attributes?.id);
    assert.deepEqual(idsOf((await runtime.listPodSandboxStats({})).stats), [first.podSandboxId, second.podSandboxId]);
    const byLabel = await runtime.listPodSandboxStats({ filter: { labelSelector: { index: '1' } } });
    assert.deepEqual(idsOf(byLabel.stats), [second.podSandboxId]);
    const byId = await runtime.listPodSandboxStats({ filter: { id: first.podSandboxId.slice(0, 12) } });
    assert.deepEqual(idsOf(byId.stats), [first.podSandboxId]);
    const streamed: (string | undefined)[] = [];
    for await (const { podSandboxStats } of runtime.streamPodSandboxStats({})) streamed.push(...idsOf(podSandboxStats));
    assert.deepEqual(streamed, [first.podSandboxId, second.podSandboxId]);
    assert.match(await crictl('statsp'), new RegExp(first.podSandboxId.slice(0, 13)));
  });

  test('of containers are streamed as they are listed, and those of file systems are of the root directory', async () => {
    const { runtime, image } = node.daemon.cri;
    const ids = (stats: readonly { readonly attributes?: { readonly id: string } | undefined }[]) =>
      stats.map(({ attributes }) => attributes?.id ?? '').sort();
    const streamed: string[] = [];
    for await (const { containerStats } of runtime.streamContainerStats({})) streamed.push(...ids(containerStats));
    assert.deepEqual(streamed.sort(), pods.map(({ containerId }) => containerId).sort());
    assert.deepEqual(ids((await runtime.listContainerStats({})).stats), streamed);
    const { imageFilesystems, containerFilesystems } = await eventually(
      'the image to be counted',
      async () => {
        const info = await image.imageFsInfo({});
        return numberOf(info.imageFilesystems[0]?.usedBytes) > 100_000 && info;
      },
      patienceMs,
    );
    for (const fileSystem of [...imageFilesystems, ...containerFilesystems])
      assert.equal(fileSystem.fsId?.mountpoint, `${node.daemon.dirs.root}/images`);
  });

  test('metrics have a value for each label of their descriptor, and the names that dashboards know', async () => {
    const { runtime } = node.daemon.cri;
    const { descriptors } = await runtime.listMetricDescriptors({});
    const labels = new Map(descriptors.map(({ name, labelKeys }) => [name, labelKeys]));
    assert.equal(labels.size, descriptors.length, 'no name twice');
    const { podMetrics } = await runtime.listPodSandboxMetrics({});
    assert.equal(podMetrics.length, 2);
    for (const { metrics, containerMetrics } of podMetrics) {
      assert.equal(containerMetrics.length, 1);
      for (const { name, labelValues, value } of [...metrics, ...(containerMetrics[0]?.metrics ?? [])]) {
        assert.equal(labelValues.length, labels.get(name)?.length, name);
        assert.ok(value !== undefined);
      }
      const inContainer = containerMetrics[0]?.metrics.map(({ name }) => name) ?? [];
      for (const name of [
        'container_cpu_usage_seconds_total',
        'container_memory_working_set_bytes',
        'container_threads',
      ])
        assert.ok(inContainer.includes(name), name);
      assert.ok(metrics.some(({ name }) => name === 'container_network_receive_bytes_total'));
    }
    const [metric] = podMetrics[0]?.containerMetrics[0]?.metrics ?? [];
    const keys = labels.get(metric?.name ?? '') ?? [];
    const told = Object.fromEntries(keys.map((key, index) => [key, metric?.labelValues[index]]));
    assert.deepEqual([told['container'], told['namespace'], told['pod']], ['main', 'default', 'pod-0']);
    let streamed = 0;
    for await (const { podSandboxMetrics } of runtime.streamPodSandboxMetrics({})) streamed += podSandboxMetrics.length;
    assert.equal(streamed, 2);
    assert.match(await crictl('metricdescs'), /container_cpu_usage_seconds_total/);
    assert.match(await crictl('metricsp'), /container_memory_working_set_bytes/);
  });

  test('metrics: an idle container has every family, as a busy one', async () => {
    const { runtime } = node.daemon.cri;
    const idle = await runPod(node.daemon, 'idle', busyboxName, ['sleep', '1000'], { pod: ownPids });
    const { descriptors } = await runtime.listMetricDescriptors({});
    const valueIn = ({ metrics }: ContainerMetrics, wanted: string): number =>
      Number(metrics.find(({ name }) => name === wanted)?.value?.value);
    // Until it is what it is to run, it is the OCI runtime, with sockets of its own.
    const podMetrics = await eventually(
      'the program to run',
      async () => {
        const told = (await runtime.listPodSandboxMetrics({})).podMetrics;
        const [own] = told.find(({ podSandboxId }) => podSandboxId === idle.podSandboxId)?.containerMetrics ?? [];
        return own !== undefined && valueIn(own, 'container_sockets') === 0 && told;
      },
      patienceMs,
    );
    for (const { metrics, containerMetrics } of podMetrics) {
      const told = new Set([...metrics, ...(containerMetrics[0]?.metrics ?? [])].map(({ name }) => name));
      const lacking = descriptors.map(({ name }) => name).filter((name) => !told.has(name) && !mayLack.test(name));
      assert.deepEqual(lacking, []);
    }
    const { containerMetrics = [] } = podMetrics.find(({ podSandboxId }) => podSandboxId === idle.podSandboxId) ?? {};
    const [own] = containerMetrics;
    assert.ok(own !== undefined);
    const valueOf = (name: string): number => valueIn(own, name);
    assert.ok(valueOf('container_file_descriptors') >= 3);
    assert.ok(valueOf('container_ulimits_soft') > 0);
    assert.ok(valueOf('container_fs_limit_bytes') > 0);
    // Dashboards choose by it.
    const ofDevices = descriptors.filter(({ name }) => /^container_(?:fs|blkio)_/.test(name));
    assert.equal(ofDevices.length, 9);
    for (const { name, labelKeys } of ofDevices)
      for (const { labelValues } of own.metrics.filter((metric) => metric.name === name))
        assert.match(labelValues[labelKeys.indexOf('device')] ?? '', /^(?:\/dev\/.+|\d+:\d+)$/, name);
    assert.ok(Math.abs(valueOf('container_last_seen') - Date.now() / 1000) < 60);
    assert.equal(valueOf('container_threads_max'), 0);
    await removePod(node.daemon, idle.podSandboxId);
  });

  test('have the network of a pod in which no process is, as between the tries of a container that crashes', async () => {
    const { runtime } = node.daemon.cri;
    const [pod] = pods;
    assert.ok(pod);
    const received = async (): Promise<number> => {
      const { stats } = await runtime.podSandboxStats({ podSandboxId: pod.podSandboxId });
      assert.equal(stats?.linux?.network?.defaultInterface?.name, 'eth0');
      return numberOf(stats.linux.network.defaultInterface.rxBytes);
    };
    const before = await received();
    await runtime.stopContainer({ containerId: pod.containerId, timeout: '0' });
    assert.ok((await received()) >= before);
    const { podMetrics } = await runtime.listPodSandboxMetrics({});
    const metrics = podMetrics.find(({ podSandboxId }) => podSandboxId === pod.podSandboxId)?.metrics ?? [];
    assert.ok(metrics.some(({ name }) => name === 'container_network_receive_bytes_total'));
  });

  test('one that has stopped has none, and one that is not there is not found', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const [first, second] = pods;
    assert.ok(first && second);
    await runtime.stopPodSandbox({ podSandboxId: first.podSandboxId });
    const stopped = runtime.podSandboxStats({ podSandboxId: first.podSandboxId });
    await assert.rejects(stopped, (error) => codeOf(error) === GrpcCode.FAILED_PRECONDITION);
    const unknown = runtime.podSandboxStats({ podSandboxId: 'f'.repeat(64) });
    await assert.rejects(unknown, (error) => codeOf(error) === GrpcCode.NOT_FOUND);
    assert.equal((await runtime.listPodSandboxStats({})).stats.length, 1);
    for (const { podSandboxId } of pods) await removePod(daemon, podSandboxId);
    assert.equal((await runtime.listPodSandboxMetrics({})).podMetrics.length, 0);
  });
});
