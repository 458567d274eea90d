/** Reading a journal ahead: a large file that is on the disk alone is in memory afterwards, and nothing is done for others. */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { randomFillSync } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { type FileEnd, readAhead } from '../../src/journal/read-ahead.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
const mebibyte = 1024 * 1024;
const BLOCK_BYTES = 512;

const fileOf = async (sizeBytes: number): Promise<string> => {
  const path = join(await tempDir(owner), 'journal.db');
  writeFileSync(path, randomFillSync(Buffer.alloc(sizeBytes)), { flush: true });
  return path;
};

/** Has the kernel keep nothing of it in memory. */
const forget = (path: string): void => {
  execFileSync('dd', [`if=${path}`, 'iflag=nocache', 'count=0', 'status=none']);
};

/** How much of it came from the disk now. */
const readFromDisk = (path: string): number => {
  const before = process.resourceUsage().fsRead;
  readFileSync(path);
  return (process.resourceUsage().fsRead - before) * BLOCK_BYTES;
};

describe('reading a journal ahead', () => {
  for (const from of ['start', 'end'] satisfies FileEnd[])
    test(`from its ${from}, what is on the disk alone is in memory afterwards`, async () => {
      const path = await fileOf(40 * mebibyte);
      forget(path);
      assert.ok(readFromDisk(path) > 30 * mebibyte, `${path} must lie on a disk, not in memory`);
      forget(path);
      assert.equal(await readAhead(path, from), true);
      assert.ok(readFromDisk(path) < mebibyte);
      assert.equal(await readAhead(path, from), false, 'it is there already');
    });

  test('is left alone where it is small, or not there', async () => {
    const path = await fileOf(4 * mebibyte);
    forget(path);
    assert.equal(await readAhead(path, 'start'), false);
    assert.equal(await readAhead(`${path}-none`, 'start'), false);
  });
});
