/** What `scribe doctor` is told of a disk that is full now and then. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import pino from 'pino';
import { createDiskNews } from '../../src/daemon/disk-news.ts';
import { createFindings } from '../../src/daemon/findings.ts';

const TIME = String.raw`\d{4}-\d\d-\d\dT[\d:.]+Z`;

test('a disk that is full again and again is one finding: how it is now, and how often it was full since when', () => {
  const findings = createFindings();
  const { changed } = createDiskNews('/var/lib/scribe', findings, pino({ level: 'silent' }));
  const told = (full: boolean, freeMiB: number): string => {
    changed(full, freeMiB * 1024 * 1024);
    const [finding = '', ...others] = findings.list();
    assert.deepEqual(others, []);
    return finding;
  };
  const disk = 'The disk of /var/lib/scribe';
  const full = `^${disk} is full since ${TIME}, with 3 MiB free: only stopping and removing is taken`;
  const freed = `^${disk} was full until ${TIME}; now it has room again, with 90 MiB free`;
  assert.match(told(true, 3), new RegExp(`${full}$`));
  assert.match(told(false, 90), new RegExp(`${freed}$`));
  assert.match(told(true, 3), new RegExp(`${full}; it was full 2 times since ${TIME}$`));
  assert.match(told(false, 90), new RegExp(`${freed}; it was full 2 times since ${TIME}$`));
});
