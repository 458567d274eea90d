/** What killed shims leave of temporary files goes while the daemon lives, and nothing goes that may be in use. */
import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { pino } from 'pino';
import { createTemporaryFiles } from '../../../src/adapters/shim/temporary-files.ts';
import { eventually } from '../../support/pods.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { openContext, openRig } from './rig/rig.ts';
import { testShims } from './rig/shims.ts';

const oldMs = 300;

test('what a shim left that died is removed when it is old, and so is that of one that died after it', async (t) => {
  const dir = await tempDir(t);
  const files = createTemporaryFiles(dir, oldMs, pino({ enabled: false }));
  t.after(files.close);
  const leave = (name: string): Promise<void> => writeFile(join(dir, name), 'SECRET=value');
  await leave('runc-process1');
  files.shimDied();
  await files.removeForgotten();
  assert.deepEqual(await readdir(dir), ['runc-process1'], 'it is young');
  await sleep(oldMs / 2);
  await leave('runc-process2');
  files.shimDied();
  await eventually('the first goes', async () => !(await readdir(dir)).includes('runc-process1'));
  await eventually('the second goes', async () => (await readdir(dir)).length === 0);
});

for (const { version, path } of await testShims()) {
  test(`shim ${version}: what it left is removed once its pod is rid of it`, { timeout: 60_000 }, async (t) => {
    const rig = await openRig(path, { timings: { launchMs: 2_000 } });
    t.after(() => rig.close());
    const { podSandboxId, bundlePath, shim } = await rig.startPod();
    const temporary = join(rig.stateDir, 'tmp');
    process.kill(shim.pid, 'SIGKILL');
    await rig.observed('ShimLost', (lost) => lost.podSandboxId === podSandboxId);
    await writeFile(join(temporary, 'runc-process1'), 'SECRET=value');
    const { handler, adapter } = rig;
    await adapter.effects.StopShim({ kind: 'StopShim', podSandboxId, handler, bundlePath, shim }, openContext());
    await eventually('it is gone', async () => (await readdir(temporary)).length === 0);
  });
}
