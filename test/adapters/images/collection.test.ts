/** Collecting what no image needs: all of that, and nothing else, whatever goes on meanwhile. Needs root. */
import assert from 'node:assert/strict';
import { mkdir, readdir, utimes, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { before, describe, it } from 'node:test';
import type { ImageContent } from '../../../src/domain/model/image-content.ts';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { buildImage } from '../../support/images/build.ts';
import { startFilledRegistry, type TestRegistry } from '../../support/images/registry.ts';
import { startStore } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';
import { run, runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const nothing = { blobs: [], chainIds: [] };
const contentOf = ({ blobs, layers }: ImageContent) => ({ blobs, chainIds: layers.map(({ chainId }) => chainId) });

/** How much was taken out. */
const collected = async (
  { adapter }: Awaited<ReturnType<typeof startStore>>,
  needed: { readonly blobs: string[]; readonly chainIds: string[] },
  ageMs: number,
): Promise<{ readonly blobs: number; readonly layers: number } | null> => {
  const taken = await adapter.collectUnknown(needed, ageMs);
  return taken === null ? null : { blobs: taken.blobs.length, layers: taken.layers.length };
};

describe('collecting what no image needs', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let registry: TestRegistry;
  let reference = '';

  before(async () => {
    registry = await startFilledRegistry(owner);
    await registry.push('app', 'v1', buildImage([{ tar: tar([{ path: 'file', data: 'x' }]) }]));
    reference = `${registry.host}/app:v1`;
  });

  it('spares what is needed and what was just fetched, and takes what is not the store’s', async (t) => {
    const first = await startStore(t);
    const image = await first.pull(reference);
    assert.deepEqual(await collected(first, nothing, 0), { blobs: 0, layers: 0 });
    await first.stop();

    const second = await startStore(t, { root: first.root });
    const planted = ['blobs/sha256/not-a-digest', 'snapshots/odd', 'ingest/half.writing', 'ingest/half.arrivals'];
    // Without the second a later attempt would take what came in ranges for whole.
    const resumable = ['half.partial', 'half.pieces'];
    planted.push(...resumable.map((name) => `ingest/${name}`));
    for (const path of planted) await writeFile(join(first.root, 'images', path), 'x');
    const taken = await second.adapter.collectUnknown(contentOf(image), 0);
    assert.deepEqual(taken, { blobs: ['not-a-digest'], layers: ['odd'] });
    const { blobs, chainIds } = await second.adapter.listContent();
    assert.deepEqual([blobs.toSorted(), chainIds], [image.blobs.toSorted(), contentOf(image).chainIds]);
    assert.deepEqual((await readdir(join(first.root, 'images/ingest'))).toSorted(), resumable);

    assert.deepEqual(await collected(second, nothing, 3_600_000), { blobs: 0, layers: 0 });
    const [blob = ''] = await readdir(join(first.root, 'images/blobs/sha256'));
    await utimes(join(first.root, 'images/blobs/sha256', blob), new Date(0), new Date(0));
    assert.deepEqual(await collected(second, nothing, 3_600_000), { blobs: 1, layers: 0 });

    assert.deepEqual(await collected(second, nothing, 0), { blobs: image.blobs.length - 1, layers: 1 });
    await second.adapter.collectLeftovers();
    assert.deepEqual(await second.adapter.listContent(), nothing);
    assert.deepEqual(await readdir(join(first.root, 'images/trash')), []);
  });

  it('does nothing while something is pulled, and has pulls that come meanwhile wait', async (t) => {
    const store = await startStore(t);
    const pulling = store.pull(reference);
    assert.equal(await store.adapter.collectUnknown(nothing, 0), null);
    await pulling;
    await store.stop();

    const again = await startStore(t, { root: store.root });
    const collecting = again.adapter.collectUnknown(nothing, 0);
    const image = await again.pull(reference);
    assert.ok(await collecting);
    const { blobs, chainIds } = await again.adapter.listContent();
    assert.deepEqual([blobs.toSorted(), chainIds], [image.blobs.toSorted(), contentOf(image).chainIds]);
  });

  it('leaves a layer alone that is mounted, by whatever name', async (t) => {
    const first = await startStore(t);
    const layers = ['base', 'top'].map((path) => ({ tar: tar([{ path, data: path }]) }));
    await registry.push('app', 'v2', buildImage(layers));
    const image = await first.pull(`${registry.host}/app:v2`);
    const directory = await tempDir(t);
    const [upper, work, merged] = ['upper', 'work', 'merged'].map((name) => join(directory, name));
    assert.ok(upper && work && merged);
    for (const path of [upper, work, merged]) await mkdir(path);
    const lower = first.layerDirs(image).toReversed();
    await first.stop();
    const second = await startStore(t, { root: first.root });
    const snapshots = join(first.root, 'images/snapshots');
    // The second as shims do where the names of all layers are too many for one mount.
    const ways = [lower, lower.map((path) => relative(snapshots, path))];
    const left = [];
    for (const dirs of ways) {
      const options = `lowerdir=${dirs.join(':')},upperdir=${upper},workdir=${work}`;
      await runOk(['env', '-C', snapshots, 'mount', '-t', 'overlay', 'overlay', '-o', options, merged]);
      const umount = async (): Promise<void> => void (await run(['umount', merged]));
      onCleanup(t, umount);
      await collected(second, nothing, 0);
      await umount();
      left.push((await second.adapter.listContent()).chainIds.length);
    }
    assert.deepEqual(left, [2, 2]);
  });
});
