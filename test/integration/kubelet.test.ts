/**
 * A real kubelet runs pods on the daemon: init containers, probes, restarts, images as volumes, a user namespace, logs, commands
 * and metrics; and the daemon is killed under it. All that a policy can seal is sealed on this node, so that it shows what
 * kubelet reads back.
 * Builds kubelet the first time, which takes minutes.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { PodSandboxState } from '../../src/wire/cri/api.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { removeAllPods } from '../support/daemon.ts';
import { type Canary, searcherFor, searchFiles } from '../support/canaries.ts';
import { type Kubelet, type KubeletPod, startKubelet } from '../support/kubelet.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually } from '../support/pods.ts';
import { assertReplays } from '../support/replayed.ts';

const patienceMs = 60_000;

const container = (name: string, script: string, more: object = {}): object => ({
  name,
  image: busyboxName,
  imagePullPolicy: 'IfNotPresent',
  command: ['sh', '-c', script],
  ...more,
});

const work = [{ name: 'work', mountPath: '/data' }];

const sealed: readonly Canary[] = ['label', 'annotation', 'argument'].map((name, index) => ({
  name,
  secret: `canary-${index}-${'3e9b70'.repeat(3)}`,
}));
const search = searcherFor(sealed);
const [label = '', annotation = '', argument = ''] = sealed.map(({ secret }) => secret);
const config = `
[audit.seal]
labels = ["*"]
annotations = ["*"]
exec_arguments = ["*/data/*"]
container_arguments = ["*GREETING*", "*canary*"]
`;

const web = {
  metadata: { name: 'web', labels: { team: label }, annotations: { note: annotation } },
  spec: {
    terminationGracePeriodSeconds: 1,
    initContainers: [container('prepare', 'echo prepared > /data/index.html', { volumeMounts: work })],
    containers: [
      container('http', 'echo "up $GREETING"; exec httpd -f -p 8080 -h /data', {
        env: [{ name: 'GREETING', value: 'hello' }],
        resources: { requests: { cpu: '10m', memory: '16Mi' }, limits: { cpu: '500m', memory: '64Mi' } },
        readinessProbe: { httpGet: { path: '/', port: 8080 }, periodSeconds: 1 },
        livenessProbe: { exec: { command: ['test', '-e', '/data/index.html'] }, periodSeconds: 1 },
        volumeMounts: work,
      }),
      container('fails', 'ls /image/bin > /part/x && echo "no use" > /dev/termination-log; sleep 1; exit 7', {
        args: [argument],
        volumeMounts: [
          { name: 'image', mountPath: '/image' },
          { name: 'work', mountPath: '/part', subPath: 'part' },
        ],
      }),
    ],
    volumes: [
      { name: 'work', emptyDir: {} },
      { name: 'image', image: { reference: busyboxName, pullPolicy: 'IfNotPresent' } },
    ],
  },
};

const mapped = {
  spec: {
    hostUsers: false,
    terminationGracePeriodSeconds: 1,
    containers: [
      container('main', 'cat /proc/self/uid_map; echo mine > /data/x; exec sleep 1000000', { volumeMounts: work }),
    ],
    volumes: [{ name: 'work', emptyDir: {} }],
  },
};

describe('kubelet', { timeout: 900_000 }, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let kubelet: Kubelet;

  before(async () => {
    node = await startNode(owner, { config });
    kubelet = await startKubelet(owner, node.daemon);
  });

  const statusOf = (pod: KubeletPod | null, name: string) =>
    pod?.status.containerStatuses?.find((status) => status.name === name);
  const podWhen = async (name: string, what: string, check: (pod: KubeletPod) => boolean): Promise<KubeletPod> =>
    eventually(
      `${name}: ${what}`,
      async () => {
        const pod = await kubelet.pod(name);
        return pod !== null && check(pod) && pod;
      },
      patienceMs,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${kubelet.output().slice(-8_000)}`);
    });

  test('makes a pod ready whose init container, probes and limits it takes care of', async () => {
    await kubelet.apply('web', web);
    const pod = await podWhen('web', 'http is ready', (now) => statusOf(now, 'http')?.ready === true);
    assert.match(pod.status.podIP ?? '', /^10\.213\./);
    assert.equal(statusOf(pod, 'http')?.restartCount, 0);
    assert.equal(await kubelet.logs('web', 'http'), 'up hello\n');
    assert.equal(await kubelet.exec('web', 'http', 'cat /data/index.html'), 'prepared\n');
  });

  test('starts a container again that fails, and knows why it did', async () => {
    const pod = await podWhen('web', 'fails was restarted', (now) => (statusOf(now, 'fails')?.restartCount ?? 0) >= 2);
    const { terminated } = statusOf(pod, 'fails')?.lastState ?? {};
    assert.deepEqual([terminated?.exitCode, terminated?.message], [7, 'no use\n']);
  });

  test('gives a pod users of its own, with a volume that is theirs', async () => {
    await kubelet.apply('mapped', mapped);
    await podWhen('mapped', 'main is ready', (now) => statusOf(now, 'main')?.ready === true);
    const [inside, outside] = (await kubelet.logs('mapped', 'main')).trim().split(/\s+/).map(Number);
    assert.equal(inside, 0);
    assert.ok((outside ?? 0) >= 65_536);
    assert.equal(await kubelet.exec('mapped', 'main', 'stat -c %u /data/x'), '0\n');
  });

  test('exposes what scribe tells of containers and pods in the place of cAdvisor', async () => {
    const metrics = await eventually(
      'metrics of the container',
      async () => {
        const text = await kubelet.containerMetrics();
        return text.includes('container="http"') && text;
      },
      patienceMs,
    );
    for (const name of [
      'container_cpu_usage_seconds_total',
      'container_memory_working_set_bytes',
      'container_processes',
    ])
      assert.match(metrics, new RegExp(`^${name}\\{.*container="http".*pod="web-node1"`, 'm'));
    assert.match(metrics, /^container_network_receive_bytes_total\{.*interface="eth0".*pod="web-node1"/m);
  });

  test('does not notice that the daemon is killed: pods and containers are the same, and failing ones go on', async () => {
    const before = await kubelet.pod('web');
    await node.daemon.kill();
    await node.daemon.start();
    const restarts = statusOf(before, 'fails')?.restartCount ?? 0;
    const after = await podWhen(
      'web',
      'fails goes on',
      (now) => (statusOf(now, 'fails')?.restartCount ?? 0) > restarts,
    );
    assert.equal(statusOf(after, 'http')?.containerID, statusOf(before, 'http')?.containerID);
    assert.deepEqual([statusOf(after, 'http')?.ready, statusOf(after, 'http')?.restartCount], [true, 0]);
    assert.equal(after.status.podIP, before?.status.podIP);
  });

  test('C12: reads back what it wrote itself byte for byte, where all else that it wrote is sealed', async () => {
    const { cri, dirs } = node.daemon;
    const { items } = await cri.runtime.listPodSandbox({ filter: { labelSelector: { team: label } } });
    const [pod] = items;
    const { containers } = await cri.runtime.listContainers({ filter: { podSandboxId: pod?.id ?? '' } });
    const http = containers.find(({ metadata }) => metadata?.name === 'http');
    assert.ok(pod !== undefined && http !== undefined);
    assert.equal(pod.labels['io.kubernetes.pod.name'], 'web-node1');
    assert.equal(pod.labels['io.kubernetes.pod.uid'], pod.metadata?.uid);
    assert.equal(http.labels['io.kubernetes.container.name'], 'http');
    assert.equal(http.annotations['io.kubernetes.container.restartCount'], '0');
    assert.match(http.annotations['io.kubernetes.container.hash'] ?? '', /^[0-9a-f]+$/);
    assert.match(pod.labels['team'] ?? '', /^secret:/);
    assert.match(pod.annotations['note'] ?? '', /^secret:/);
    const bundles = join(dirs.state, 'bundles');
    assert.deepEqual(await searchFiles(search, [dirs.root, dirs.state], [bundles]), []);
  });

  test('takes pods away, and nothing of them is left but its own cgroups', async () => {
    await Promise.all(['web', 'mapped'].map((name) => kubelet.remove(name)));
    const { cri } = node.daemon;
    const ready = { state: { state: PodSandboxState.SANDBOX_READY } };
    await eventually(
      'no pod is ready',
      async () => (await cri.runtime.listPodSandbox({ filter: ready })).items.length === 0,
      patienceMs,
    );
    // kubelet collects stopped pods once a minute.
    await removeAllPods(cri);
    assert.deepEqual({ ...(await node.daemon.leftovers()), cgroups: [] }, noLeftovers);
  });

  test('C13: leaves a journal that is decided again as it was, with every request', async (t) => {
    const { decisions, requests, events } = await assertReplays(node.daemon);
    t.diagnostic(`${decisions} decisions, ${events} records that followed, ${requests} requests of effects`);
  });
});
