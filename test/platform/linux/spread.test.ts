/** Directories that the file system is told to keep apart, on the one that knows the mark and on one that doesn't. Needs root. */
import assert from 'node:assert/strict';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { it, type TestContext } from 'node:test';
import { spreadDirectoriesIn } from '../../../src/platform/linux/spread.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { run, runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const mounted = async (t: TestContext, type: 'ext4' | 'tmpfs'): Promise<string> => {
  const dir = await tempDir(t);
  const place = join(dir, 'place');
  const file = join(dir, 'disk');
  await mkdir(place);
  await runOk(['truncate', '--size', '16M', file]);
  if (type === 'ext4') await runOk(['mkfs.ext4', '-q', file]);
  await runOk(['mount', '-t', type, ...(type === 'ext4' ? ['-o', 'loop'] : []), file, place]);
  onCleanup(t, async () => {
    await run(['umount', '--lazy', place]);
  });
  return place;
};

it('ext4 takes the mark, and a directory that has it keeps it', async (t) => {
  const place = await mounted(t, 'ext4');
  assert.doesNotMatch(await runOk(['lsattr', '-d', place]), /^\S*T\S* /);
  assert.equal(await spreadDirectoriesIn(place), true);
  assert.match(await runOk(['lsattr', '-d', place]), /^\S*T\S* /);
  assert.equal(await spreadDirectoriesIn(place), true);
});

it('a file system that does not know it says so, and loses nothing', async (t) => {
  assert.equal(await spreadDirectoriesIn(await mounted(t, 'tmpfs')), false);
});

it('a directory that is not there is an error', async (t) => {
  await assert.rejects(spreadDirectoriesIn(join(await tempDir(t), 'none')), { code: 'ENOENT' });
});
