/** What is said of a thread that broke: in one line, with what helps where its files are gone. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { Worker } from 'node:worker_threads';
import { whyBroke } from '../../src/platform/broken-thread.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
const RESTART = /: the files of scribe were replaced or taken away while it runs; restart it$/;

/** What a thread of this program breaks of; null: there is no such file. */
const breaking = async (program: string | null): Promise<unknown> => {
  const path = join(await tempDir(owner), 'thread.cjs');
  if (program !== null) await writeFile(path, program);
  return new Promise((resolve) => new Worker(path).once('error', resolve));
};

test('a program that is no more, or one that it loads, is named, in one line', async () => {
  const gone = whyBroke(await breaking(null));
  assert.match(gone, RESTART);
  assert.match(gone, /thread\.cjs/);
  const without = whyBroke(await breaking("require('a-package-that-is-gone')"));
  assert.match(without, /^Cannot find module 'a-package-that-is-gone': the files/);
  assert.match(without, RESTART);
});

test('anything else is told as it is', async () => {
  assert.equal(whyBroke(await breaking("throw new Error('out of ideas')")), 'out of ideas');
  assert.equal(whyBroke('odd'), 'odd');
});
