/** Where a bundle is to be: looked at before anything is made, and left as it was. */
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { checkPlace } from '../../../src/cli/bundle/archive.ts';
import { tempDir } from '../../support/temp-dir.ts';

test('looking at its place leaves nothing there, whenever the command is interrupted', async (t) => {
  const path = join(await tempDir(t), 'bundle.tar.gz');
  for (let time = 0; time < 20; time += 1) {
    const checked = { isDone: false };
    const check = Promise.resolve(checkPlace(path)).then(() => (checked.isDone = true));
    while (!checked.isDone) {
      assert.equal(existsSync(path), false);
      await setImmediate();
    }
    await check;
  }
});

test('what is there already stays', async (t) => {
  const path = join(await tempDir(t), 'bundle.tar.gz');
  await writeFile(path, 'mine');
  assert.throws(() => checkPlace(path), /bundle\.tar\.gz cannot be made: EEXIST.*\. Name another with --output\.$/);
  assert.equal(existsSync(path), true);
});
