/**
 * Pods that have one shim together (pods_per_shim), on the real parts: who gets which, what kills of the daemon and of the
 * shim leave of them, and that nothing stays when they go, in whatever order.
 */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { ContainerState, PodSandboxState } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { agreement } from '../support/agreement.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { headOf, recordsOf, stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, runPod, statusOf } from '../support/pods.ts';

const { CONTAINER_EXITED, CONTAINER_RUNNING } = ContainerState;
const { SANDBOX_READY, SANDBOX_NOTREADY } = PodSandboxState;
const sleeper = ['sleep', '1000'];

describe('pods that share a shim', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner, { config: '[runtime.handlers.runc]\npods_per_shim = 3\n' });
  });

  type Pod = Awaited<ReturnType<typeof runPod>>;
  const shimOf = ({ podSandboxId }: Pod) => stateOf(node.daemon).sandboxes.get(podSandboxId)?.shim?.pid ?? 0;
  const podsNamed = (...names: readonly string[]): Promise<readonly Pod[]> =>
    Promise.all(names.map((name) => runPod(node.daemon, name, busyboxName, sleeper, { pod: ownPids })));
  const shims = async (): Promise<readonly string[]> => (await node.daemon.leftovers()).shims;
  const hostnameOf = async ({ containerId }: Pod): Promise<string> => {
    const cmd = ['hostname'];
    return (await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString().trim();
  };

  test('four that start at once have two, each tells its own exits, and they go in any order', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const pods = await podsNamed('one', 'two', 'three', 'four');
    assert.equal((await shims()).length, 2);
    const counts = Object.values(Object.groupBy(pods, (pod) => String(shimOf(pod)))).map((held) => held?.length);
    assert.deepEqual(
      counts.toSorted((a, b) => (a ?? 0) - (b ?? 0)),
      [1, 3],
    );
    assert.deepEqual(await Promise.all(pods.map(hostnameOf)), ['one', 'two', 'three', 'four']);
    const [first, ...others] = pods.toSorted((a, b) => shimOf(a) - shimOf(b));
    assert.ok(first !== undefined);
    await runtime.stopContainer({ containerId: first.containerId, timeout: '0' });
    assert.deepEqual([(await statusOf(daemon, first.containerId)).exitCode], [137]);
    for (const { containerId } of others) assert.equal((await statusOf(daemon, containerId)).state, CONTAINER_RUNNING);
    await agreement(daemon);
    await removePod(daemon, first.podSandboxId);
    await agreement(daemon);
    for (const one of others) assert.notEqual(await hostnameOf(one), '');
    // All of them at the same moment: exactly one ends the shim that they share.
    await Promise.all(others.map(({ podSandboxId }) => removePod(daemon, podSandboxId)));
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
    assert.deepEqual(await readdir(join(daemon.dirs.state, 'bundles')), []);
  });

  test('C18 C19: a kill of the daemon leaves them as they are, and who has which is known by the journal', async () => {
    const { daemon } = node;
    const pods = await podsNamed('killed-a', 'killed-b');
    const [first, second] = pods;
    assert.ok(first !== undefined && second !== undefined);
    const pid = shimOf(first);
    await daemon.kill();
    await daemon.start();
    assert.deepEqual(await Promise.all(pods.map(hostnameOf)), ['killed-a', 'killed-b']);
    await agreement(daemon);
    const third = (await podsNamed('killed-c'))[0] ?? assert.fail();
    assert.deepEqual([shimOf(third), shimOf(second)], [pid, pid]);
    await removePod(daemon, first.podSandboxId);
    await daemon.kill();
    await daemon.start();
    assert.deepEqual(await Promise.all([second, third].map(hostnameOf)), ['killed-b', 'killed-c']);
    await agreement(daemon);
    assert.equal((await daemon.scribe('doctor', '--json')).stdout.includes('no record explains'), false);
    await removePod(daemon, third.podSandboxId);
    assert.equal((await shims()).length, 1);
    await removePod(daemon, second.podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('the death of the shim ends the containers of all its pods, with a record and a reason for each', async () => {
    const { daemon } = node;
    const since = headOf(daemon);
    const pods = await podsNamed('lost-a', 'lost-b');
    const paused = await runPod(daemon, 'lost-paused', busyboxName, sleeper);
    const all = [...pods, paused];
    const pids = new Set(all.map(shimOf));
    assert.equal(pids.size, 1);
    process.kill([...pids][0] ?? 0, 'SIGKILL');
    for (const { containerId } of all) {
      const status = await eventually('its end', async () => {
        const now = await statusOf(daemon, containerId);
        return now.state === CONTAINER_EXITED && now;
      });
      assert.deepEqual([status.exitCode, status.reason], [255, 'Unknown']);
      assert.match(
        (await daemon.scribe('why', '--root', daemon.dirs.root, containerId)).stdout,
        /its shim( \(pid \d+\))? was killed or died/,
      );
    }
    const lost = (await recordsOf(daemon, { fromSeq: since + 1 })).filter(({ type }) => type === 'shim.lost');
    assert.deepEqual(
      new Set(lost.map(({ stream }) => stream)),
      new Set(all.map(({ podSandboxId }) => `sandbox/${podSandboxId}`)),
    );
    const stateOfPod = async ({ podSandboxId }: Pod) =>
      (await daemon.cri.runtime.podSandboxStatus({ podSandboxId })).status?.state;
    assert.deepEqual(await Promise.all(all.map(stateOfPod)), [SANDBOX_READY, SANDBOX_READY, SANDBOX_NOTREADY]);
    const { podSandboxId } = pods[0] ?? assert.fail();
    const sandboxConfig = podConfig(daemon, 'lost-a', ownPids);
    const config = containerConfig('next', busyboxName, sleeper);
    const { containerId } = await daemon.cri.runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await daemon.cri.runtime.startContainer({ containerId });
    assert.equal(await hostnameOf({ podSandboxId, containerId }), 'lost-a');
    await agreement(daemon);
    for (const pod of all) await removePod(daemon, pod.podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
    assert.deepEqual(await readdir(join(daemon.dirs.state, 'bundles')), []);
  });

  test('one that is stopped keeps no probe waiting and gets no further pod, and is as it was when it goes on', async () => {
    const { daemon } = node;
    const [first] = await podsNamed('stopped-a');
    assert.ok(first !== undefined);
    const contactOf = () => stateOf(daemon).sandboxes.get(first.podSandboxId)?.shimContact;
    const pid = shimOf(first);
    process.kill(pid, 'SIGSTOP');
    try {
      const startedMs = performance.now();
      const { containerId } = first;
      await assert.rejects(
        daemon.cri.runtime.execSync({ containerId, cmd: ['true'], timeout: '1' }),
        withCode(GrpcCode.DEADLINE_EXCEEDED, /did not answer/),
      );
      const ms = performance.now() - startedMs;
      assert.ok(ms < 6_000, `the probe was answered after ${ms} ms`);
      await eventually('it is known to be silent', async () => contactOf() === 'mute', 30_000);
      const [second] = await podsNamed('stopped-b');
      assert.ok(second !== undefined);
      assert.notEqual(shimOf(second), pid);
      assert.equal(await hostnameOf(second), 'stopped-b');
      await removePod(daemon, second.podSandboxId);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await eventually('it is known to answer', async () => contactOf() === 'connected', 60_000);
    assert.equal(await hostnameOf(first), 'stopped-a');
    await agreement(daemon);
    await removePod(daemon, first.podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});
