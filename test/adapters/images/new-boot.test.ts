/** A node that ends before its disk has what was pulled: nothing that was lost is taken for whole. Needs root. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import type { ImageContent } from '../../../src/domain/model/image-content.ts';
import { blobPath, imageLayout } from '../../../src/adapters/images/layout.ts';
import { lookAtContent } from '../../../src/adapters/images/on-disk.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { buildImage } from '../../support/images/build.ts';
import { startFilledRegistry, type TestRegistry } from '../../support/images/registry.ts';
import { contextOf, failureOf, startStore, type TestStore } from '../../support/images/store.ts';
import { tar } from '../../support/images/tar.ts';

const FILES = 20;
const content = (layer: number, file: number): string => `${layer}/${file} `.repeat(500);

describe('a node that ended before its disk had what was pulled', () => {
  const owner = cleanupAfterAll();
  let registry: TestRegistry;
  let reference: string;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    registry = await startFilledRegistry(owner);
    const layers = [0, 1].map((layer) => ({
      tar: tar(
        Array.from({ length: FILES }, (_, file) => ({ path: `d${layer}/f${file}`, data: content(layer, file) })),
      ),
    }));
    await registry.push('boot', 'v1', buildImage(layers));
    reference = `${registry.host}/boot:v1`;
  });

  const sync = ({ adapter }: TestStore, { layers, blobs }: ImageContent): Promise<unknown> =>
    adapter.effects.SyncImage({ kind: 'SyncImage', layers, blobs }, contextOf());

  const pulled = async (t: TestContext): Promise<{ store: TestStore; image: ImageContent }> => {
    const store = await startStore(t, { bootId: 'first' });
    const effect = { kind: 'PullImage', reference, credentials: null } as const;
    const { image, unsynced } = await store.adapter.effects.PullImage(effect, contextOf());
    assert.equal(unsynced, true);
    return { store, image };
  };

  const startAgain = async (t: TestContext, store: TestStore, bootId: string): Promise<TestStore> => {
    await store.stop();
    return await startStore(t, { root: store.root, bootId });
  };

  const blobOf = (store: TestStore, image: ImageContent, layer: number): string =>
    blobPath(imageLayout(store.root), image.layers[layer]?.digest ?? '');

  /** What a lost write leaves: names without content, content without an end, nothing at all. */
  const loseLayers = async (store: TestStore, image: ImageContent): Promise<void> => {
    const [bottom = '', top = ''] = store.layerDirs(image);
    await truncate(join(bottom, 'd0/f3'), 0);
    await rm(join(top, 'd1/f4'));
    await writeFile(join(top, 'd1/f5'), 'not what it was');
  };

  const checkWhole = async (store: TestStore, image: ImageContent): Promise<void> => {
    for (const [layer, directory] of store.layerDirs(image).entries()) {
      assert.equal((await readdir(join(directory, `d${layer}`))).length, FILES);
      for (let file = 0; file < FILES; file += 1)
        assert.equal(await readFile(join(directory, `d${layer}/f${file}`), 'utf8'), content(layer, file));
    }
  };

  it('fetches anew what its blob no longer is, and says so to whoever counts on it', async (t) => {
    const { store, image } = await pulled(t);
    await loseLayers(store, image);
    await truncate(blobOf(store, image, 0), 100);
    await rm(blobOf(store, image, 1));
    const again = await startAgain(t, store, 'second');
    assert.equal((await failureOf(sync(again, image))).reason, 'ImageInvalid');
    assert.deepEqual(await again.pull(reference), image);
    await checkWhole(again, image);
    await sync(again, image);
    assert.equal((await lookAtContent(imageLayout(again.root), image)).unmarked.length, 0);
  });

  it('leaves nothing of a layer above one that cannot be unpacked', async (t) => {
    const { store, image } = await pulled(t);
    const again = await startAgain(t, store, 'second');
    const [bottom, ...above] = image.layers;
    assert.ok(bottom !== undefined && above.length > 0);
    const layers = [{ ...bottom, diffId: `sha256:${'0'.repeat(64)}` }, ...above];
    assert.match((await failureOf(sync(again, { ...image, layers }))).message, /the image's config names/);
    const names = await readdir(imageLayout(store.root).unpack);
    assert.deepEqual(
      names.filter((name) => !name.startsWith('process-')),
      [],
    );
    // It is as it should be again.
    await sync(again, image);
    await checkWhole(again, image);
  });

  it('keeps what was synced, over any number of boots', async (t) => {
    const { store, image } = await pulled(t);
    await sync(store, image);
    const effect = { kind: 'PullImage', reference, credentials: null } as const;
    assert.deepEqual(await store.adapter.effects.PullImage(effect, contextOf()), { image });
    const again = await startAgain(t, await startAgain(t, store, 'second'), 'third');
    assert.deepEqual(new Set((await again.adapter.listContent()).blobs), new Set(image.blobs));
    await checkWhole(again, image);
  });

  it('keeps all of a store of a time when everything was synced before it got its name', async (t) => {
    const { store, image } = await pulled(t);
    await rm(imageLayout(store.root).boot);
    const again = await startAgain(t, store, 'second');
    await checkWhole(await startAgain(t, again, 'third'), image);
  });

  it('doubts what is not marked where a directory lies in place of the note of the last boot', async (t) => {
    const { store, image } = await pulled(t);
    const { boot } = imageLayout(store.root);
    await rm(boot);
    await mkdir(join(boot, 'deeper'), { recursive: true });
    const again = await startAgain(t, store, 'first');
    assert.deepEqual(await again.adapter.listContent(), { blobs: [], chainIds: [] });
    await sync(again, image);
    await checkWhole(again, image);
  });

  it('has no layer whose sync did not end, and unpacks it anew from its blob', async (t) => {
    const { store, image } = await pulled(t);
    await loseLayers(store, image);
    const again = await startAgain(t, store, 'second');
    assert.deepEqual(await again.adapter.listContent(), { blobs: [], chainIds: [] });
    const chainIds = image.layers.map(({ chainId }) => chainId);
    const refused = await failureOf(again.adapter.snapshots.prepare('c1', chainIds));
    assert.equal(refused.reason, 'HostFailed');
    // The last test here: nobody is asked for anything.
    await registry.stop();
    await sync(again, image);
    await checkWhole(again, image);
    assert.deepEqual(new Set((await again.adapter.listContent()).blobs), new Set(image.blobs));
  });
});
