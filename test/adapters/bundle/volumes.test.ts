/** How many image volumes there may be, how they are copied, and what they leave free. Needs root. */
import assert from 'node:assert/strict';
import { link, mkdir, readdir, readFile, readlink, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { createBundleEffects } from '../../../src/adapters/bundle/container-files.ts';
import { fillImageVolume } from '../../../src/adapters/bundle/image-volume.ts';
import { imageFileReader } from '../../../src/adapters/inspect/image-files.ts';
import type { Bundle } from '../../../src/domain/model/tasks.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { pooledFiles } from '../../../src/platform/linux/files.ts';
import { pathIn } from '../../../src/platform/linux/layer-tree.ts';
import { makeNode, NodeType, readXattr, writeXattr } from '../../../src/platform/linux/syscalls.ts';
import { requireRoot } from '../../support/netns.ts';
import { tempDir } from '../../support/temp-dir.ts';

before(requireRoot);

const failedWith = (reason: string) => (error: unknown) =>
  error instanceof FailureError && error.failure.reason === reason;

const spec: Bundle['spec'] = {
  ociVersion: '1.0.2',
  process: {
    user: { uid: 0, gid: 0 },
    args: ['sh'],
    env: [],
    cwd: '/',
    capabilities: { bounding: [], effective: [], permitted: [], inheritable: [], ambient: [] },
  },
  root: { path: 'rootfs' },
  mounts: [],
  linux: { namespaces: [], cgroupsPath: '/x', resources: {} },
};

describe('volumes of images', () => {
  /** PrepareContainer for images that have the directories of a layer as volumes; the layer is made here. */
  const preparing = async (t: TestContext, directories: readonly string[], files: number, reservedBytes = 0) => {
    const dir = await tempDir(t);
    const layer = join(dir, 'layer');
    for (const directory of directories) {
      await mkdir(join(layer, directory), { recursive: true });
      for (let file = 0; file < files; file += 1) await writeFile(join(layer, directory, `file${file}`), 'x');
    }
    const effects = createBundleEffects({
      writeBundle: () => Promise.resolve(),
      snapshots: {
        prepare: () => Promise.resolve([]),
        remove: () => Promise.resolve(),
        view: () => Promise.resolve(null),
        layerDirs: () => [layer],
      },
      unpackCheckpoint: () => Promise.resolve(),
      spawner: {
        mount: () => Promise.resolve(),
        mountMapped: () => Promise.resolve(),
        unmount: () => Promise.resolve(),
      },
      relabel: () => Promise.resolve(),
      roots: [dir],
      files: pooledFiles,
      reservedBytes,
    });
    const volumesOf = (id: string): string => join(dir, 'containers', id, 'volumes');
    const prepare = (id: string, { signal } = new AbortController()): Promise<unknown> =>
      effects.PrepareContainer(
        {
          kind: 'PrepareContainer',
          containerId: id,
          bundle: { id, path: join(dir, 'bundles', id), spec },
          chainIds: ['sha256:1'],
          imageVolumes: directories.map((directory, index) => ({
            imagePath: `/${directory}`,
            hostPath: join(volumesOf(id), String(index)),
          })),
          imageMounts: [],
        },
        { signal, attach: () => undefined },
      );
    return { prepare, volumesOf };
  };

  it('are bounded in number', async (t) => {
    const names = Array.from({ length: 129 }, (_, index) => `v${index}`);
    const { prepare, volumesOf } = await preparing(t, names, 0);
    await assert.rejects(prepare('a'), failedWith('ImageInvalid'));
    await assert.rejects(stat(volumesOf('a')), { code: 'ENOENT' });
  });

  it('have what the image has there under names that are no UTF-8 too', async (t) => {
    const dir = await tempDir(t);
    const layer = join(dir, 'layer');
    const data = join(layer, 'données');
    const at = (directory: string, name: string): Buffer => pathIn(Buffer.from(directory), name);
    await mkdir(at(data, 'd\xe9'), { recursive: true });
    const inner = pathIn(at(data, 'd\xe9'), 'caf\xe9');
    await writeFile(inner, 'x');
    await writeXattr(inner, 'user.note', Buffer.from('y'));
    await link(inner, at(data, 'hard\xff'));
    await symlink(Buffer.from('d\xe9/caf\xe9', 'latin1'), join(data, 'link'));
    await makeNode(at(data, 'fifo\xfe'), NodeType.fifo | 0o600);
    const volume = join(dir, 'volume');
    await fillImageVolume([layer], '/données', volume, () => Promise.resolve());
    const names = (await readdir(volume, 'latin1')).toSorted();
    assert.deepEqual(names, ['d\xe9', 'fifo\xfe', 'hard\xff', 'link']);
    assert.equal(await readlink(join(volume, 'link'), 'latin1'), 'd\xe9/caf\xe9');
    assert.equal(await readFile(join(volume, 'link'), 'utf8'), 'x');
    const copy = pathIn(at(volume, 'd\xe9'), 'caf\xe9');
    assert.equal(Buffer.from((await readXattr(copy, 'user.note')) ?? []).toString(), 'y');
    assert.equal((await stat(copy)).ino, (await stat(at(volume, 'hard\xff'))).ino);
    assert.equal((await imageFileReader(() => [layer])([], 'données/link', 10))?.toString(), 'x');
  });

  it('are copied one after the other, whatever containers they are of', async (t) => {
    const { prepare, volumesOf } = await preparing(t, ['one', 'two', 'three'], 200);
    const ids = ['a', 'b'];
    let most = 0;
    const prepared = new AbortController();
    const watching = (async () => {
      while (!prepared.signal.aborted) {
        const names = await Promise.all(ids.map((id) => readdir(volumesOf(id)).catch((): string[] => [])));
        most = Math.max(most, names.flat().filter((name) => name.startsWith('.unfinished-')).length);
      }
    })();
    await Promise.all(ids.map((id) => prepare(id)));
    prepared.abort();
    await watching;
    assert.equal(most, 1);
    for (const id of ids)
      for (const volume of ['0', '1', '2']) assert.equal((await readdir(join(volumesOf(id), volume))).length, 200);
  });

  it('leave free what is reserved, and are not copied on for a creation that was given up', async (t) => {
    const full = await preparing(t, ['data'], 3, Number.MAX_SAFE_INTEGER);
    await assert.rejects(full.prepare('a'), failedWith('DiskFull'));
    await assert.rejects(stat(join(full.volumesOf('a'), '0')), { code: 'ENOENT' });
    const { prepare, volumesOf } = await preparing(t, ['data'], 3);
    const abort = new AbortController();
    abort.abort(new Error('given up'));
    await assert.rejects(prepare('a', abort), /given up/);
    await assert.rejects(stat(join(volumesOf('a'), '0')), { code: 'ENOENT' });
  });
});
