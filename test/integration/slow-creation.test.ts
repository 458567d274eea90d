/**
 * C5 with a real kubelet: the creation of a container takes longer than kubelet waits, which asks again, each time with
 * another path for the termination log. Its mounts are made by a process that is held meanwhile. Until kubelet has asked
 * again, or for SCRIBE_TEST_CREATION_SECONDS: then kubelet waits its usual two minutes.
 */
import assert from 'node:assert/strict';
import { kill } from 'node:process';
import { before, describe, test } from 'node:test';
import type { ContainerConfig } from '../../src/domain/model/cri.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { callsAfter, type JournaledCall } from '../support/journal.ts';
import { type Kubelet, type KubeletPod, startKubelet } from '../support/kubelet.ts';
import { processesOf } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually } from '../support/pods.ts';

const creationSeconds = Number(process.env['SCRIBE_TEST_CREATION_SECONDS'] ?? 0);
const patienceMs = 60_000 + creationSeconds * 2_000;

const container = (name: string, script: string): object => ({
  name,
  image: busyboxName,
  imagePullPolicy: 'IfNotPresent',
  command: ['sh', '-c', script],
  volumeMounts: [{ name: 'work', mountPath: '/data' }],
});

/** Volumes of a pod with users of its own are mounted by the spawner. */
const slow = {
  spec: {
    hostUsers: false,
    restartPolicy: 'Never',
    terminationGracePeriodSeconds: 0,
    initContainers: [container('prepare', 'until [ -e /data/go ]; do sleep 0.1; done')],
    containers: [container('main', 'echo "made once" > /dev/termination-log; exit 3')],
    volumes: [{ name: 'work', emptyDir: {} }],
  },
};

describe('a creation that takes longer than kubelet waits', { timeout: 300_000 + patienceMs }, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let kubelet: Kubelet;

  before(async () => {
    node = await startNode(owner);
    kubelet = await startKubelet(owner, node.daemon, creationSeconds > 0 ? {} : { runtimeRequestTimeout: '4s' });
  });

  const podWhen = (what: string, check: (pod: KubeletPod) => boolean): Promise<KubeletPod> =>
    eventually(
      what,
      async () => {
        const pod = await kubelet.pod('slow');
        return pod !== null && check(pod) && pod;
      },
      patienceMs,
    ).catch((error: unknown) => {
      throw new Error(`${String(error)}\n${kubelet.output().slice(-8_000)}`);
    });

  const creations = async (): Promise<(JournaledCall & { readonly config: ContainerConfig })[]> =>
    (await callsAfter(node.daemon, 0)).flatMap((call) =>
      call.request.method === 'CreateContainer' && call.request.config.metadata?.name === 'main'
        ? [{ ...call, config: call.request.config }]
        : [],
    );

  test('C5: is joined by every try of kubelet, which gets the one container that was made', async () => {
    const spawner = (await processesOf(node.daemon.dirs)).find(({ commandLine }) =>
      commandLine.includes('spawner-main'),
    );
    assert.ok(spawner);
    await kubelet.apply('slow', slow);
    await podWhen('prepare runs', ({ status }) => status.initContainerStatuses?.[0]?.state?.running !== undefined);

    kill(spawner.pid, 'SIGSTOP');
    onCleanup(owner, () => Promise.resolve(kill(spawner.pid, 'SIGCONT')).then(() => undefined));
    await kubelet.exec('slow', 'prepare', 'touch /data/go');
    const beganMs = performance.now();
    await eventually(
      'kubelet asks again',
      async () => (await creations()).length >= 2 && performance.now() - beganMs >= creationSeconds * 1000,
      patienceMs,
    );
    const whileSlow = await creations();
    assert.deepEqual([...new Set(whileSlow.map(({ code }) => code))], [null], 'a try was refused');
    kill(spawner.pid, 'SIGCONT');

    const pod = await podWhen('main has ended', ({ status }) => status.phase === 'Failed');
    const main = pod.status.containerStatuses?.find(({ name }) => name === 'main');
    assert.deepEqual(main?.state?.terminated?.exitCode, 3);
    assert.equal(main.state.terminated.message, 'made once\n');
    assert.equal(main.restartCount, 0);

    const all = await creations();
    const paths = all.map(
      ({ config }) => config.mounts?.find((one) => one.containerPath === '/dev/termination-log')?.hostPath,
    );
    assert.equal(new Set(paths).size, all.length, 'kubelet did not ask with another path each time');
    assert.deepEqual([...new Set(all.map(({ code }) => code))], [0]);
    const made = new Set(all.map(({ completed }) => completed?.response?.id));
    assert.deepEqual([...made].map((id) => `containerd://${id}`).length, 1);
    assert.ok(main.containerID?.endsWith([...made][0] ?? '?'));
  });
});
