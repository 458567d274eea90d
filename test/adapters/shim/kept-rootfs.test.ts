/** The root file system of a pod with users of its own outlives the deletion of a task; what is mounted is a set of names here. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { basename, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { keepingRootfs } from '../../../src/adapters/shim/tasks/kept-rootfs.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';
import { tempDir } from '../../support/temp-dir.ts';

const joined = { namespaces: [{ type: 'pid' }, { type: 'user', path: '/proc/1/ns/user' }] };

/** Deletes a task of a container with this spec by a program that unmounts `rootfs`; resolves with what is mounted then. */
const mountedAfter = async (
  t: TestContext,
  linux: object,
  before: readonly string[],
  fails = false,
): Promise<readonly string[]> => {
  const bundlePath = await tempDir(t);
  await writeFile(join(bundlePath, 'config.json'), JSON.stringify({ linux }));
  await mkdir(join(bundlePath, 'rootfs'));
  for (const name of before) await mkdir(join(bundlePath, name), { recursive: true });
  const mounted = new Set(before);
  const context = {
    files: { ...pooledFiles, isMountPoint: (path: string) => Promise.resolve(mounted.has(basename(path))) },
    mounts: {
      mount: ({ source, target }: { readonly source: string; readonly target: string }) => {
        assert.ok(mounted.has(basename(source)), `${source} is mounted`);
        mounted.add(basename(target));
        return Promise.resolve();
      },
      mountMapped: () => Promise.reject(new Error('nothing is mapped')),
      unmount: (path: string) => Promise.resolve(void mounted.delete(basename(path))),
    },
  };
  const deletion = keepingRootfs(context, bundlePath, () => {
    mounted.delete('rootfs');
    return fails ? Promise.reject(new Error('as planned')) : Promise.resolve();
  });
  await (fails ? assert.rejects(deletion, /as planned/) : deletion);
  return [...mounted];
};

test('it is there again, also where the deletion failed, or a daemon was killed in one before', async (t) => {
  assert.deepEqual(await mountedAfter(t, joined, ['rootfs']), ['rootfs']);
  assert.deepEqual(await mountedAfter(t, joined, ['rootfs'], true), ['rootfs']);
  assert.deepEqual(await mountedAfter(t, joined, ['kept-rootfs']), ['rootfs']);
  assert.deepEqual(await mountedAfter(t, joined, ['rootfs', 'kept-rootfs']), ['rootfs']);
});

test('one that the shim mounts goes, and so does that of the pause task, which makes the namespace', async (t) => {
  assert.deepEqual(await mountedAfter(t, { namespaces: [{ type: 'pid' }] }, ['rootfs']), []);
  assert.deepEqual(await mountedAfter(t, { namespaces: [{ type: 'user' }] }, ['rootfs']), []);
  assert.deepEqual(await mountedAfter(t, joined, []), []);
});
