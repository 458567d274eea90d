/** What was given up while its shim was stopped, on real shims: ended when the shim goes on. */
import assert from 'node:assert/strict';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { dialShim } from '../../../src/adapters/shim/process/live-shim.ts';
import type { EffectOf } from '../../../src/domain/model/effects.ts';
import { withReason } from '../../support/failures.ts';
import { eventually } from '../../support/pods.ts';
import { deleteOf, openContext, openRig, processesNaming } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';

for (const { version, path } of await testShims()) {
  describe(`tasks of shim ${version}`, { timeout: 60_000 }, () => {
    it('that were given up while their shim was stopped are ended when it goes on, made too late or not deleted', async () => {
      const impatient = await openRig(path, { timings: { callMs: 300, launchMs: 3000, endMs: 300, binaryMs: 20_000 } });
      const { podSandboxId, shim: stopped } = await impatient.startPod();
      const tell = await dialShim(stopped, 1000);
      const statesDir = join(impatient.stateDir, 'runtime/k8s.io');
      try {
        const [late, held] = [
          await impatient.container(podSandboxId, { args: ['sleep', '1000'] }),
          await impatient.container(podSandboxId, { args: ['sleep', '1000'] }),
        ];
        await impatient.launch(held);
        process.kill(stopped.pid, 'SIGSTOP');
        try {
          await assert.rejects(impatient.launch(late), withReason('TimedOut'));
          for (const one of [late, held]) await impatient.adapter.effects.DeleteTask(deleteOf(one), openContext());
        } finally {
          process.kill(stopped.pid, 'SIGCONT');
        }
        const stateAt = ({ containerId }: EffectOf<'CreateTask'>) => tell.state({ id: containerId, execId: '' }, 5000);
        // It makes the task first, whose deadline begins when it reads of it.
        await eventually('the task is made', async () => (await readdir(statesDir)).includes(late.containerId));
        for (const one of [late, held])
          await eventually('the shim knows nothing of the task', () =>
            stateAt(one).then(
              () => false,
              () => true,
            ),
          );
        await eventually('its state is gone', async () => (await readdir(statesDir)).length === 0);
        // Whoever clears up ends a moment after what it cleared.
        await eventually('nothing runs for it', async () => (await processesNaming(late.containerId)).length === 0);
      } finally {
        tell.close();
        await impatient.close();
      }
    });
  });
}
