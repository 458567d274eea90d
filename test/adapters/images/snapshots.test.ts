/** Containers' writable layers and looking into images, with overlayfs itself to compare with. Needs root. */
import assert from 'node:assert/strict';
import { chmod, lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { chainIdsOf } from '../../../src/adapters/images/chain-ids.ts';
import { imageFileReader } from '../../../src/adapters/inspect/image-files.ts';
import { createSnapshots } from '../../../src/adapters/images/snapshots.ts';
import type { Snapshots } from '../../../src/adapters/images/snapshots-port.ts';
import { createTrees } from '../../../src/adapters/images/trees/trees.ts';
import type { Mount } from '../../../src/domain/model/tasks.ts';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { sha256 } from '../../support/images/build.ts';
import { failureOf } from '../../support/images/store.ts';
import { type TarMember, tar } from '../../support/images/tar.ts';
import { startWorkshop, type Workshop } from '../../support/images/unpacking.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

describe('snapshots', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let workshop: Workshop;
  let snapshots: Snapshots;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'mounting needs root');
    workshop = await startWorkshop(owner);
    const trees = createTrees();
    onCleanup(owner, () => trees.close());
    snapshots = createSnapshots(workshop.layout, trees);
  });

  const imageOf = async (...layers: readonly (readonly TarMember[])[]): Promise<readonly string[]> => {
    const archives = layers.map(tar);
    await workshop.unpack(...archives);
    return chainIdsOf(archives.map((archive) => sha256(archive)));
  };

  const mounted = async <T>(mounts: readonly Mount[], work: (root: string) => Promise<T>): Promise<T> => {
    const target = await tempDir(owner);
    for (const { type, source, options } of mounts) {
      const words =
        type === 'bind' ? ['--bind', source, target] : ['-t', type, source, '-o', options.join(','), target];
      await runOk(['mount', ...words]);
    }
    try {
      return await work(target);
    } finally {
      await runOk(['umount', '-l', target]);
    }
  };

  it('gives a container the image with a layer of its own', async () => {
    const chainIds = await imageOf(
      [
        { path: './', flag: '5', mode: 0o711, uid: 3, gid: 4 },
        { path: 'kept', data: 'base' },
        { path: 'gone', data: 'base' },
        { path: 'dir/', flag: '5' },
        { path: 'dir/old', data: 'base' },
      ],
      [
        { path: 'changed', data: 'top' },
        { path: '.wh.gone' },
        { path: 'dir/.wh..wh..opq' },
        { path: 'dir/new', data: 'top' },
      ],
    );
    const mounts = await snapshots.prepare('container-1', chainIds);
    assert.equal(mounts[0]?.type, 'overlay');
    await mounted(mounts, async (root) => {
      assert.deepEqual((await readdir(root)).toSorted(), ['changed', 'dir', 'kept']);
      assert.deepEqual(await readdir(join(root, 'dir')), ['new']);
      const { mode, uid, gid } = await lstat(root);
      assert.deepEqual([mode & 0o7777, uid, gid], [0o711, 3, 4]);
      await writeFile(join(root, 'kept'), 'written');
    });
    assert.equal(await readFile(join(workshop.layout.containers, 'container-1/fs/kept'), 'utf8'), 'written');
    const [base = ''] = snapshots.layerDirs(chainIds);
    assert.equal(await readFile(join(base, 'kept'), 'utf8'), 'base');
    // Again: the same mounts, with what was written.
    assert.deepEqual(await snapshots.prepare('container-1', chainIds), mounts);
    await mounted(mounts, async (root) => assert.equal(await readFile(join(root, 'kept'), 'utf8'), 'written'));

    await snapshots.remove('container-1');
    await snapshots.remove('container-1');
    assert.deepEqual(await readdir(workshop.layout.containers), []);
  });

  it('gives a container without an image an empty root', async () => {
    const mounts = await snapshots.prepare('empty', []);
    await mounted(mounts, async (root) => {
      assert.deepEqual(await readdir(root), []);
      assert.equal((await lstat(root)).mode & 0o7777, 0o755);
    });
    await snapshots.remove('empty');
  });

  it('mounts 64 layers within the page that mount options have', async () => {
    const chainIds = await imageOf(...Array.from({ length: 64 }, (_, index) => [{ path: `file-${index}`, data: 'x' }]));
    const mounts = await snapshots.prepare('many', chainIds);
    const options = mounts[0]?.options.join(',') ?? '';
    assert.ok(options.length < 4096, `${options.length} bytes of options`);
    await mounted(mounts, async (root) => assert.equal((await readdir(root)).length, 64));
    await snapshots.remove('many');
  });

  it('shows an image to those who may not write to it, with nothing of how its layers are made', async () => {
    for (const layers of [
      [[{ path: 'file', data: 'x' }, { path: '.wh.gone' }]],
      [[{ path: 'gone', data: 'x' }], [{ path: 'file', data: 'x' }, { path: '.wh.gone' }]],
    ]) {
      const view = await snapshots.view(await imageOf(...layers));
      assert.ok(view);
      await mounted([view], async (root) => {
        assert.deepEqual(await readdir(root), ['file']);
        await assert.rejects(writeFile(join(root, 'new'), ''), { code: 'EROFS' });
      });
    }
    assert.equal(await snapshots.view([]), null);
    const tooMany = await imageOf(...Array.from({ length: 90 }, (_, index) => [{ path: `file-${index}`, data: 'x' }]));
    assert.match((await failureOf(snapshots.view(tooMany))).message, /90 layers, more than one mount can hold/);
    assert.match((await failureOf(snapshots.view([`sha256:${'0'.repeat(64)}`]))).message, /pull the image again/);
  });

  it('says which layer is missing', async () => {
    const failure = await failureOf(snapshots.prepare('c', [`sha256:${'0'.repeat(64)}`]));
    assert.equal(failure.reason, 'HostFailed');
    assert.match(failure.message, /not unpacked at .*pull the image again/);
  });

  it('refuses ids and digests that are paths', async () => {
    for (const id of ['../x', '', '.', '..', 'a/b', '/etc', 'x'.repeat(200)]) {
      await failureOf(snapshots.prepare(id, []));
      await failureOf(snapshots.remove(id));
    }
    assert.throws(() => snapshots.layerDirs(['sha256:../../../../etc']), /not a sha256 digest/);
  });

  it('removes large and awkward layers without following links', async () => {
    await snapshots.prepare('large', []);
    const upper = join(workshop.layout.containers, 'large/fs');
    const outside = await tempDir(owner);
    await writeFile(join(outside, 'canary'), 'untouched');
    await symlink(outside, join(upper, 'link'));
    for (let index = 0; index < 20; index += 1) {
      await mkdir(join(upper, `d${index}`));
      for (let file = 0; file < 30; file += 1) await writeFile(join(upper, `d${index}/f${file}`), 'x');
      await symlink(outside, join(upper, `d${index}/link`));
    }
    await chmod(join(upper, 'd3'), 0);
    await snapshots.remove('large');
    assert.deepEqual(await readdir(workshop.layout.containers), []);
    assert.equal(await readFile(join(outside, 'canary'), 'utf8'), 'untouched');
  });

  it('leaves what others keep beside a container’s layer', async () => {
    await snapshots.prepare('shared', []);
    await mkdir(join(workshop.layout.containers, 'shared/volumes'));
    await snapshots.remove('shared');
    assert.deepEqual(await readdir(join(workshop.layout.containers, 'shared')), ['volumes']);
  });
});

describe('files of an image', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let layers: readonly string[];

  before(async () => {
    const workshop = await startWorkshop(owner);
    layers = await workshop.unpack(
      tar([
        { path: 'etc/passwd', data: 'base' },
        { path: 'etc/group', data: 'base' },
        { path: 'etc/old', data: 'base' },
        { path: 'hidden/file', data: 'base' },
        { path: 'opaque/file', data: 'base' },
        { path: 'usr/lib/file', data: 'base' },
        { path: 'lib', flag: '2', linkPath: 'usr/lib' },
        { path: 'shadowed/file', data: 'base' },
      ]),
      tar([
        { path: 'etc/group', data: 'top' },
        { path: 'etc/.wh.old' },
        { path: '.wh.hidden' },
        { path: 'opaque/.wh..wh..opq' },
        { path: 'shadowed', data: 'a file' },
        { path: 'up', flag: '2', linkPath: '../../../../../../etc/passwd' },
        { path: 'absolute', flag: '2', linkPath: '/etc/group' },
        { path: 'host', flag: '2', linkPath: '/proc/1/environ' },
        { path: 'loop', flag: '2', linkPath: 'loop' },
        { path: 'a/b/relative', flag: '2', linkPath: '../../lib/../lib/file' },
        { path: 'usr/lib/added', data: 'top' },
        { path: 'fifo', flag: '6' },
        { path: 'device', flag: '3', major: 1, minor: 5 },
        { path: 'big', data: 'x'.repeat(2000) },
      ]),
    );
  });

  const read = async (path: string, maxBytes = 1000): Promise<string | null> =>
    (await imageFileReader(() => layers)([], path, maxBytes))?.toString() ?? null;

  it('are read as overlayfs would show them', async () => {
    assert.equal(await read('/etc/passwd'), 'base');
    assert.equal(await read('/etc/group'), 'top');
    assert.equal(await read('/etc/old'), null);
    assert.equal(await read('/hidden/file'), null);
    assert.equal(await read('/opaque/file'), null);
    assert.equal(await read('/shadowed/file'), null);
    assert.equal(await read('/shadowed'), 'a file');
    assert.equal(await read('/nothing/at/all'), null);
    assert.equal(await read('etc//./passwd'), 'base');
  });

  it('are found through links inside the image, never outside', async () => {
    assert.equal(await read('/lib/file'), 'base');
    assert.equal(await read('/lib/added'), 'top');
    assert.equal(await read('/up'), 'base');
    assert.equal(await read('/absolute'), 'top');
    assert.equal(await read('/host'), null);
    assert.equal(await read('/a/b/relative'), 'base');
    assert.equal(await read('/../../etc/passwd'), 'base');
    assert.equal(await read('/loop'), null);
  });

  it('are refused when they are large, and only files are files', async () => {
    const failure = await failureOf(read('/big'));
    assert.equal(failure.reason, 'ImageInvalid');
    assert.match(failure.message, /more than the 1000 that are read/);
    assert.equal((await read('/big', 2000))?.length, 2000);
    for (const path of ['/fifo', '/device', '/etc']) assert.equal(await read(path), null);
  });
});
