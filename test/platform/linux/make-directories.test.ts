/** Directories whose paths others name: made with what is missing above them, and never tried for ever. */
import assert from 'node:assert/strict';
import { closeSync, openSync, rmdirSync, statSync } from 'node:fs';
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeDirectories, makeDirectoriesSync } from '../../../src/platform/linux/make-directories.ts';
import { tempDir } from '../../support/temp-dir.ts';

const ways = {
  waiting: makeDirectories,
  'at once': async (path: string, mode: number) => makeDirectoriesSync(path, mode),
};

for (const [way, make] of Object.entries(ways)) {
  test(`${way}: what is missing is made, and the outermost of it told`, async (t) => {
    const dir = await tempDir(t);
    assert.equal(await make(join(dir, 'a/b/c'), 0o700), join(dir, 'a'));
    assert.equal(statSync(join(dir, 'a/b/c')).mode & 0o777, 0o700);
    assert.equal(await make(join(dir, 'a/b/c'), 0o755), undefined);
    assert.equal(await make(join(dir, 'a/d'), 0o755), join(dir, 'a/d'));
    await mkdir(join(dir, 'e'));
    assert.equal(await make(`${join(dir, 'e')}/`, 0o755), undefined);
    assert.equal(await make('/', 0o755), undefined);
  });

  test(`${way}: a file in the way is no directory`, async (t) => {
    const dir = await tempDir(t);
    await writeFile(join(dir, 'file'), '');
    await assert.rejects(make(join(dir, 'file'), 0o755), { code: 'EEXIST' });
    await assert.rejects(make(join(dir, 'file/below'), 0o755), { code: 'ENOTDIR' });
  });

  test(`${way}: a directory that takes none is given up`, async (t) => {
    const dir = await tempDir(t);
    await assert.rejects(make('/proc/scribe-has-none/here', 0o755), { code: 'ENOENT', path: '/proc/scribe-has-none' });
    const gone = join(dir, 'gone');
    await mkdir(gone);
    const fd = openSync(gone, 'r');
    t.after(() => closeSync(fd));
    rmdirSync(gone);
    await assert.rejects(make(`/proc/self/fd/${fd}/a/b`, 0o755), { code: 'ENOENT' });
  });
}
