/** Pulls that are killed at any moment: nothing is taken for whole that is not, and the next one goes on. Needs root. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { chainIdsOf } from '../../../src/adapters/images/chain-ids.ts';
import { collectUnknown } from '../../../src/adapters/images/collection.ts';
import { imageLayout, layerDir } from '../../../src/adapters/images/layout.ts';
import { takeInventory } from '../../../src/adapters/images/usage.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { type BuiltImage, buildImage, sha256 } from '../../support/images/build.ts';
import { startFilledRegistry, type TestRegistry } from '../../support/images/registry.ts';
import { tar } from '../../support/images/tar.ts';
import { startProcess } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const LAYERS = 5;
const FILES = 150;
/** Reports of progress before each kill. */
const KILLED_AFTER = [1, 2, 4, 6, 8, 10];
const content = (layer: number, file: number): string => `${layer}/${file} `.repeat(2000);
const program = join(import.meta.dirname, '../../support/images/pull-process.ts');

describe('a pull that is killed', { timeout: 120_000 }, () => {
  const owner = cleanupAfterAll();
  let registry: TestRegistry;
  let image: BuiltImage;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    registry = await startFilledRegistry(owner);
    const layers = Array.from({ length: LAYERS }, (_, layer) => {
      const files = Array.from({ length: FILES }, (_, file) => ({ path: `d/f${file}`, data: content(layer, file) }));
      return { tar: tar(files), compression: layer % 2 === 0 ? ('none' as const) : ('gzip' as const) };
    });
    image = buildImage(layers);
    await registry.push('crash', 'v1', image);
  });

  /** Everything the store takes for whole is what it says it is. Returns how much that is. */
  const checkStore = async (root: string): Promise<{ blobs: number; layers: number }> => {
    const layout = imageLayout(root);
    const { blobs, chainIds } = await takeInventory(layout);
    for (const digest of blobs) {
      assert.equal(sha256(await readFile(join(layout.blobs, digest.slice('sha256:'.length)))), digest);
    }
    const all = chainIdsOf(image.diffIds);
    for (const chainId of chainIds) {
      const layer = all.indexOf(chainId);
      assert.ok(layer >= 0, chainId);
      const directory = join(layerDir(layout, chainId), 'd');
      assert.equal((await readdir(directory)).length, FILES);
      for (let file = 0; file < FILES; file += 1) {
        assert.equal(await readFile(join(directory, `f${file}`), 'utf8'), content(layer, file));
      }
    }
    return { blobs: blobs.length, layers: chainIds.length };
  };

  it('leaves nothing half-done for whole, and is finished by another', async (t) => {
    const seen: string[] = [];
    for (const steps of KILLED_AFTER) {
      const root = join(await tempDir(t), 'root');
      await mkdir(root);
      const argv = [process.execPath, program, root, `${registry.host}/crash:v1`];
      const pull = await startProcess(t, argv);
      await pull.until(new RegExp(`(?:.*\\n){${steps}}`), 30_000);
      pull.kill('SIGKILL');
      await pull.ended;
      const { blobs, layers } = await checkStore(root);
      seen.push(`${blobs}+${layers}`);

      const next = await startProcess(t, argv);
      await next.until(/pulled/, 60_000);
      assert.equal(await next.ended, 0, next.output());
      assert.deepEqual(await checkStore(root), { blobs: LAYERS + 2, layers: LAYERS });
      const layout = imageLayout(root);
      for (const directory of [layout.unpack, layout.trash]) assert.deepEqual(await readdir(directory), []);
      // As a start does: one who is killed between two steps leaves a file that nobody asks for again.
      await collectUnknown(layout, await takeInventory(layout), 0);
      assert.deepEqual(await readdir(layout.ingest), []);
      assert.deepEqual(await checkStore(root), { blobs: LAYERS + 2, layers: LAYERS });
    }
    t.diagnostic(`blobs and layers after each kill: ${seen.join(', ')}`);
  });
});
