/** One shim that several pods have: started once, found again, ended with its last pod, and what its death takes along. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { socketPathOf } from '../../../src/adapters/shim/process/bootstrap.ts';
import type { ShimAddress } from '../../../src/domain/model/tasks.ts';
import { holdProcess, isAlive } from '../../../src/platform/linux/processes.ts';
import { withReason } from '../../support/failures.ts';
import { deleteOf, killOf, type Rig, openContext, openRig, processesNaming } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';
import { exists } from '../../../src/platform/linux/exists.ts';

/** As the kernel shows them: what is accepted has the name of what listens. */
const connectionsTo = async ({ address }: ShimAddress): Promise<number> => {
  const name = socketPathOf(address).replace('\0', '@');
  const lines = (await readFile('/proc/net/unix', 'utf8')).split('\n').filter((line) => line.endsWith(` ${name}`));
  return lines.length - 1;
};

for (const { version, path } of await testShims()) {
  describe(`pods that share shim ${version}`, { timeout: 60_000 }, () => {
    let rig: Rig;
    before(async () => {
      rig = await openRig(path);
    });
    after(() => rig.close());

    type Pod = Awaited<ReturnType<Rig['startPod']>>;
    const threePods = (id: string): Promise<readonly Pod[]> =>
      Promise.all([rig.startPod(id), rig.startPod(id), rig.startPod(id)]);
    const runIn = async ({ podSandboxId }: Pod, args: readonly string[] = ['sleep', '1000']) => {
      const one = await rig.container(podSandboxId, { args });
      return { ...one, ...(await rig.launch(one)) };
    };
    const remove = (one: Awaited<ReturnType<typeof runIn>>) =>
      rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
    const leave = ({ podSandboxId, bundlePath, shared, shim }: Pod, isInUse: boolean) => {
      assert.ok(shared !== undefined);
      return rig.adapter.effects.StopShim(
        {
          kind: 'StopShim',
          podSandboxId,
          handler: rig.handler,
          bundlePath,
          shim,
          shared: { ...shared, isInUse },
        },
        openContext(),
      );
    };
    const reconnect = ({ podSandboxId, bundlePath, shared, shim }: Pod, containerIds: readonly string[]) =>
      rig.adapter.effects.ReconnectShim(
        {
          kind: 'ReconnectShim',
          podSandboxId,
          shim,
          bundlePath,
          ...(shared === undefined ? {} : { shared }),
          containerIds,
        },
        openContext(),
      );
    const exitOf = async (containerId: string) =>
      (await rig.observed('TaskExited', (seen) => seen.containerId === containerId)).exit.exitStatus;

    it('is one process for pods that ask at once, and ends with the last of them, whoever started it', async () => {
      const pods = await threePods('shared-ends');
      const [first, second, third] = pods;
      assert.ok(first !== undefined && second !== undefined && third !== undefined);
      assert.equal(new Set(pods.map(({ shim }) => shim.pid)).size, 1);
      assert.equal((await processesNaming('shared-ends')).length, 1);
      const tasks = await Promise.all(pods.map((pod) => runIn(pod)));
      for (const [index, pod] of [first, third].entries()) {
        const task = tasks[index === 0 ? 0 : 2];
        assert.ok(task !== undefined);
        await remove(task);
        await leave(pod, true);
        assert.equal(await isAlive(first.shim), true, 'it ended under a pod that has it');
      }
      assert.equal((await rig.exec(tasks[1] ?? assert.fail(), ['true'])).exitStatus, 0);
      await remove(tasks[1] ?? assert.fail());
      await leave(second, false);
      assert.equal(await isAlive(first.shim), false);
      assert.equal(await exists(join(rig.stateDir, 'bundles/shared-ends')), false);
      assert.deepEqual(await processesNaming('shared-ends'), []);
    });

    it('is not had by a pod that it gives no answer', async () => {
      const impatient = await openRig(path, { timings: { callMs: 300 } });
      try {
        const { shim } = await impatient.startPod('shared-silent');
        process.kill(shim.pid, 'SIGSTOP');
        try {
          await assert.rejects(impatient.startPod('shared-silent'), withReason('TimedOut'));
        } finally {
          process.kill(shim.pid, 'SIGCONT');
        }
        assert.equal((await impatient.startPod('shared-silent')).shim.pid, shim.pid);
      } finally {
        await impatient.close();
      }
    });

    it('C3: tells the exit of each container once, by its own id', async () => {
      const pods = await threePods('shared-exits');
      const tasks = await Promise.all(pods.map((pod, index) => runIn(pod, ['sh', '-c', `exit ${index + 1}`])));
      assert.deepEqual(await Promise.all(tasks.map(({ containerId }) => exitOf(containerId))), [1, 2, 3]);
      for (const task of tasks) await remove(task);
      for (const [index, pod] of pods.entries()) await leave(pod, index < 2);
    });

    it('is found again by every pod after a restart, over one connection, and may be joined then', async () => {
      const pods = await threePods('shared-again');
      const tasks = await Promise.all(pods.map((pod) => runIn(pod)));
      await rig.restart();
      const answers = await Promise.all(pods.map((pod, index) => reconnect(pod, [tasks[index]?.containerId ?? ''])));
      assert.deepEqual(
        answers.map(({ gone, tasks: seen }) => [gone, ...seen.map(({ status }) => status)]),
        pods.map(() => [false, 'running']),
      );
      assert.equal(await connectionsTo(pods[0]?.shim ?? assert.fail()), 1);
      const fourth = await rig.startPod('shared-again');
      assert.equal(fourth.shim.pid, pods[0]?.shim.pid);
      assert.equal(await connectionsTo(fourth.shim), 1, 'another connection was opened');
      const [killed] = tasks;
      assert.ok(killed !== undefined);
      await rig.adapter.effects.KillTask(killOf(killed), openContext());
      assert.equal(await exitOf(killed.containerId), 137);
      for (const task of tasks) await remove(task);
      for (const pod of [...pods.slice(1), fourth]) await leave(pod, true);
      await leave(pods[0] ?? assert.fail(), false);
      assert.deepEqual(await processesNaming('shared-again'), []);
    });

    it('is lost by each of its pods when it is killed, and what ran in it can be deleted', async () => {
      const pods = await threePods('shared-killed');
      const tasks = await Promise.all(pods.map((pod) => runIn(pod)));
      const held = await holdProcess(pods[0]?.shim ?? assert.fail());
      held?.kill(9);
      for (const { podSandboxId } of pods) await rig.observed('ShimLost', (seen) => seen.podSandboxId === podSandboxId);
      held?.release();
      for (const task of tasks) {
        assert.equal(await isAlive(task.task), true, 'a container is no child of what its shim ends');
        await remove(task);
        assert.equal(await isAlive(task.task), false);
      }
      // One has a new one before the others have given up the old.
      await leave(pods[0] ?? assert.fail(), true);
      const again = await rig.startPod('shared-killed');
      assert.notEqual(again.shim.pid, pods[0]?.shim.pid);
      await leave(pods[1] ?? assert.fail(), true);
      await leave(again, true);
      await leave(pods[2] ?? assert.fail(), false);
      assert.deepEqual(await processesNaming('shared-killed'), []);
    });

    it('is ended by a daemon that has no connection to it', async () => {
      const [pod] = await threePods('shared-unconnected');
      assert.ok(pod !== undefined);
      await rig.restart();
      await leave(pod, false);
      assert.equal(await isAlive(pod.shim), false);
    });
  });
}
