/** What `scribe doctor` is told of a disk that is full now and then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { createDiskNews } from '../../src/daemon/disk-news.ts';
import { createFindings } from '../../src/daemon/findings.ts';

const TIME = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`;

test('a disk that is full again and again is one finding while it is: since when, and how often it was', () => {
  const findings = createFindings();
  const { changed } = createDiskNews('/var/lib/scribe', findings, pino({ level: 'silent' }));
  const told = (full: boolean, freeMiB: number): readonly string[] => {
    changed(full, freeMiB * 1024 * 1024);
    return findings.list();
  };
  const full = `^The disk of /var/lib/scribe is full since ${TIME}, with 3 MiB free: only stopping and removing is taken`;
  const [first = '', ...others] = told(true, 3);
  assert.match(first, new RegExp(`${full}$`));
  assert.deepEqual(others, []);
  assert.deepEqual(told(false, 90), []);
  assert.match(told(true, 3).join('\n'), new RegExp(`${full}; it was full 2 times since ${TIME}$`));
  assert.deepEqual(told(false, 90), []);
});
