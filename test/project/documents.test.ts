/** The documents agree with what is there: links lead somewhere, scripts and folders that exist are described. */
import assert from 'node:assert/strict';
import { access, readFile, readdir } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { runOk } from '../support/process.ts';

const top = join(import.meta.dirname, '../..');
const read = (file: string): Promise<string> => readFile(join(top, file), 'utf8');

const documents = async (): Promise<string[]> => {
  const listed = await runOk(['git', 'ls-files', '--cached', '--others', '--exclude-standard', '*.md'], { cwd: top });
  return listed.split('\n').filter((file) => file !== '');
};

test('every link between documents leads somewhere', async () => {
  const dead: string[] = [];
  for (const file of await documents()) {
    for (const [, target = ''] of (await read(file)).matchAll(/\]\(([^)#:]+)(?:#[^)]*)?\)/g)) {
      await access(join(top, dirname(file), target)).catch(() => dead.push(`${file}: ${target}`));
    }
  }
  assert.deepEqual(dead, []);
});

test('every file of ours that a document names is there', async () => {
  const gone: string[] = [];
  for (const file of await documents()) {
    const text = await read(file);
    for (const [named] of text.matchAll(/(?<![\w./-])(?:src|test|scripts|docs|bench)\/[\w./-]*\w/g))
      await access(join(top, named)).catch(() => gone.push(`${file}: ${named}`));
    // A page about a folder calls its files by their names alone.
    const folder = dirname(file);
    if (!file.endsWith('/README.md')) continue;
    const below = await readdir(join(top, folder), { recursive: true });
    for (const [, named = ''] of text.matchAll(/`(?!src\/)([\w/-]+\.(?:ts|sql))`/g))
      if (!below.some((path) => `/${path}`.endsWith(`/${named}`))) gone.push(`${file}: ${named}`);
  }
  assert.deepEqual(gone, []);
});

test('every decision is in the index', async () => {
  const index = await read('docs/decisions/README.md');
  const pages = (await readdir(join(top, 'docs/decisions'))).filter((name) => name !== 'README.md');
  assert.deepEqual(
    pages.filter((name) => !index.includes(`(${name})`)),
    [],
  );
});

test('every npm script is described to contributors or users', async () => {
  const { scripts } = JSON.parse(await read('package.json')) as { scripts: Record<string, string> };
  const text = (await read('CONTRIBUTING.md')) + (await read('README.md'));
  const undescribed = Object.keys(scripts).filter((name) => !new RegExp(`npm (run )?${name}\\b`).test(text));
  assert.deepEqual(undescribed, []);
});

test('every folder of src is in the layer table, and every adapter in the list of adapters', async () => {
  const [architecture, adapters] = await Promise.all([read('docs/architecture.md'), read('src/adapters/README.md')]);
  const folders = async (path: string): Promise<string[]> =>
    (await readdir(join(top, path), { withFileTypes: true }))
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => name);
  assert.deepEqual(
    (await folders('src')).filter((name) => !architecture.includes(`| src/${name}`)),
    [],
  );
  assert.deepEqual(
    (await folders('src/adapters')).filter((name) => !adapters.includes(`| ${name} |`)),
    [],
  );
});

test('every top folder says what it is for', async () => {
  const missing: string[] = [];
  const inSrc = (await readdir(join(top, 'src'))).map((name) => `src/${name}`);
  for (const folder of [...inSrc, 'bench', 'migrations', 'proto', 'scripts', 'test']) {
    await access(join(top, folder, 'README.md')).catch(() => missing.push(folder));
  }
  assert.deepEqual(missing, []);
});
