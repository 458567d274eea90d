/** The daemon's own files, made and removed at a place on a disk and at one in memory: the same, but for who waits. */
import assert from 'node:assert/strict';
import { constants } from 'node:fs';
import { mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { callsWithin } from '../../../src/platform/linux/file-calls.ts';
import { createFiles, type Files, unfinishedName } from '../../../src/platform/linux/files.ts';
import { closeDescriptor, NodeType } from '../../../src/platform/linux/syscalls.ts';
import { tempDir, tempDirInMemory } from '../../support/temp-dir.ts';

const PERMISSIONS = 0o7777;
const modeOf = async (path: string): Promise<number> => (await stat(path)).mode & PERMISSIONS;

const places: readonly (readonly [string, (t: TestContext) => Promise<string>])[] = [
  ['on a disk', tempDir],
  ['in memory', tempDirInMemory],
];

const opened = async (t: TestContext, place: (t: TestContext) => Promise<string>) => {
  const dir = await place(t);
  return { dir, files: createFiles(await callsWithin(dir)) };
};

/** Whether the loop has turned before the work was done. */
const turned = async (work: () => Promise<unknown>): Promise<boolean> => {
  let hasTurned = false;
  const turn = setImmediate(() => {
    hasTurned = true;
  });
  await work();
  clearImmediate(turn);
  return hasTurned;
};

for (const [where, place] of places)
  describe(`files ${where}`, () => {
    it('are written whole, with their mode, and never through a link', async (t) => {
      const { dir, files } = await opened(t, place);
      const path = join(dir, 'file');
      const umask = process.umask(0o077);
      t.after(() => process.umask(umask));
      for (const content of ['longer than the next', Buffer.from('next')])
        await files.writeFileWhole(path, content, 0o644);
      assert.equal(await readFile(path, 'utf8'), 'next');
      assert.equal(await modeOf(path), 0o644);
      await symlink(path, unfinishedName(path));
      await assert.rejects(files.writeFileWhole(path, 'through a link', 0o644), { code: 'ELOOP' });
      assert.equal(await readFile(path, 'utf8'), 'next');
      await assert.rejects(files.writeFileWhole(join(dir, 'no', 'file'), '', 0o600), { code: 'ENOENT' });
    });

    it('are read whole, up to a size, and never through a link', async (t) => {
      const { dir, files } = await opened(t, place);
      const path = join(dir, 'file');
      const { content } = files.callsAt(path);
      await writeFile(path, 'seven b');
      assert.equal((await content(path, 7))?.toString(), 'seven b');
      assert.equal(await content(path, 6), null);
      await symlink(path, join(dir, 'link'));
      await assert.rejects(content(join(dir, 'link'), 7), { code: 'ELOOP' });
      await assert.rejects(content(join(dir, 'none'), 7), { code: 'ENOENT' });
    });

    it('are in directories for one pod alone, whatever these were before', async (t) => {
      const { dir, files } = await opened(t, place);
      const path = join(dir, 'pods', 'one');
      await files.makeDirectoryOfPod(path);
      assert.deepEqual([await modeOf(path), await modeOf(join(dir, 'pods'))], [0o700, 0o711]);
      await files.makeDirectoryOfPod(path, 4711);
      assert.deepEqual([await modeOf(path), (await stat(path)).gid], [0o710, 4711]);
      await files.makeDirectory(path);
      assert.equal(await modeOf(path), 0o710, 'one that is there is left as it is');
      assert.deepEqual([await files.isMountPoint(path), await files.isMountPoint('/proc')], [false, true]);
    });

    it('are removed with their directories, and what is not there is removed', async (t) => {
      const { dir, files } = await opened(t, place);
      const tree = join(dir, 'tree');
      await mkdir(join(tree, 'a/b'), { recursive: true });
      await writeFile(join(dir, 'outside'), 'stays');
      await symlink(join(dir, 'outside'), join(tree, 'a/b/link'));
      await files.callsAt(tree).mknod(join(tree, 'fifo'), NodeType.fifo | 0o600);
      assert.deepEqual([await files.isThere(tree), (await files.namesIn(tree)).toSorted()], [true, ['a', 'fifo']]);
      await files.removeWhole(tree);
      assert.deepEqual([await files.isThere(tree), await files.namesIn(tree)], [false, []]);
      await files.removeWhole(tree);
      await files.removeWhole(join(dir, 'outside'));
      // More than is removed on the calling thread.
      await mkdir(tree);
      await Promise.all(Array.from({ length: 300 }, (_, number) => writeFile(join(tree, String(number)), '')));
      await files.removeWhole(tree);
      assert.deepEqual(await readdir(dir), []);
    });

    it('tell of a FIFO without anybody at its other side at once', async (t) => {
      const { dir, files } = await opened(t, place);
      const path = join(dir, 'fifo');
      const { mknod, open } = files.callsAt(path);
      await mknod(path, NodeType.fifo | 0o600);
      await assert.rejects(mknod(path, NodeType.fifo | 0o600), { code: 'EEXIST', syscall: 'mknod' });
      closeDescriptor(await open(path, constants.O_RDONLY | constants.O_NONBLOCK));
      await assert.rejects(open(path, constants.O_WRONLY | constants.O_NONBLOCK), { code: 'ENXIO' });
    });
  });

describe('files in memory', () => {
  const all = async (files: Files, dir: string): Promise<void> => {
    await files.makeDirectoryOfPod(join(dir, 'pods/one'));
    await files.writeFileWhole(join(dir, 'pods/one/file'), 'content', 0o600);
    await files.callsAt(dir).unlink(join(dir, 'pods/one/file'));
  };

  it('take no turn of the loop, and those beside them do', async (t) => {
    const { dir, files } = await opened(t, tempDirInMemory);
    assert.equal(await turned(() => all(files, dir)), false);
    const beside = await tempDir(t);
    assert.equal(await turned(() => all(files, beside)), true);
  });

  it('leave removing directories to others, for it may take long', async (t) => {
    const { dir, files } = await opened(t, tempDirInMemory);
    await mkdir(join(dir, 'rootfs'));
    assert.equal(await turned(() => files.callsAt(dir).rmdir(join(dir, 'rootfs'))), true);
  });
});
