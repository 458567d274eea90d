/** What is told of logs that the log keeper can't write. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { LogTrouble } from '../../src/adapters/log-keeper/types.ts';
import { logTroubles, troublesInWords } from '../../src/daemon/log-troubles.ts';

const troubleOf = (containerId: string, sinceMs: number): LogTrouble => ({
  containerId,
  logPath: `/var/log/pods/${containerId}/0.log`,
  why: 'ENOSPC: no space left on device, write',
  sinceMs,
  lostRecords: 7,
});

test('a full disk of the logs of many containers is one sentence, by the one that was first', () => {
  assert.equal(troublesInWords([]), null);
  const words = troublesInWords([troubleOf('b', 2_000), troubleOf('a', 1_000), troubleOf('c', 3_000)]);
  assert.match(
    words ?? '',
    /^The log of container a, \/var\/log\/pods\/a\/0\.log, can not be written \(ENOSPC: .*\), and those of 2 other containers: 21 lines are lost since 1970-01-01T00:00:01\.000Z; make room there/,
  );
});

test('a keeper that gives no answer is told, and nothing fails of it', async () => {
  assert.deepEqual(await logTroubles(async () => []), []);
  const [told = ''] = await logTroubles(async () => [troubleOf('a', 1_000)]);
  assert.match(told, /^The log of container a/);
  const unknown = await logTroubles(() => Promise.reject(new Error('no answer')));
  assert.deepEqual(unknown, ['Whether logs of containers are written is not known: no answer']);
});
