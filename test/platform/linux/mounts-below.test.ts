/** What is mounted in a tree, told by the tree: real mounts of every kind that has to be found before anything is removed. */
import assert from 'node:assert/strict';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { mountedAt, mountsBelow } from '../../../src/platform/linux/mounts-below.ts';
import { mountCalls, readMountPoints } from '../../../src/platform/linux/mounts.ts';
import { detachMount, mount } from '../../../src/platform/linux/syscalls.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';

const timeout = 20_000;
const BIND = mountCalls(['bind'])[0]?.flags ?? 0;

before(requireRoot);

const setUp = async (t: TestContext) => {
  const dir = await tempDir(t);
  const [tree, inner, file] = [join(dir, 'tree'), join(dir, 'tree/a/inner'), join(dir, 'tree/a/file')];
  await mkdir(inner, { recursive: true });
  await mkdir(join(dir, 'other'));
  await writeFile(file, '');
  onCleanup(t, async () => {
    for (const point of (await readMountPoints()).toReversed()) if (point.startsWith(`${dir}/`)) detachMount(point);
  });
  return { dir, tree, inner, file };
};

describe('mountsBelow', () => {
  it('finds file systems, directories of the same one, and files, and does not go into them', {
    timeout,
  }, async (t) => {
    const { dir, tree, inner, file } = await setUp(t);
    assert.deepEqual(await mountsBelow([tree, join(dir, 'missing'), file]), []);
    mount(join(dir, 'other'), inner, 'none', BIND, '');
    await writeFile(join(dir, 'source'), '');
    mount(join(dir, 'source'), file, 'none', BIND, '');
    assert.deepEqual((await mountsBelow([tree])).toSorted(), [file, inner]);
    assert.deepEqual([mountedAt(file), mountedAt(tree), mountedAt(join(file, 'x'))], ['mount', 'no mount', 'missing']);
    mount('tmpfs', tree, 'tmpfs', 0, '');
    assert.deepEqual(await mountsBelow([tree]), [tree]);
    detachMount(tree);
    assert.deepEqual((await mountsBelow([tree])).toSorted(), [file, inner]);
  });

  it('asks the mount table of a tree that is not small, last mounted first', { timeout }, async (t) => {
    const { dir, tree, inner } = await setUp(t);
    for (let index = 0; index < 300; index += 1) await writeFile(join(tree, String(index)), '');
    mount('tmpfs', inner, 'tmpfs', 0, '');
    await mkdir(join(inner, 'deeper'));
    mount('tmpfs', join(inner, 'deeper'), 'tmpfs', 0, '');
    assert.deepEqual(await mountsBelow([tree, join(dir, 'other')]), [join(inner, 'deeper'), inner]);
  });
});
