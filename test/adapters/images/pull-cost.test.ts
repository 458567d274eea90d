/**
 * What a pull costs the daemon's own thread. Runs alone: it measures. CPU time of the thread is measured, not the time
 * that passes: on a busy machine everything is late, and only the former is the pull's doing. Needs root.
 */
import assert from 'node:assert/strict';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { buildImage } from '../../support/images/build.ts';
import { startFilledRegistry, type TestRegistry } from '../../support/images/registry.ts';
import { startStore } from '../../support/images/store.ts';
import { type TarMember, tar } from '../../support/images/tar.ts';

const LAYERS = 6;
const LAYER_BYTES = 20_000_000;
const FILES_PER_LAYER = 400;
const BLOCKING_MS_MAX = 20;

/** Bytes that compress about as programs do. */
const fill = (seed: number, length: number): Buffer => {
  const bytes = Buffer.alloc(length);
  let state = seed + 1;
  for (let index = 0; index + 4 <= length; index += 4) {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    bytes.writeUInt32LE(state & 0x0f0f_ffff, index);
  }
  return bytes;
};

const layerOf = (layer: number): Buffer => {
  const size = Math.floor(LAYER_BYTES / FILES_PER_LAYER);
  const content = fill(layer, LAYER_BYTES);
  const members: TarMember[] = Array.from({ length: FILES_PER_LAYER }, (_, file) => ({
    path: `layer-${layer}/deep/${file % 20}/file-${file}`,
    data: content.subarray(file * size, (file + 1) * size),
  }));
  return tar(members);
};

describe('C17: a pull leaves the daemon’s own thread alone', { timeout: 120_000 }, () => {
  const owner = cleanupAfterAll();
  let registry: TestRegistry;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    registry = await startFilledRegistry(owner);
    const image = buildImage(Array.from({ length: LAYERS }, (_, index) => ({ tar: layerOf(index) })));
    await registry.push('cost', 'v1', image);
  });

  it('with little work in all, and none of it long', async (t) => {
    const store = await startStore(t);
    // Loads what is loaded once: the thread's program, the children's.
    await store.failedPull(`${registry.host}/cost:none`);
    const started = process.threadCpuUsage();
    let longestMs = 0;
    let last = process.threadCpuUsage();
    // Between two turns of this timer lies at most one piece of other work, and the CPU time it took.
    const timer = setInterval(() => {
      const { user, system } = process.threadCpuUsage(last);
      longestMs = Math.max(longestMs, (user + system) / 1000);
      last = process.threadCpuUsage();
    }, 1);
    const image = await store.pull(`${registry.host}/cost:v1`);
    clearInterval(timer);
    const { user, system } = process.threadCpuUsage(started);
    const plainMb = (LAYERS * LAYER_BYTES) / 1e6;
    t.diagnostic(`${plainMb} MB unpacked for ${(user + system) / 1000} ms, at most ${longestMs} ms at once`);
    assert.equal(image.layers.length, LAYERS);
    assert.ok(longestMs <= BLOCKING_MS_MAX, `${longestMs} ms at once`);
    assert.ok((user + system) / 1000 / plainMb < 10, `${(user + system) / 1000} ms for ${plainMb} MB`);
  });

  it('and nobody else looks into the store', async (t) => {
    const store = await startStore(t);
    await store.pull(`${registry.host}/cost:v1`);
    for (const directory of ['images', 'images/blobs', 'images/blobs/sha256', 'images/snapshots', 'images/ingest']) {
      assert.equal((await stat(join(store.root, directory))).mode & 0o077, 0, directory);
    }
  });
});
