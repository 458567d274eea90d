/** What keeps pods from users of their own is found and named; what will be made later is no obstacle. */
import assert from 'node:assert/strict';
import { chmod, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkUserNamespaces } from '../../../src/adapters/doctor/user-namespaces.ts';
import { obstacleToUserNamespaces } from '../../../src/platform/linux/mapped-ids.ts';
import { tempDir } from '../../support/temp-dir.ts';

test('state has to be passable on the whole way, and root on a file system that can be mapped', async (t) => {
  const dir = await tempDir(t);
  const [rootDir, stateDir] = [join(dir, 'root/not/yet'), join(dir, 'state/deep')];
  await mkdir(stateDir, { recursive: true, mode: 0o711 });
  const places = { rootDir, stateDir };
  assert.equal((await obstacleToUserNamespaces(places))?.remedy, `chmod o+x ${dir}`);
  assert.deepEqual(await checkUserNamespaces(places), {
    check: 'user namespaces',
    status: 'warning',
    detail: `pods with hostUsers: false are refused, because root of such a pod, who is somebody else here, cannot pass ${dir}`,
    remedy: `If you want them, chmod o+x ${dir}.`,
  });
  await chmod(dir, 0o711);
  assert.equal(await obstacleToUserNamespaces(places), null);
  assert.equal(await obstacleToUserNamespaces({ rootDir, stateDir: join(stateDir, 'not/yet') }), null);
  await chmod(join(dir, 'state'), 0o700);
  assert.equal((await obstacleToUserNamespaces(places))?.remedy, `chmod o+x ${join(dir, 'state')}`);
  assert.match(
    (await obstacleToUserNamespaces({ ...places, rootDir: '/proc' }))?.what ?? '',
    /^\/proc is on a file system/,
  );
});
