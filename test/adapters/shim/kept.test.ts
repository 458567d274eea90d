/** Shims that are kept when their pod has gone: who gets one, when one is ended, and what the death of a daemon leaves. */
import assert from 'node:assert/strict';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { isAlive, readProcessStat } from '../../../src/platform/linux/processes.ts';
import { eventually } from '../../support/pods.ts';
import { deleteOf, killOf, openContext, openRig, type Rig, type RigOptions } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';

const endless = 3_600_000;

for (const { version, path } of await testShims()) {
  describe(`kept shims ${version}`, { timeout: 120_000 }, () => {
    let rig: Rig;
    type Pod = Awaited<ReturnType<Rig['startPod']>>;

    const stop = async ({ podSandboxId, bundlePath, shim }: Pod): Promise<void> => {
      const { handler, adapter } = rig;
      const effect = { kind: 'StopShim', podSandboxId, handler, bundlePath, shim } as const;
      await adapter.effects.StopShim(effect, openContext());
    };
    const run = async ({ podSandboxId }: Pod, args: readonly string[]) => {
      const one = await rig.container(podSandboxId, { args });
      await rig.launch(one);
      return one;
    };
    /** A whole life: a container that says how it ends, a command in another, and nothing of them after. */
    const live = async (pod: Pod, exitStatus: number): Promise<void> => {
      const short = await run(pod, ['sh', '-c', `exit ${exitStatus}`]);
      const { exit } = await rig.observed('TaskExited', ({ containerId }) => containerId === short.containerId);
      assert.equal(exit.exitStatus, exitStatus);
      const sleeper = await run(pod, ['sleep', '1000']);
      assert.equal((await rig.exec(sleeper, ['echo', 'hello'])).stdout, 'hello\n');
      await rig.adapter.effects.KillTask(killOf(sleeper), openContext());
      for (const one of [short, sleeper]) await rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
    };
    const places = (): Promise<readonly string[]> => readdir(join(rig.stateDir, 'shims'));
    const descriptors = async ({ shim }: Pod): Promise<number> => (await readdir(`/proc/${shim.pid}/fd`)).length;
    const withRig = (options: RigOptions): void => {
      before(async () => {
        rig = await openRig(path, options);
      });
      after(() => rig.close());
    };

    describe('of which two are kept', () => {
      withRig({ keptShims: { shimsMax: 2, forMs: endless }, timings: { callMs: 2_000, shimExitMs: 2_000 } });

      it('serve one pod after another, and hold nothing of those before', async () => {
        const first = await rig.startPod();
        assert.match(first.shim.origin?.id ?? '', /^kept-/);
        await live(first, 3);
        await stop(first);
        let held = 0;
        for (let n = 0; n < 3; n += 1) {
          const next = await rig.startPod();
          assert.deepEqual(next.shim, first.shim);
          await live(next, n);
          await stop(next);
          if (n === 0) held = await descriptors(first);
        }
        await eventually(
          'no more descriptors than after the second pod',
          async () => (await descriptors(first)) <= held,
        );
        assert.deepEqual(
          rig.observations.filter(({ kind }) => kind === 'ShimLost'),
          [],
        );
        // Done again it is nothing, whoever has the shim by now.
        const last = await rig.startPod();
        await stop(first);
        assert.equal(await isAlive(last.shim), true);
        await stop(last);
      });

      it('serve one at a time, and no more are kept than that', async () => {
        const pods = [await rig.startPod(), await rig.startPod(), await rig.startPod()];
        assert.equal(new Set(pods.map(({ shim }) => shim.pid)).size, 3);
        for (const pod of pods) await stop(pod);
        assert.deepEqual(await Promise.all(pods.map(({ shim }) => isAlive(shim))), [true, true, false]);
        assert.equal((await places()).length, 2);
      });

      it('are ended with their pod when a call has failed', async () => {
        const pod = await rig.startPod();
        const broken = await rig.container(pod.podSandboxId, { args: ['/nonexistent'] });
        await assert.rejects(rig.launch(broken));
        await stop(pod);
        assert.equal(await isAlive(pod.shim), false);
      });

      it('are not taken when they died or are silent, and are ended then', async () => {
        const [dead, silent] = [await rig.startPod(), await rig.startPod()];
        process.kill(dead.shim.pid, 'SIGKILL');
        await rig.observed('ShimLost', ({ podSandboxId }) => podSandboxId === dead.podSandboxId);
        await stop(dead);
        await stop(silent);
        process.kill(silent.shim.pid, 'SIGSTOP');
        await eventually('it stands still', async () => (await readProcessStat(silent.shim.pid))?.state === 'T');
        const next = await rig.startPod();
        assert.notEqual(next.shim.pid, silent.shim.pid);
        await live(next, 0);
        await eventually('the silent one is ended', async () => !(await isAlive(silent.shim)));
        await stop(next);
        process.kill(next.shim.pid, 'SIGKILL');
        await eventually('what died while it was kept leaves nothing', async () => {
          const left = await places();
          return !left.includes(next.shim.origin?.id ?? '') && !left.includes(dead.shim.origin?.id ?? '');
        });
      });

      it('are ended when the daemon is, or by the next one when it was killed; those of pods live on', async () => {
        const pods = [await rig.startPod(), await rig.startPod(), await rig.startPod(), await rig.startPod()] as const;
        const [kept, unrecorded, used, busy] = pods;
        const running = await run(used, ['sleep', '1000']);
        const unknown = await run(busy, ['sleep', '1000']);
        await stop(kept);
        // As of a daemon that died after it had made the place.
        await mkdir(join(rig.stateDir, 'shims', 'kept-unused'));
        rig.shimsInUse.clear();
        rig.shimsInUse.add(used.shim.origin?.id ?? assert.fail());
        await rig.restart(async () => {
          assert.equal(await isAlive(kept.shim), false);
        });
        await eventually('what no pod has is ended', async () => !(await isAlive(unrecorded.shim)));
        // What the journal knows nothing of is ended by a person, if something runs in it.
        assert.equal(await isAlive(busy.shim), true);
        await eventually('only the two places are left', async () => {
          const left = new Set(await places());
          return left.size === 2 && [used, busy].every(({ shim }) => left.has(shim.origin?.id ?? ''));
        });
        for (const [{ podSandboxId, bundlePath, shim }, { containerId }] of [
          [used, running],
          [busy, unknown],
        ] as const) {
          const { gone, tasks } = await rig.adapter.effects.ReconnectShim(
            { kind: 'ReconnectShim', podSandboxId, bundlePath, shim, containerIds: [containerId] },
            openContext(),
          );
          assert.deepEqual([gone, tasks.map(({ status }) => status)], [false, ['running']]);
        }
        for (const task of [running, unknown]) await rig.adapter.effects.DeleteTask(deleteOf(task), openContext());
        // Of what came before it, this daemon knows too little to keep them.
        for (const pod of [used, busy]) await stop(pod);
        assert.deepEqual(await Promise.all([used, busy].map(({ shim }) => isAlive(shim))), [false, false]);
        assert.deepEqual(await places(), []);
      });
    });

    describe('for a moment', () => {
      withRig({ keptShims: { shimsMax: 2, forMs: 300 } });

      it('are ended after it', async () => {
        const pod = await rig.startPod();
        await stop(pod);
        assert.equal(await isAlive(pod.shim), true);
        await eventually('its end', async () => !(await isAlive(pod.shim)));
        await eventually('its place is gone', async () => (await places()).length === 0);
      });
    });
  });
}
