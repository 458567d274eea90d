/**
 * A real kubelet that has the metrics of containers from the cAdvisor within it, as it does unless a gate of its own is opened:
 * it asks the daemon whose the control groups are.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { checkKubelets } from '../../src/adapters/doctor/kubelet.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { type Kubelet, startKubelet } from '../support/kubelet.ts';
import { busyboxName, startNode } from '../support/node.ts';
import { eventually } from '../support/pods.ts';

const owner = cleanupAfterAll();
const patienceMs = 90_000;

const pod = {
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: ['busy', 'idle'].map((name) => ({
      name,
      image: busyboxName,
      imagePullPolicy: 'IfNotPresent',
      command: ['sh', '-c', name === 'busy' ? 'while true; do ping -c 1 127.0.0.1; done' : 'exec sleep 1000000'],
    })),
  },
};

const metricsWith = (kubelet: Kubelet, wanted: readonly RegExp[]): Promise<string> => {
  let last = '';
  return eventually(
    'metrics',
    async () => {
      last = await kubelet.containerMetrics();
      return wanted.every((one) => one.test(last)) && last;
    },
    patienceMs,
  ).catch((error: unknown) => {
    const seen = last.split('\n').filter((line) => line.includes('web-node1'));
    throw new Error(`${String(error)}\n${seen.join('\n')}\n${kubelet.output().slice(-4_000)}`);
  });
};

test("cAdvisor's metrics of containers have their names, and each pod's network is told once", {
  timeout: 300_000,
}, async () => {
  const { daemon } = await startNode(owner);
  const kubelet = await startKubelet(owner, daemon, { metricsOfCadvisor: true });
  await kubelet.apply('web', pod);
  const metrics = await metricsWith(kubelet, [
    /^container_cpu_usage_seconds_total\{container="busy".*image=".+".*namespace="default",pod="web-node1"/m,
    /^container_memory_working_set_bytes\{container="idle".*pod="web-node1"/m,
    /^container_network_receive_bytes_total\{.*interface="eth0".*pod="web-node1"/m,
  ]);
  const network =
    metrics.match(/^container_network_receive_bytes_total\{.*interface="eth0".*pod="web-node1".*$/gm) ?? [];
  assert.equal(network.length, 1, network.join('\n'));

  const told = (await checkKubelets(daemon.socket)).filter(({ detail }) => detail.includes('from here'));
  assert.deepEqual(
    told.map(({ status, detail }) => [status, detail.replace(/\d+/, 'N')]),
    [['ok', 'process N has its pods from here, and its metrics of containers']],
  );
});
