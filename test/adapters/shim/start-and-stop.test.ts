/** Shims as a whole: started once per pod, lost, stopped, found half-way started. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { holdProcess, isAlive } from '../../../src/platform/linux/processes.ts';
import {
  parseStartOutput,
  shimArguments,
  socketPathOf,
  startInput,
  parseShimVersion,
} from '../../../src/adapters/shim/process/bootstrap.ts';
import { dialShim } from '../../../src/adapters/shim/process/live-shim.ts';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import type { ShimAddress } from '../../../src/domain/model/tasks.ts';
import { deleteOf, killOf, type Rig, openContext, openRig, processesNaming } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';
import { exists } from '../../../src/platform/linux/exists.ts';

/** Kills exactly this process and waits until it is gone. */
const killProcess = async (name: { readonly pid: number; readonly startTicks: string }, signal = 9): Promise<void> => {
  const held = await holdProcess(name);
  held?.kill(signal);
  await held?.ended;
  held?.release();
};

for (const { version, path } of await testShims()) {
  describe(`pods on shim ${version}`, { timeout: 60_000 }, () => {
    let rig: Rig;
    before(async () => {
      rig = await openRig(path);
    });
    after(() => rig.close());

    type Pod = Awaited<ReturnType<Rig['startPod']>>;
    const stop = ({ podSandboxId, bundlePath }: Pod, shim: ShimAddress | null): Promise<unknown> =>
      rig.adapter.effects.StopShim(
        { kind: 'StopShim', podSandboxId, handler: rig.handler, bundlePath, shim },
        openContext(),
      );
    const start = ({ podSandboxId, bundlePath }: Pod) =>
      rig.adapter.effects.StartShim(
        { kind: 'StartShim', podSandboxId, handler: rig.handler, bundlePath },
        openContext(),
      );
    const runContainer = async (pod: Pod, args: readonly string[]): Promise<EffectOf<'CreateTask'>> => {
      const one = await rig.container(pod.podSandboxId, { args });
      await rig.launch(one);
      return one;
    };
    const gone = async ({ shim }: Pod): Promise<void> => {
      assert.equal(await isAlive(shim), false);
      assert.equal(await exists(socketPathOf(shim.address)), false, 'the socket is left');
    };
    const lostPods = (podSandboxId: string): number =>
      rig.observations.filter((o) => o.kind === 'ShimLost' && o.podSandboxId === podSandboxId).length;

    it('have one shim, however often it is started', async () => {
      const pod = await rig.startPod();
      assert.deepEqual((await start(pod)).shim, pod.shim);
      assert.equal(await isAlive(pod.shim), true);
      // An app container's bundle leads to the same shim: its annotation says which group it is of.
      const one = await rig.container(pod.podSandboxId, { args: ['sleep', '1000'] });
      const { stdout } = await rig.spawner.run({
        command: path,
        args: shimArguments({
          action: 'start',
          id: one.containerId,
          bundlePath: one.bundlePath,
          daemonAddress: rig.adapter.eventsAddress,
        }),
        env: { PATH: process.env['PATH'] ?? '', TTRPC_ADDRESS: rig.adapter.eventsAddress },
        cwd: one.bundlePath,
        stdin: startInput(
          parseShimVersion(`  Version: ${version}`),
          one.containerId,
          rig.adapter.eventsAddress,
          rig.adapter.eventsAddress,
        ),
        timeoutMs: 5000,
        outputBytesMax: 65536,
      });
      assert.equal(parseStartOutput(stdout).address, pod.shim.address);
      await stop(pod, pod.shim);
      await gone(pod);
      assert.equal(lostPods(pod.podSandboxId), 0);
      await stop(pod, pod.shim);
      await stop(pod, null);
    });

    it('are reported lost, once, when their shim dies, and their tasks are deleted by its binary', async () => {
      const pod = await rig.startPod();
      const one = await runContainer(pod, ['sleep', '1000']);
      const { task } = await rig.launch(one);
      await killProcess(pod.shim);
      await rig.observed('ShimLost', ({ podSandboxId }) => podSandboxId === pod.podSandboxId);
      assert.equal(await isAlive(task), true, 'a container outlives its shim');
      await assert.rejects(rig.adapter.effects.KillTask(killOf(one), openContext()), /is gone/);
      await assert.rejects(rig.exec(one, ['true']), /is gone/);
      await rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
      assert.equal(await isAlive(task), false);
      await rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
      await stop(pod, pod.shim);
      await gone(pod);
      assert.equal(lostPods(pod.podSandboxId), 1);
    });

    it('are reported lost when their shim leaves its containers on SIGTERM', async () => {
      const pod = await rig.startPod();
      const one = await runContainer(pod, ['sleep', '1000']);
      await killProcess(pod.shim, 15);
      await rig.observed('ShimLost', ({ podSandboxId }) => podSandboxId === pod.podSandboxId);
      await rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
      await stop(pod, pod.shim);
      await gone(pod);
    });

    it('get a new shim in the place of a dead one, whose socket is stale', async () => {
      const pod = await rig.startPod();
      await killProcess(pod.shim);
      await rig.observed('ShimLost', ({ podSandboxId }) => podSandboxId === pod.podSandboxId);
      const { shim } = await start(pod);
      assert.notEqual(shim.pid, pod.shim.pid);
      const one = await runContainer(pod, ['true']);
      await rig.observed('TaskExited', ({ containerId }) => containerId === one.containerId);
      await rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
      await stop(pod, shim);
      await gone({ ...pod, shim });
    });

    it('are stopped by force when their shim holds on to containers', async () => {
      const pod = await rig.startPod();
      const pause = await rig.container(
        pod.podSandboxId,
        { args: ['sleep', '1000'] },
        { containerId: pod.podSandboxId, log: null },
      );
      const { task } = await rig.launch(pause);
      await stop(pod, pod.shim);
      await gone(pod);
      assert.equal(await isAlive(task), false, 'what is left of the pause task is killed');
      assert.equal(lostPods(pod.podSandboxId), 0);
    });

    it('C6: are undone when their start was cut short, though nothing was noted of it', async () => {
      const podSandboxId = rig.newId();
      const bundlePath = await rig.bundle(podSandboxId, podSandboxId, { args: ['sleep', '1000'] });
      const pod = { podSandboxId, bundlePath, shim: { address: '', taskApi: 2, pid: 0, startTicks: '' } } as const;
      await stop(pod, null);
      // Its log is read by nobody at that moment: the daemon has died.
      const { shim } = await start(pod);
      await rig.restart();
      assert.equal((await processesNaming(`-id ${podSandboxId}`)).length, 1);
      await stop(pod, null);
      await gone({ ...pod, shim });
      assert.deepEqual(await processesNaming(`-id ${podSandboxId}`), []);
    });

    it('are undone when even the bundle was never written', async () => {
      const podSandboxId = rig.newId();
      const bundlePath = join(rig.stateDir, 'bundles', podSandboxId);
      await stop({ podSandboxId, bundlePath, shim: { address: '', taskApi: 2, pid: 0, startTicks: '' } }, null);
    });

    it('fail to start in words when the bundle is no bundle', async () => {
      const podSandboxId = rig.newId();
      const bundlePath = await rig.bundle(podSandboxId, podSandboxId, { args: ['true'] });
      await writeFile(join(bundlePath, 'config.json'), 'garbage');
      await assert.rejects(
        rig.adapter.effects.StartShim(
          { kind: 'StartShim', podSandboxId, handler: rig.handler, bundlePath },
          openContext(),
        ),
        /Could not start the shim|failed at 'start'/,
      );
    });

    it('keep their tasks when a connection breaks, and hear of their exits over a new one', async () => {
      const pod = await rig.startPod();
      const one = await runContainer(pod, ['sleep', '1000']);
      // The shim itself is asked by a second connection: closing one leaves it and its tasks alone.
      const second = await dialShim(pod.shim, 1000);
      second.close();
      await rig.adapter.effects.KillTask(killOf(one), openContext());
      const { exit } = await rig.observed('TaskExited', ({ containerId }) => containerId === one.containerId);
      assert.equal(exit.exitStatus, 137);
      await rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
      await stop(pod, pod.shim);
    });
  });
}
