/** Checking that blobs are what they were: damage is found and mended by the next pull, at a bounded rate. Needs root. */
import assert from 'node:assert/strict';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as delay } from 'node:timers/promises';
import { startImageUpkeep } from '../../../src/daemon/image-upkeep.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { eventually } from '../../support/pods.ts';
import { layerBytes, layerDigest, serving } from '../../support/images/registry-under-test.ts';
import { startStore } from '../../support/images/store.ts';

const MIB = 1024 * 1024;
const signal = new AbortController().signal;
const blobOf = (root: string, digest: string): string =>
  join(root, 'images/blobs/sha256', digest.replace('sha256:', ''));

describe('the content of images', { timeout: 60_000 }, () => {
  it('is checked; what is damaged goes, and comes back with the next pull', async (t) => {
    const server = await serving(t);
    const store = await startStore(t);
    const image = await store.pull(`${server.host}/app:v1`);
    assert.deepEqual(await store.adapter.checkContent(100 * MIB, signal), []);

    const damaged = [layerDigest, image.id];
    for (const digest of damaged) {
      const bytes = await readFile(blobOf(store.root, digest));
      bytes.writeUInt8(bytes.readUInt8(5) ^ 1, 5);
      await writeFile(blobOf(store.root, digest), bytes);
    }
    assert.deepEqual(new Set(await store.adapter.checkContent(100 * MIB, signal)), new Set(damaged));
    assert.deepEqual(await store.adapter.checkContent(100 * MIB, signal), []);
    assert.equal((await store.adapter.listContent()).blobs.length, image.blobs.length - damaged.length);

    assert.deepEqual(await store.pull(`${server.host}/app:v1`), image);
    assert.ok((await readFile(blobOf(store.root, layerDigest))).equals(layerBytes));
    assert.deepEqual(await store.adapter.checkContent(100 * MIB, signal), []);
  });

  it('is not believed by a pull that finds a manifest or config damaged', async (t) => {
    const server = await serving(t);
    const store = await startStore(t);
    const image = await store.pull(`${server.host}/app:v1`);
    for (const digest of [image.manifestDigest, image.id]) await writeFile(blobOf(store.root, digest), '{}');
    assert.deepEqual(await store.pull(`${server.host}/app:v1`), image);
    assert.deepEqual(await store.adapter.checkContent(100 * MIB, signal), []);
  });

  it('is not blamed on an image whose layer the disk has damaged before it was unpacked: that is fetched anew', async (t) => {
    const server = await serving(t);
    const store = await startStore(t);
    const image = await store.pull(`${server.host}/app:v1`);
    const bytes = await readFile(blobOf(store.root, layerDigest));
    await writeFile(blobOf(store.root, layerDigest), bytes.fill(7, 20, 60));
    for (const directory of store.layerDirs(image)) await rm(dirname(directory), { recursive: true });
    server.requests.length = 0;
    assert.deepEqual(await store.pull(`${server.host}/app:v1`), image);
    assert.ok((await readFile(blobOf(store.root, layerDigest))).equals(layerBytes));
    assert.equal(server.requests.filter(({ path }) => path.endsWith(layerDigest)).length, 1);
  });

  it('is read no faster than allowed, and not at all once that is called off', async (t) => {
    const server = await serving(t);
    const store = await startStore(t);
    await store.pull(`${server.host}/app:v1`);
    const beganMs = performance.now();
    await store.adapter.checkContent(layerBytes.length, signal);
    assert.ok(performance.now() - beganMs > 900, 'as many bytes a second as there are');
    const abort = new AbortController();
    const slow = store.adapter.checkContent(1, abort.signal);
    await delay(50);
    abort.abort(new Error('enough'));
    await assert.rejects(slow);
  });

  it('is checked from time to time: what is altered or missing is told with the image’s name, and journaled', async (t) => {
    const server = await serving(t);
    const store = await startStore(t);
    const image = await store.pull(`${server.host}/app:v1`);
    const [altered = '', gone = ''] = image.blobs.filter((digest) => digest !== image.id);
    const layer = image.layers[0]?.chainId ?? '';
    await writeFile(blobOf(store.root, altered), '{}');
    await rm(blobOf(store.root, image.id));
    await rm(join(store.root, 'images/snapshots', layer.slice('sha256:'.length, 'sha256:'.length + 16), 'fs'), {
      recursive: true,
    });
    assert.notEqual(gone, altered);
    const told: string[] = [];
    const observed: unknown[] = [];
    const held = { id: image.id, seq: 1, content: image, pulledAtNs: '1', removing: false, undoFailures: 0 };
    const upkeep = startImageUpkeep(
      {
        images: {
          collectUnknown: () => Promise.resolve(null),
          collectLeftovers: () => Promise.resolve(),
          checkContent: store.adapter.checkContent,
          listContent: store.adapter.listContent,
        },
        state: () => ({ images: new Map([[image.id, held]]), containers: new Map() }),
        checkIntervalMs: 5,
        checkBytesPerSecond: 100 * MIB,
        log: { info: () => undefined },
        observe: async (observation) => void observed.push(observation),
        report: (message) => void told.push(message),
      },
      () => false,
    );
    onCleanup(t, upkeep.close);
    upkeep.served();
    await eventually('the findings', () => Promise.resolve(observed.length >= 3));
    upkeep.close();
    assert.deepEqual(observed.slice(0, 3), [
      { kind: 'ContentDamaged', imageId: image.id, damaged: { kind: 'blob', digest: altered, problem: 'altered' } },
      { kind: 'ContentDamaged', imageId: image.id, damaged: { kind: 'blob', digest: image.id, problem: 'missing' } },
      { kind: 'ContentDamaged', imageId: image.id, damaged: { kind: 'layer', digest: layer, problem: 'missing' } },
    ]);
    assert.ok(
      told[0]?.startsWith(`The blob ${altered} of ${server.host}/app:v1 was damaged on the disk and is removed;`),
    );
    assert.match(told[1] ?? '', /is not whole on the disk; pull the image again/);
    await store.pull(`${server.host}/app:v1`);
    const { blobs, chainIds } = await store.adapter.listContent();
    assert.deepEqual(new Set(blobs), new Set(image.blobs));
    assert.deepEqual(chainIds, [layer]);
  });
});
