/** What was taken out of the image store goes a bit at a time, behind what is fetched. */
import assert from 'node:assert/strict';
import { mkdir, readdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { createTrash } from '../../../src/adapters/images/trash.ts';
import { createTrees } from '../../../src/adapters/images/trees/trees.ts';
import { unlessAborted } from '../../../src/platform/rpc/timeout.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { tempDir } from '../../support/temp-dir.ts';

const FILES = 1200;

const filled = async (t: TestContext): Promise<{ directory: string; outside: string }> => {
  const top = await tempDir(t);
  const directory = join(top, 'trash');
  const outside = join(top, 'outside');
  const deep = Buffer.from(`${directory}/layer/fs/\xff`, 'latin1');
  await mkdir(deep, { recursive: true });
  await mkdir(outside);
  await writeFile(join(outside, 'kept'), '');
  await symlink(outside, join(directory, 'layer/link'));
  await writeFile(join(directory, 'blob'), 'x');
  for (let file = 0; file < FILES; file += 1)
    await writeFile(Buffer.concat([deep, Buffer.from(`/file-${file}`)]), 'words');
  return { directory, outside };
};

const makeTrash = (t: TestContext, directory: string, whenIdle: (signal: AbortSignal) => Promise<void>) => {
  const trees = createTrees();
  onCleanup(t, trees.close);
  return createTrash({ directory, trees, whenIdle });
};

it('all of it goes, whatever its names, and nothing that links lead to', async (t) => {
  const { directory, outside } = await filled(t);
  let turns = 0;
  const trash = makeTrash(t, directory, () => {
    turns += 1;
    return Promise.resolve();
  });
  await Promise.all([trash.clear(), trash.clear()]);
  assert.deepEqual(await readdir(directory), []);
  assert.deepEqual(await readdir(outside), ['kept']);
  assert.ok(turns > FILES / 500, `others could come in between ${turns} times`);
});

it('nothing goes while something is fetched, and its end is waited for no longer once the store closes', async (t) => {
  const { directory } = await filled(t);
  const fetching = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const trash = makeTrash(t, directory, (signal) => {
    asked.resolve();
    return unlessAborted(fetching.promise, signal);
  });
  const clearing = trash.clear();
  await asked.promise;
  await trash.whenRoomy();
  assert.equal((await readdir(directory)).length, 2);
  await trash.close();
  await clearing;
  assert.equal((await readdir(directory)).length, 2);
});
