/** Answers about users of images, remembered where that is safe. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { it } from 'node:test';
import { createKnownUsers } from '../../../src/adapters/inspect/known-users.ts';
import { tempDir } from '../../support/temp-dir.ts';

const root = { supplementalGroups: [], mergeImageGroups: true };

it('users of images that are unpacked are looked up once, of others each time', async (t) => {
  const dir = await tempDir(t);
  const asked: string[] = [];
  const files: Record<string, string> = { '/etc/passwd': 'web:x:1000:1001::/:/bin/sh\n' };
  const resolve = createKnownUsers({
    layerDirs: (chainIds) => chainIds.map((chainId) => join(dir, chainId)),
    readImageFile: async (chainIds, path) => {
      asked.push(`${chainIds.join('/')}${path}`);
      return files[path] === undefined ? null : Buffer.from(files[path]);
    },
  });
  const took = async (work: Promise<unknown>): Promise<number> => {
    const before = asked.length;
    await work.catch(() => undefined);
    return asked.length - before;
  };
  const web = { ...root, username: 'web' };
  assert.equal(await took(resolve(['base', 'top'], web)), 2);
  assert.equal(await took(resolve(['base', 'top'], web)), 2, 'no layer was there');
  await mkdir(join(dir, 'base'));
  assert.equal(await took(resolve(['base', 'top'], web)), 2, 'one layer was not');
  await mkdir(join(dir, 'top'));
  assert.equal(await took(resolve(['base', 'top'], web)), 2);
  assert.equal(await took(resolve(['base', 'top'], web)), 0);
  assert.deepEqual(await resolve(['base', 'top'], web), { uid: 1000, gid: 1001, additionalGids: [1001] });
  assert.equal(await took(resolve(['base'], web)), 2, 'another image');
  assert.equal(await took(resolve(['base', 'top'], { ...web, gid: '5' })), 2, 'another question');
  const ghost = { ...root, username: 'ghost' };
  for (let time = 0; time < 2; time += 1)
    assert.equal(await took(resolve(['base', 'top'], ghost)), 2, 'what failed is looked up again');
});
