/** Giving memory back: what is found to be as it is in files, what a real process gives back, and when, by a clock of the test's own. */
import assert from 'node:assert/strict';
import { it, type TestContext } from 'node:test';
import { programRangesIn, giveBackWhenQuiet } from '../../../src/platform/linux/give-back.ts';
import { runOk } from '../../support/process.ts';

const mapping = (range: string, permissions: string, path: string, anonymousKiB: number, swapKiB = 0): string =>
  `${range} ${permissions} 00c00000 fe:00 4711                       ${path}\nSize: 100 kB\nAnonymous:      ${anonymousKiB} kB\nSwap:           ${swapKiB} kB\n`;

it('takes what is mapped of the program and its libraries, can not be written to, and is as it is in the file', () => {
  const smaps = [
    mapping('00400000-01000000', 'r--p', '/opt/node', 0),
    mapping('01000000-04000000', 'r-xp', '/opt/node', 0),
    mapping('04000000-04080000', 'r-xp', '/opt/node', 4),
    mapping('04080000-04100000', 'r--p', '/opt/node', 0, 8),
    mapping('04100000-04200000', 'rw-p', '/opt/node', 0),
    mapping('7f0000000000-7f0000100000', 'r-xp', '/lib/a directory/libc.so.6', 0),
    mapping('7f0001000000-7f0001100000', 'r--p', '/etc/ld.so.cache', 0),
    mapping('7f0002000000-7f0002100000', 'r--p', '/lib/libnss_files.so.2', 0),
    mapping('7f1000000000-7f1000100000', 'r--s', '/var/lib/scribe/journal.db-shm', 0),
    mapping('7fff00000000-7fff00100000', 'r-xp', '', 0),
    mapping('7fff10000000-7fff10100000', 'r-xp', '[vdso]', 0),
  ].join('');
  assert.deepEqual(programRangesIn(smaps, '/opt/node'), [
    { start: 0x400000n, end: 0x1000000n },
    { start: 0x1000000n, end: 0x4000000n },
    { start: 0x7f0000000000n, end: 0x7f0000100000n },
  ]);
});

const CHILD = `
import { readFileSync } from 'node:fs';
import { constants, PerformanceObserver } from 'node:perf_hooks';
import { giveBackMemory } from '${new URL('../../../src/platform/linux/give-back.ts', import.meta.url).href}';
const kiBOf = (name) => Number(new RegExp(name + ':\\\\s+(\\\\d+)').exec(readFileSync('/proc/self/status', 'utf8'))[1]);
const objects = () => Array.from({ length: 400_000 }, (_, index) => ({ text: 'a'.repeat(index % 7) + index }));
const lengthOf = (list) => list.reduce((total, { text }) => total + text.length, 0);
const now = () => ({ heapBytes: process.memoryUsage().heapTotal, fileKiB: kiBOf('RssFile') });
let garbage = objects();
const sum = lengthOf(garbage);
const kept = garbage.filter((_, index) => index % 50 === 0);
garbage = null;
const before = now();
let steps = 0;
new PerformanceObserver((list) => {
  steps += list.getEntries().filter(({ detail }) => detail.kind === constants.NODE_PERFORMANCE_GC_INCREMENTAL).length;
}).observe({ entryTypes: ['gc'] });
const turns = setInterval(() => undefined, 1);
await giveBackMemory();
clearInterval(turns);
const after = now();
console.log(JSON.stringify({ before, after, steps, same: lengthOf(objects()) === sum, kept: kept.length }));
`;

it('gives back garbage, in steps, and what is mapped of the program, and all that ran runs on', async () => {
  const out = await runOk([process.execPath, '--no-warnings', '--input-type=module', '-e', CHILD]);
  const { before, after, steps, same } = JSON.parse(out) as Record<
    'before' | 'after',
    { heapBytes: number; fileKiB: number }
  > & {
    steps: number;
    same: boolean;
  };
  assert.ok(after.heapBytes < before.heapBytes / 2, out);
  assert.ok(after.fileKiB < before.fileKiB - 20_000, out);
  assert.ok(steps > 0, out);
  assert.equal(same, true);
});

const withClock = (t: TestContext, costMs: number) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let [nowMs, processorMs] = [0, 1_000];
  const given: number[] = [];
  const giveBack = async (): Promise<void> => {
    given.push(nowMs / 1000);
    processorMs += costMs;
  };
  const { worked, close } = giveBackWhenQuiet(
    assert.ifError,
    giveBack,
    () => nowMs,
    () => processorMs,
  );
  /** `work`, in each second, takes so much of the processors. */
  const passSeconds = async (seconds: number, workMs?: number): Promise<void> => {
    for (let passed = 0; passed < seconds; passed += 1) {
      nowMs += 1_000;
      t.mock.timers.tick(1_000);
      // What was given back is over.
      await Promise.resolve();
      await Promise.resolve();
      if (workMs === undefined) continue;
      processorMs += workMs;
      worked();
    }
  };
  return { given, passSeconds, close };
};

it('gives back 3 s after the last work and once more, at most every 30 s, and never again while nothing is done', async (t) => {
  const { given, passSeconds, close } = withClock(t, 50);
  await passSeconds(600);
  assert.deepEqual(given, [3, 33]);
  await passSeconds(10, 100);
  await passSeconds(600);
  assert.deepEqual(given.slice(2), [613, 643]);
  await passSeconds(1, 1_000);
  await passSeconds(4);
  await passSeconds(1, 1_000);
  await passSeconds(600);
  assert.deepEqual(given.slice(4), [1214, 1244, 1274]);
  await passSeconds(1, 1_000);
  close();
  await passSeconds(600);
  assert.equal(given.length, 7);
});

it('takes a tenth of what work does at most', async (t) => {
  const { given, passSeconds } = withClock(t, 50);
  await passSeconds(600);
  assert.deepEqual(given, [3, 33]);
  // 500 ms is ten times what it costs.
  for (let round = 0; round < 9; round += 1) {
    await passSeconds(1, 50);
    await passSeconds(39);
  }
  assert.equal(given.length, 2);
  await passSeconds(1, 50);
  await passSeconds(39);
  assert.deepEqual(given.slice(2), [964, 994]);
});
