/**
 * A real daemon, shim and socket: what clients are answered while a daemon that was killed starts again (C18), and what
 * they are told of what happened meanwhile.
 */
import assert from 'node:assert/strict';
import { access, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { codeOf, criClient } from '../../../scripts/lib/cri-client.ts';
import { ContainerEventType, ContainerState } from '../../../src/wire/cri/api.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { stateOf } from '../../support/journal.ts';
import { busyboxName, startNode, type TestNode } from '../../support/node.ts';
import { eventually, runPod } from '../../support/pods.ts';
import { liveTaskOf } from '../../../src/domain/model/container-state.ts';
import { exists } from '../../../src/platform/linux/exists.ts';

const { CONTAINER_RUNNING, CONTAINER_EXITED } = ContainerState;
const sleeper = ['sleep', '1000'];

const isGone = (pid: number) => async (): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat === null || stat.includes(') Z ');
};

describe('a daemon that was killed and starts again', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner);
  });

  test('C18: every answer is Unavailable or right; a code is told once its shim, which hung, tells it', async (t) => {
    const { daemon } = node;
    const [stays, dies] = await Promise.all([
      runPod(daemon, 'stays', busyboxName, sleeper),
      runPod(daemon, 'dies', busyboxName, sleeper),
    ]);
    const { sandboxes, containers } = stateOf(daemon);
    const shimPid = sandboxes.get(dies.podSandboxId)?.shim?.pid ?? 0;
    const taskPid = liveTaskOf(containers.get(dies.containerId))?.pid ?? 0;
    assert.ok(shimPid > 0 && taskPid > 0);
    await daemon.kill();

    // The socket of the last life is still there, and nobody listens.
    await access(daemon.socket);
    const client = criClient(daemon.socket);
    onCleanup(t, () => client.close());
    const refused = client.runtime.listContainers({}, { timeoutMs: 5_000 });
    await assert.rejects(refused, (error) => codeOf(error) === GrpcCode.UNAVAILABLE);

    // A shim that says nothing: what it knows of the exit, it tells when it goes on.
    process.kill(shimPid, 'SIGSTOP');
    onCleanup(t, () => {
      if (stopped) process.kill(shimPid, 'SIGCONT');
    });
    let stopped = true;
    process.kill(taskPid, 'SIGKILL');
    await eventually('the task is dead', isGone(taskPid));

    const expected = new Map<string, ContainerState>([
      [stays.containerId, CONTAINER_RUNNING],
      [dies.containerId, CONTAINER_EXITED],
    ]);
    const starting = daemon.start();
    const answers = { right: 0, unavailable: 0 };
    while (answers.right < 20) {
      try {
        const list = await client.runtime.listContainers({}, { timeoutMs: 5_000 });
        assert.deepEqual(new Map(list.containers.map(({ id, state }) => [id, state])), expected);
        answers.right += 1;
      } catch (error) {
        if (codeOf(error) !== GrpcCode.UNAVAILABLE) throw error;
        answers.unavailable += 1;
        await sleep(5);
      }
    }
    await starting;
    assert.ok(answers.unavailable > 0);

    let told: number | null = null;
    const status = daemon.cri.runtime.containerStatus({ containerId: dies.containerId });
    void status.then(({ status: found }) => (told = found?.exitCode ?? -1));
    // It may be asked often; no answer may come before the shim's.
    await daemon.cri.runtime.listContainers();
    assert.equal(told, null);
    process.kill(shimPid, 'SIGCONT');
    stopped = false;
    assert.equal((await status).status?.exitCode, 137);
    const again = await daemon.cri.runtime.podSandboxStatus({ podSandboxId: dies.podSandboxId });
    assert.deepEqual(
      again.containersStatuses.map(({ exitCode }) => exitCode),
      [137],
    );
  });

  test('container events go on behind what was delivered before; stats tell the writable layer', async (t) => {
    const { daemon } = node;
    const heard: (readonly [id: string, type: ContainerEventType, exitCodes: readonly number[]])[] = [];
    /** Hears events until `isDone`. */
    const listen = async (isDone: () => boolean): Promise<void> => {
      const abort = new AbortController();
      const options = { signal: abort.signal, timeoutMs: 20_000 };
      for await (const event of daemon.cri.runtime.getContainerEvents({}, options)) {
        const { containerId, containerEventType, containersStatuses, podSandboxStatus } = event;
        assert.ok(podSandboxStatus !== undefined, 'every event has its pod');
        heard.push([containerId, containerEventType, containersStatuses.map(({ exitCode }) => exitCode)]);
        if (isDone()) break;
      }
      abort.abort();
    };
    const { CONTAINER_STARTED_EVENT, CONTAINER_STOPPED_EVENT } = ContainerEventType;
    const { podSandboxId, containerId } = await runPod(daemon, 'told', busyboxName, sleeper);
    await listen(() => heard.at(-1)?.[0] === containerId && heard.at(-1)?.[1] === CONTAINER_STARTED_EVENT);
    assert.ok(heard.some(([id]) => id === podSandboxId));

    const layer = await eventually('the writable layer is counted', async () => {
      const { stats } = await daemon.cri.runtime.containerStats({ containerId });
      return stats?.writableLayer;
    });
    assert.equal(layer.fsId?.mountpoint, join(daemon.dirs.root, 'containers'));
    assert.ok(BigInt(layer.timestamp) > 0n && BigInt(layer.inodesUsed?.value ?? 0) > 0n);
    assert.ok(layer.usedBytes !== undefined);

    await eventually('it is written down up to where events were delivered', () =>
      exists(join(daemon.dirs.state, 'events.cursor')),
    );
    heard.length = 0;
    const taskPid = liveTaskOf(stateOf(daemon).containers.get(containerId))?.pid ?? 0;
    await daemon.kill();
    process.kill(taskPid, 'SIGKILL');
    await eventually('the task is dead', isGone(taskPid));
    await daemon.start();
    await listen(() => heard.at(-1)?.[0] === containerId);
    assert.deepEqual(
      heard.filter(([id]) => id === containerId || id === podSandboxId),
      [[containerId, CONTAINER_STOPPED_EVENT, [137]]],
    );
    t.diagnostic(`${heard.length} events after the restart`);
  });
});
