/** bin/scribe works from a clone wherever it is called from, and says what to do where it cannot. */
import assert from 'node:assert/strict';
import { chmod, copyFile, mkdir, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { type CommandResult, run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const top = join(import.meta.dirname, '../..');

/** A clone with nothing in it but the launcher and a command line that prints what it was started with. */
const cloneOf = async (t: TestContext): Promise<string> => {
  const dir = await tempDir(t);
  await mkdir(join(dir, 'bin'));
  await mkdir(join(dir, 'src/cli'), { recursive: true });
  await copyFile(join(top, 'bin/scribe'), join(dir, 'bin/scribe'));
  await chmod(join(dir, 'bin/scribe'), 0o755);
  await writeFile(join(dir, 'package.json'), '{"type":"module"}');
  await writeFile(
    join(dir, 'src/cli/main.ts'),
    'const words: readonly string[] = process.argv.slice(2);\n' +
      'console.log(JSON.stringify({ words, pid: process.pid, node: process.version }));\n',
  );
  return dir;
};

const installNode = async (dir: string): Promise<void> => {
  await mkdir(join(dir, 'node_modules/.bin'), { recursive: true });
  await symlink(process.execPath, join(dir, 'node_modules/.bin/node'));
};

const said = ({ exitCode, stdout, stderr }: CommandResult): { words: string[]; pid: number; node: string } => {
  assert.equal(exitCode, 0, stderr);
  assert.equal(stderr, '');
  return JSON.parse(stdout) as { words: string[]; pid: number; node: string };
};

/** A PATH with the usual tools but no node. */
const bare = async (t: TestContext): Promise<NodeJS.ProcessEnv> => {
  const dir = await tempDir(t);
  for (const tool of ['sh', 'readlink', 'dirname']) await symlink(`/bin/${tool}`, join(dir, tool));
  return { PATH: dir };
};

test('the launcher passes its arguments on, whatever is in them', async (t) => {
  const dir = await cloneOf(t);
  await installNode(dir);
  const words = ['history', '--pod', 'a b', '$HOME', '"', ''];
  assert.deepEqual(said(await run([join(dir, 'bin/scribe'), ...words])).words, words);
});

test('the launcher finds its clone through links, relative and absolute, and from any directory', async (t) => {
  const dir = await cloneOf(t);
  await installNode(dir);
  const elsewhere = await tempDir(t);
  await symlink(join(dir, 'bin/scribe'), join(elsewhere, 'absolute'));
  await symlink('absolute', join(elsewhere, 'relative'));
  for (const argv of [[join(elsewhere, 'absolute')], [join(elsewhere, 'relative')], ['./relative']]) {
    assert.deepEqual(said(await run([...argv, 'x'], { cwd: elsewhere })).words, ['x']);
  }
  const env = { ...process.env, PATH: `${elsewhere}:${process.env['PATH']}` };
  assert.deepEqual(said(await run(['relative', 'y'], { env })).words, ['y']);
});

test('the launcher becomes the program: who started it knows its pid', async (t) => {
  const dir = await cloneOf(t);
  await installNode(dir);
  const { stdout } = await run(['sh', '-c', `echo $$; exec ${join(dir, 'bin/scribe')}`]);
  const [pid, line = '{}'] = stdout.split('\n');
  assert.equal((JSON.parse(line) as { pid: number }).pid, Number(pid));
});

test('without dependencies the launcher says how to install them', async (t) => {
  const dir = await cloneOf(t);
  const { exitCode, stderr } = await run([join(dir, 'bin/scribe')]);
  assert.equal(exitCode, 1);
  assert.match(stderr, /dependencies are not installed: run 'sh scripts\/setup.sh run' in /);
  assert.ok(stderr.includes(dir));
});

test('where npm has no Node for the machine, one from PATH serves if it is new enough', async (t) => {
  const dir = await cloneOf(t);
  await mkdir(join(dir, 'node_modules'));
  const env = await bare(t);
  const none = await run([join(dir, 'bin/scribe')], { env });
  assert.equal(none.exitCode, 1);
  assert.match(none.stderr, /needs Node 24 or later; found none in PATH/);

  const old = await tempDir(t);
  await writeFile(join(old, 'node'), '#!/bin/sh\necho 20\n', { mode: 0o755 });
  const tooOld = await run([join(dir, 'bin/scribe')], { env: { PATH: `${old}:${env['PATH']}` } });
  assert.equal(tooOld.exitCode, 1);
  assert.match(tooOld.stderr, /needs Node 24 or later; found Node 20 in PATH/);
  assert.ok(tooOld.stderr.includes(`run 'sh scripts/setup.sh run' in ${dir}`));

  const current = await tempDir(t);
  await symlink(process.execPath, join(current, 'node'));
  const { node } = said(await run([join(dir, 'bin/scribe')], { env: { PATH: `${current}:${env['PATH']}` } }));
  assert.equal(node, process.version);
});
