/** Room that is kept on a file system: looked at with the first piece, and then once in so many bytes. */
import assert from 'node:assert/strict';
import { mkdir, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { keepFreeSpace } from '../../../src/platform/linux/free-space.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { tempDir } from '../../support/temp-dir.ts';

const isFull = (error: unknown): boolean =>
  error instanceof FailureError && error.failure.reason === 'DiskFull' && error.message === 'make room';

describe('free space', () => {
  it('is asked for with the first piece', async (t) => {
    const directory = await tempDir(t);
    const keep = keepFreeSpace({ directory, reservedBytes: 2 ** 60, everyBytes: 100, message: 'make room' });
    await assert.rejects(keep(1), isFull);
  });

  it('is asked for again once as much has been written', async (t) => {
    const parent = await tempDir(t);
    const directory = join(parent, 'watched');
    await mkdir(directory);
    const keep = keepFreeSpace({ directory, reservedBytes: 0, everyBytes: 100, message: 'make room' });
    await keep(1);
    // A look would fail from here on.
    await rmdir(directory);
    await keep(60);
    await keep(39);
    await assert.rejects(keep(1), /ENOENT/);
  });

  it('is as much as a large piece needs', async (t) => {
    const directory = await tempDir(t);
    const keep = keepFreeSpace({ directory, reservedBytes: 0, everyBytes: 100, message: 'make room' });
    await keep(1000);
    await assert.rejects(keep(2 ** 60), isFull);
  });
});
