/** Shim, OCI runtime and log keeper together: what a container writes is in its log, over a restart of the daemon too. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { createRealLogKeeper } from './rig/log-keeper.ts';
import { deleteOf, openContext, openRig } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';

for (const { version, path } of await testShims()) {
  describe(`logs of shim ${version}`, { timeout: 60_000 }, () => {
    it('C16: are whole and in order though the daemon went and came', async () => {
      const keeper = createRealLogKeeper();
      const rig = await openRig(path, keeper);
      try {
        const pod = await rig.startPod();
        const logPath = join(rig.stateDir, 'logs', 'container', '0.log');
        const script =
          'for i in $(seq 3000); do echo $i; [ $((i % 300)) = 0 ] && sleep 0.05; done; echo last >&2; exit 6';
        const one = await rig.container(pod.podSandboxId, { args: ['sh', '-c', script] }, { log: { path: logPath } });
        await rig.launch(one);
        await rig.restart(() => sleep(200));
        const { podSandboxId, bundlePath, shim } = pod;
        const containerIds = [one.containerId];
        const { tasks } = await rig.adapter.effects.ReconnectShim(
          { kind: 'ReconnectShim', podSandboxId, shim, bundlePath, containerIds },
          openContext(),
        );
        const seen = tasks[0]?.exit ?? (await rig.observed('TaskExited')).exit;
        assert.equal(seen.exitStatus, 6);
        await rig.adapter.effects.DeleteTask(deleteOf(one), openContext());
        const records = (await readFile(logPath, 'utf8')).trimEnd().split('\n');
        const texts = (stream: string): string[] =>
          records
            .map((record) => record.split(' '))
            .filter(([, name]) => name === stream)
            .map((words) => words.slice(3).join(' '));
        assert.deepEqual(
          texts('stdout'),
          Array.from({ length: 3000 }, (_, index) => String(index + 1)),
        );
        assert.deepEqual(texts('stderr'), ['last']);
        assert.deepEqual(await keeper.current().list(), []);
      } finally {
        await rig.close();
      }
    });
  });
}
