/** Checking that blobs are what they were: damage is found and mended by the next pull, at a bounded rate. Needs root. */
import assert from 'node:assert/strict';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
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

  it('is checked from time to time, and what was found is told with the image’s name', async (t) => {
    const told: string[] = [];
    const upkeep = startImageUpkeep(
      {
        images: {
          collectUnknown: () => Promise.resolve(null),
          collectLeftovers: () => Promise.resolve(),
          checkContent: () => Promise.resolve(['sha256:damaged']),
        },
        state: () => ({ images: new Map(), containers: new Map() }),
        checkIntervalMs: 5,
        checkBytesPerSecond: 1,
        log: { info: () => undefined },
        report: (message) => void told.push(message),
      },
      false,
    );
    onCleanup(t, upkeep.close);
    upkeep.served();
    const [first] = await eventually('a finding', () => Promise.resolve(told.length > 0 && told));
    assert.match(
      first ?? '',
      /sha256:damaged of no image was damaged on the disk and is removed; pull the image again/,
    );
  });
});
