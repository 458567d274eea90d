/**
 * A task that is made before its start is asked for, on the real parts: what becomes of it when nobody starts it, when the
 * daemon or its shim is killed, and when its limits are changed first.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { taskAheadOf } from '../../src/domain/model/container-state.ts';
import { ContainerState } from '../../src/wire/cri/api.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, statusOf } from '../support/pods.ts';

const { CONTAINER_CREATED, CONTAINER_RUNNING } = ContainerState;

describe('a task that is made ahead', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner);
  });

  const stepOf = (containerId: string): string | undefined => {
    const container = stateOf(node.daemon).containers.get(containerId);
    return container === undefined ? 'gone' : taskAheadOf(container)?.step;
  };

  /** In a pod of its own; its task waits to be started. */
  const create = async (name: string): Promise<{ podSandboxId: string; containerId: string }> => {
    const { daemon } = node;
    const sandboxConfig = podConfig(daemon, name, ownPids);
    const { podSandboxId } = await daemon.cri.runtime.runPodSandbox({ config: sandboxConfig });
    const config = containerConfig(name, busyboxName, ['sleep', '1000']);
    const { containerId } = await daemon.cri.runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await eventually('its task is there', async () => stepOf(containerId) === 'done');
    assert.equal((await statusOf(daemon, containerId)).state, CONTAINER_CREATED);
    return { podSandboxId, containerId };
  };

  const start = async (containerId: string): Promise<void> => {
    await node.daemon.cri.runtime.startContainer({ containerId });
    assert.equal((await statusOf(node.daemon, containerId)).state, CONTAINER_RUNNING);
  };

  const leavesNothing = async (podSandboxId: string): Promise<void> => {
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  };

  test('it goes with a container that nobody starts, and with its pod', async () => {
    const removed = await create('removed');
    await node.daemon.cri.runtime.removeContainer({ containerId: removed.containerId });
    assert.deepEqual((await node.daemon.leftovers()).cgroups, []);
    await leavesNothing(removed.podSandboxId);
    const stopped = await create('stopped');
    await node.daemon.cri.runtime.stopPodSandbox({ podSandboxId: stopped.podSandboxId });
    assert.deepEqual((await node.daemon.leftovers()).cgroups, []);
    assert.equal((await statusOf(node.daemon, stopped.containerId)).state, CONTAINER_CREATED);
    await leavesNothing(stopped.podSandboxId);
  });

  test('C19: after a kill of the daemon it is made anew by the start', async () => {
    const { podSandboxId, containerId } = await create('killed');
    await node.daemon.kill();
    await node.daemon.start();
    assert.equal((await statusOf(node.daemon, containerId)).state, CONTAINER_CREATED);
    await eventually('it is deleted', async () => stepOf(containerId) === 'undone');
    await start(containerId);
    await leavesNothing(podSandboxId);
  });

  test('when its shim was killed, another one starts it', async () => {
    const { podSandboxId, containerId } = await create('orphan');
    process.kill(stateOf(node.daemon).sandboxes.get(podSandboxId)?.shim?.pid ?? 0, 'SIGKILL');
    await eventually('it is deleted', async () => stepOf(containerId) === 'undone');
    await start(containerId);
    await leavesNothing(podSandboxId);
  });

  test('what is changed before the start is so when it runs', async () => {
    const { podSandboxId, containerId } = await create('changed');
    const { runtime } = node.daemon.cri;
    await runtime.updateContainerResources({ containerId, linux: { oomScoreAdj: '700' } });
    await start(containerId);
    const cmd = ['cat', '/proc/1/oom_score_adj'];
    assert.equal((await runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString(), '700\n');
    await leavesNothing(podSandboxId);
  });
});
