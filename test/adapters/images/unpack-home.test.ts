/** What an unpacking process has as its root: layers come and go in it, each with a name of its own. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { imageLayout } from '../../../src/adapters/images/layout.ts';
import { createHomes } from '../../../src/adapters/images/unpack/home.ts';
import { tempDir } from '../../support/temp-dir.ts';

it('has a name for each layer, since ext4 lays directories of one name to one place', async (t) => {
  const layout = imageLayout(await tempDir(t));
  const homes = createHomes(layout, () => Promise.reject(new Error('something was left')));
  const names: string[] = [];
  for (const target of ['one', 'two', 'three']) {
    const home = await homes.make();
    const name = await home.makeLayer();
    names.push(name);
    await writeFile(join(home.root.directory, name, 'file'), target);
    await mkdir(join(layout.unpack, target));
    await home.takeLayer(join(layout.unpack, target));
    assert.deepEqual(await readdir(join(layout.unpack, target)), ['file']);
    await homes.remove(home);
  }
  assert.equal(new Set(names).size, 3);
  assert.equal(homes.active.size, 0);
  assert.deepEqual(new Set(await readdir(layout.unpack)), new Set(['one', 'two', 'three']));
});

it('has what arrives or the blob that became of it, whenever it looks', async (t) => {
  const layout = imageLayout(await tempDir(t));
  const homes = createHomes(layout, () => Promise.reject(new Error('something was left')));
  const [partialPath, arrivalsPath, blob] = ['partial', 'arrivals', 'blob'].map((name) => join(layout.unpack, name));
  if (partialPath === undefined || arrivalsPath === undefined || blob === undefined) return assert.fail();
  const arriving = { partialPath, arrivalsPath, sizeBytes: 5 };
  const home = await homes.make();
  const look = async () => {
    await home.makeLayer();
    const found = await home.putArchive(blob, arriving);
    assert.equal(await readFile(join(home.root.directory, found.archivePath), 'utf8'), 'bytes');
    await mkdir(join(layout.unpack, 'layer'), { recursive: true });
    await home.takeLayer(join(layout.unpack, 'layer'));
    assert.deepEqual(await readdir(join(home.root.directory, home.root.readOnly)), []);
    return found;
  };
  const whole = { archivePath: '/in/archive', isOutside: false };
  await writeFile(partialPath, 'bytes');
  await writeFile(arrivalsPath, '5\n');
  assert.deepEqual(await look(), { ...whole, arriving: { arrivalsPath: '/in/arrivals', sizeBytes: 5 } });
  await rename(partialPath, blob);
  assert.deepEqual(await look(), whole);
  await rm(arrivalsPath);
  assert.deepEqual(await look(), whole);
  await homes.remove(home);
});
