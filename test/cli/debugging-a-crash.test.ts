/** docs/debugging-a-crash.md: every command line in it is run, and prints what the page says. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { scribe } from './support.ts';

const TOP = join(import.meta.dirname, '../..');
const COMMAND = /^\$ (?:printf '([^']*)' \| )?(scribe|node) (.+)$/;

interface Example {
  readonly program: string;
  readonly words: readonly string[];
  readonly stdin: string;
  readonly printed: string;
}

const examplesIn = (page: string): Example[] =>
  [...page.matchAll(/^```console\n([\s\S]*?)^```$/gm)].map(([, block = '']) => {
    const [first = '', ...printed] = block.trimEnd().split('\n');
    const [, stdin = '', program = '', words = ''] = COMMAND.exec(first) ?? assert.fail(`${first} is no command line`);
    return { program, stdin: stdin.replaceAll('\\n', '\n'), words: words.split(' '), printed: printed.join('\n') };
  });

/** How long something takes is another thing each time. */
const withoutTimes = (text: string): string => text.replace(/in \d+\.\d s \([\d,]+ decisions\/s\)/g, 'in 0.1 s');

test('every example prints what the page says', async (t) => {
  const dir = await tempDir(t);
  const examples = examplesIn(await readFile(join(TOP, 'docs/debugging-a-crash.md'), 'utf8'));
  assert.ok(examples.length >= 3);
  const before = process.cwd();
  process.chdir(TOP);
  try {
    for (const { program, words, stdin, printed } of examples) {
      const { stdout, stderr } =
        program === 'scribe'
          ? await scribe(words, { stdin })
          : await run([process.execPath, ...words.map((word) => (word === '/tmp' ? dir : word))]);
      assert.equal(withoutTimes((stdout + stderr).trimEnd()), withoutTimes(printed), words.join(' '));
    }
  } finally {
    process.chdir(before);
  }
});
