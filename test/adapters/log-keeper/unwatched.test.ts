/** A log keeper on a node whose inotify instances are used up, in a user namespace with limits of its own. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { it } from 'node:test';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const script = 'echo 0 > /proc/sys/user/max_inotify_instances && exec "$@"';

it('C20: is started and met where the kernel can not tell that it is there', async (t) => {
  const child = join(import.meta.dirname, 'unwatched-child.ts');
  const command = [process.execPath, child, await tempDir(t)];
  const unshare = ['unshare', '--user', '--map-root-user', '--kill-child'];
  assert.equal(await runOk([...unshare, 'sh', '-c', script, 'sh', ...command]), 'met\n');
});
