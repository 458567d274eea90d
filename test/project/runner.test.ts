/** `npm test` counts right and ends with its summary, whatever the test files do: fail, crash, hang or leave children. */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { processes } from '../support/leftovers.ts';
import { eventually } from '../support/pods.ts';
import { type CommandResult, run, startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const top = join(import.meta.dirname, '../..');

/** A tree that holds nothing but the runner and the given test files, with a short limit for each; the runner's path. */
const runnerWith = async (t: TestContext, files: Readonly<Record<string, string>>, known?: string): Promise<string> => {
  const dir = known ?? (await tempDir(t));
  await mkdir(join(dir, 'scripts/lib'), { recursive: true });
  for (const part of ['test.ts', 'lib/test-reporter.ts', 'lib/passed-tests.ts', 'lib/command-line.ts']) {
    const name = `scripts/${part}`;
    const text = await readFile(join(top, name), 'utf8');
    await writeFile(join(dir, name), text.replace('fileTimeoutMs = 10 * 60_000', 'fileTimeoutMs = 3_000'));
  }
  await mkdir(join(dir, 'test/a'), { recursive: true });
  await writeFile(join(dir, 'package.json'), '{"type":"module"}');
  for (const [name, text] of Object.entries(files)) {
    await writeFile(
      join(dir, 'test/a', `${name}.test.ts`),
      `import { describe, before, test } from 'node:test';\n${text}`,
    );
  }
  return join(dir, 'scripts/test.ts');
};

const runTests = async (...tree: Parameters<typeof runnerWith>): Promise<CommandResult> =>
  run([process.execPath, await runnerWith(...tree)], { env: { PATH: process.env['PATH'] } });

const lastLine = ({ stdout }: CommandResult): string | undefined => stdout.trimEnd().split('\n').at(-1);

test('what passes and what is left out is counted, in suites too', async (t) => {
  const result = await runTests(t, {
    one: "test('a', (t) => { t.diagnostic('measured 5'); });\ntest('b', { skip: 'why' }, () => {});",
    two: "describe('s', () => { test('c', () => {}); describe('inner', () => { test('d', () => {}); }); });",
  });
  assert.equal(lastLine(result), '3 passed, 0 failed, 1 skipped', result.stdout);
  assert.equal(result.exitCode, 0);
  assert.match(result.stdout, /^ {4}measured 5$/m);
  assert.match(result.stdout, /^slowest of 2 files/m);
});

test('which tests passed is left for others, and of what failed or was left out nothing', async (t) => {
  const dir = await tempDir(t);
  const files = {
    one: "test('a', () => {});\ntest('b', { skip: 'why' }, () => {});\ntest('c', () => { throw new Error('no'); });",
    two: "describe('s', () => { test('d', () => {}); });",
  };
  await runTests(t, files, dir);
  const report = await readFile(join(dir, 'node_modules/.cache/scribe-tests-passed.json'), 'utf8');
  assert.deepEqual(JSON.parse(report), { 'test/a/one.test.ts': ['a'], 'test/a/two.test.ts': ['d'] });
});

test('every way to fail is counted and shown', async (t) => {
  const result = await runTests(t, {
    asserts: "test('ok', () => {});\ntest('bad', () => { throw new Error('the reason'); });",
    hook: "describe('s', () => { before(() => { throw new Error('in the hook'); }); test('x', () => {}); });",
    imports: "import './nothing.ts';\ntest('x', () => {});",
    empty: 'void describe, before, test;',
    exits: "test('ok', () => {});\ntest('ends', () => process.exit(3));",
    rejects:
      "test('ok', () => {});\nsetTimeout(() => { void Promise.reject(new Error('unseen')); }, 50);\nawait new Promise((r) => setTimeout(r, 100));",
  });
  assert.equal(result.exitCode, 1);
  assert.match(lastLine(result) ?? '', /^\d+ passed, [1-9]\d* failed, 0 skipped$/);
  for (const name of ['asserts', 'hook', 'imports', 'empty', 'exits', 'rejects']) {
    assert.match(result.stdout, new RegExp(`^FAILED test/a/${name}\\.test\\.ts`, 'm'), result.stdout);
  }
  assert.match(result.stdout, /FAILED: bad\n\s+Error: the reason/);
  assert.match(result.stdout, /in the hook/);
});

test('a file that hangs is ended with all its children, and the others are run', async (t) => {
  const result = await runTests(t, {
    hangs:
      "import { spawn } from 'node:child_process';\n" +
      "test('x', () => { spawn('sleep', ['987654']); return new Promise(() => { setInterval(() => {}, 1000); }); });",
    leaves:
      "import { spawn } from 'node:child_process';\ntest('y', () => { spawn('sleep', ['987654'], { stdio: 'ignore' }).unref(); });",
  });
  assert.equal(lastLine(result), '1 passed, 1 failed, 0 skipped', result.stdout);
  assert.match(result.stdout, /the file did not end within 3\.0 s/);
  const left = (await processes()).filter(({ commandLine }) => commandLine === 'sleep 987654');
  assert.deepEqual(left, []);
});

test('a runner whose terminal is closed ends what it runs, and leaves nothing', async (t) => {
  const runner = await runnerWith(t, {
    hangs:
      "import { spawn } from 'node:child_process';\n" +
      "test('x', () => { spawn('sleep', ['987655']); return new Promise(() => { setInterval(() => {}, 1000); }); });",
  });
  const temporary = await tempDir(t);
  const env = { PATH: process.env['PATH'], TMPDIR: temporary };
  const running = await startProcess(t, [process.execPath, runner], { env });
  const sleeping = async (): Promise<boolean> =>
    (await processes()).some(({ commandLine }) => commandLine === 'sleep 987655');
  await eventually('the file runs', sleeping, 2_500);
  running.kill('SIGHUP');
  await running.ended;
  assert.deepEqual([await sleeping(), await readdir(temporary)], [false, []]);
});

test('what a test says is cut to what can be read', async (t) => {
  const result = await runTests(t, {
    talks:
      "test('x', () => { console.log('y'.repeat(5000)); throw new Error('z\\n'.repeat(500) + 'w'.repeat(5000)); });",
  });
  assert.equal(lastLine(result), '0 passed, 1 failed, 0 skipped');
  assert.match(result.stdout, /y{400} \.\.\. 4600 characters more/);
  assert.match(result.stdout, /\.\.\. \d+ lines more/);
  assert.ok(result.stdout.length < 10_000, `${result.stdout.length} characters`);
});

test('a file that fails once is run again and named as unsteady, unless it says that it is never repeated', async (t) => {
  const onceOnly = (header: string, mark: string): string =>
    `/** ${header} */\nimport { existsSync, writeFileSync } from 'node:fs';\n` +
    `test('x', () => { if (!existsSync('${mark}')) { writeFileSync('${mark}', ''); throw new Error('at first'); } });`;
  const again = await runTests(t, { shaky: onceOnly('Shaky.', 'mark-a') });
  assert.equal(lastLine(again), '1 passed, 0 failed, 0 skipped', again.stdout);
  assert.match(again.stdout, /^UNSTEADY, .*\n {2}test\/a\/shaky\.test\.ts$/m);
  assert.match(again.stdout, /Error: at first/);
  const never = await runTests(t, { shaky: onceOnly('Shaky. Never repeated.', 'mark-b') });
  assert.equal(lastLine(never), '0 passed, 1 failed, 0 skipped', never.stdout);
});

test('a file that runs behind others has the lowest share of the processors, and others have theirs', async (t) => {
  const says = (header: string): string =>
    `/** ${header} */\nimport { existsSync, readFileSync } from 'node:fs';\nimport { getPriority } from 'node:os';\n` +
    "const group = '/proc/self/autogroup'; const share = existsSync(group) ? readFileSync(group, 'utf8').trim() : '';\n" +
    "test('x', (t) => { t.diagnostic(`${getPriority()} ${share}`); });";
  const { stdout } = await runTests(t, { behind: says('Runs behind.'), beside: says('As any.') });
  const shareOf = (file: string): string => new RegExp(`${file}\\.test\\.ts .*\\n +(.*)`).exec(stdout)?.[1] ?? '';
  // A kernel without groups of sessions has nothing to say of theirs.
  assert.match(shareOf('behind'), /^19 (.* nice 19)?$/, stdout);
  assert.match(shareOf('beside'), new RegExp(`^${getPriority()} (.* nice 0)?$`), stdout);
});

test('no test files at all is a failure', async (t) => {
  const result = await runTests(t, {});
  assert.equal(lastLine(result), '0 passed, 0 failed, 0 skipped');
  assert.equal(result.exitCode, 1);
});
