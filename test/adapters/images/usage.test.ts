/** What the image store takes: what is added and removed counts, and what is known is not looked at again. */
import assert from 'node:assert/strict';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { imageLayout, INFO_FILE, LAYER_DIR, snapshotDir } from '../../../src/adapters/images/layout.ts';
import { createImageUsage } from '../../../src/adapters/images/usage.ts';
import { tempDir } from '../../support/temp-dir.ts';

const digest = (digit: string): string => `sha256:${digit.repeat(64)}`;

test('the room that blobs and layers take is counted anew for what came and went alone', async (t) => {
  const layout = imageLayout(await tempDir(t));
  const usage = createImageUsage(layout);
  const counted = async (): Promise<[usedBytes: number, inodesUsed: number]> => {
    await usage.recount();
    const { usedBytes, inodesUsed } = usage.current();
    return [usedBytes, inodesUsed];
  };
  const blob = (name: string): string => join(layout.blobs, name);
  const layerOf = async (chainId: string): Promise<string> => {
    const directory = snapshotDir(layout, chainId);
    await mkdir(join(directory, LAYER_DIR), { recursive: true });
    return directory;
  };
  const note = (chainId: string) => JSON.stringify({ chainId, diffId: digest('0'), usedBytes: 1000, inodesUsed: 7 });
  assert.deepEqual(await counted(), [0, 0]);

  await mkdir(layout.blobs, { recursive: true });
  await writeFile(blob('aa'), 'x'.repeat(10));
  const [first, second] = [await layerOf(digest('1')), await layerOf(digest('2'))];
  await writeFile(join(first, INFO_FILE), note(digest('1')));
  // Not whole yet.
  assert.deepEqual(await counted(), [1010, 8]);

  await writeFile(join(second, INFO_FILE), note(digest('2')));
  await writeFile(blob('bb'), 'x'.repeat(5));
  // Blobs and layers never change: were it looked at again, it would count.
  await writeFile(blob('aa'), 'x'.repeat(20));
  await writeFile(join(first, INFO_FILE), 'nothing');
  assert.deepEqual(await counted(), [2015, 16]);

  await rm(blob('aa'));
  await rm(first, { recursive: true });
  assert.deepEqual(await counted(), [1005, 8]);
});

test('a count is as of now until another one begins', async (t) => {
  const layout = imageLayout(await tempDir(t));
  let now = 1;
  const usage = createImageUsage(layout, () => now);
  await usage.recount();
  now = 2;
  // kubelet passes over a file system whose time is the one of before, however full it is.
  assert.equal(usage.current().asOfMs, 2);
  const recount = usage.recount();
  now = 3;
  assert.equal(usage.current().asOfMs, 1);
  await recount;
  assert.equal(usage.current().asOfMs, 3);

  await mkdir(dirname(layout.blobs), { recursive: true });
  await writeFile(layout.blobs, 'no directory');
  await assert.rejects(usage.recount());
  now = 4;
  assert.equal(usage.current().asOfMs, 2);
});
