/** What the benchmarks, the test runner and programs beside it cannot take of a command line is one sentence, and nothing is done. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '../support/process.ts';

const top = join(import.meta.dirname, '../..');

test('an option that there is not, a number that is none, and a journal that is none', async () => {
  for (const [words, said] of [
    ['bench/compare.ts --rounds x', '--rounds x: it takes a number above 0'],
    ['bench/compare.ts --round 1', "Unknown option '--round'"],
    ['bench/journal.ts --records 100k', '--records 100k: it takes a number above 0'],
    ['bench/journal.ts --seconds 0', '--seconds 0: it takes a number above 0'],
    ['bench/readers.ts --calls -1 package.json', "Option '--calls' argument is ambiguous"],
    ['bench/readers.ts --rounds 1.5 package.json', '--rounds 1.5: it takes a number above 0'],
    ['bench/readers.ts /nowhere', '/nowhere is no file'],
    ['bench/ui.ts', 'it takes one JOURNAL'],
    ['bench/ui.ts --what package.json', "Unknown option '--what'"],
    ['scripts/test.ts --what', "Unknown option '--what'"],
    ['scripts/go-programs.ts kubelet', "Unexpected argument 'kubelet'"],
    ['scripts/cri-coverage.ts --what', "Unknown option '--what'"],
  ] as const) {
    const { exitCode, stdout, stderr } = await run([process.execPath, ...words.split(' ')], { cwd: top });
    assert.ok(stderr.startsWith(said), `${words}: ${stderr}`);
    assert.doesNotMatch(stderr, /^ +at /m, words);
    assert.deepEqual([exitCode, stdout], [2, ''], words);
  }
});

test('--help says what a program does, and does nothing of it', async () => {
  for (const program of ['scripts/test.ts', 'scripts/go-programs.ts', 'scripts/cri-coverage.ts', 'bench/compare.ts']) {
    const { exitCode, stdout, stderr } = await run([process.execPath, program, '--help'], { cwd: top });
    assert.deepEqual([exitCode, stderr], [0, ''], program);
    assert.ok(stdout.startsWith(`node ${program}`), stdout);
  }
});
