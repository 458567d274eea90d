/**
 * What holds for every source file and no linter checks: size, a header comment, no loose ends, no names of machines or
 * registries, and generated code that is what the generator makes of proto/.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, readdir, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { test } from 'node:test';
import { runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const top = join(import.meta.dirname, '../..');
const generated = 'src/wire/';
const linesMax = 400;

/** Written with gaps, so that this file does not contain what it looks for. */
const pattern = (text: string): RegExp => new RegExp(text.replaceAll('~', ''), 'm');

const forbidden: readonly (readonly [what: string, pattern: RegExp, sample: string])[] = [
  ['a loose end', pattern('\\b(TO~DO|FIX~ME|XX~X)\\b'), '// TO~DO: later'],
  [
    'a switched-off check',
    pattern('@ts-~(ignore|expect-error|nocheck)|(eslint|biome)-~(disable|ignore)'),
    '// @ts-~ignore',
  ],
  ['a test switched off, or on alone', pattern('\\b(test|it|describe|suite)\\.~(only|skip|todo)\\('), 'test.~only(x'],
  [
    'a package registry',
    pattern('npm~js\\.org|yarn~pkg\\.com|proxy\\.~golang\\.org|crates~\\.io'),
    'proxy.~golang.org',
  ],
  ['a path of one machine', pattern('(^|[^\\w.])/(wo~rk|home/[a-z]+|Us~ers)/'), ' /wo~rk/x'],
  ['a merge conflict', pattern('^[<>]{7} '), '<~<<<<<< a'],
];

test('the forbidden words are recognised', () => {
  for (const [what, found, sample] of forbidden) assert.match(sample.replaceAll('~', ''), found, what);
});

const read = (file: string): Promise<string> => readFile(join(top, file), 'utf8');

const listFiles = async (...under: string[]): Promise<string[]> => {
  const listed = await runOk(['git', 'ls-files', '--cached', '--others', '--exclude-standard', ...under], { cwd: top });
  const files = listed.split('\n').filter((file) => file !== '' && !file.startsWith(generated));
  return files.sort();
};

/** Pictures and databases have bytes that no text has, and by chance those of a word. */
const isBinary = (bytes: Buffer): boolean => bytes.includes(0);

const readText = async (file: string): Promise<string> => {
  const bytes = await readFile(join(top, file)).catch(() => Buffer.alloc(0));
  return isBinary(bytes) ? '' : bytes.toString('utf8');
};

const readAll = (files: readonly string[]): Promise<(readonly [file: string, text: string])[]> =>
  Promise.all(files.map(async (file) => [file, await readText(file)] as const));

const sources = async (): Promise<(readonly [file: string, text: string])[]> => {
  const files = (await listFiles('src', 'test', 'scripts', 'bench', 'bin')).filter((file) => file.endsWith('.ts'));
  const texts = (await readAll(files)).filter(([, text]) => text !== '');
  assert.ok(texts.length > 0, 'no source files found');
  return texts;
};

test(`no source file has more than ${linesMax} lines`, async () => {
  const long = (await sources())
    .map(([file, text]) => ({ file, lines: text.split('\n').length - 1 }))
    .filter(({ lines }) => lines > linesMax);
  assert.deepEqual(long, []);
});

test('every source file begins with a comment that says what it is for', async () => {
  const bare = (await sources())
    .filter(([, text]) => !/^(#!.*\n)?\/\*\*[\s*]*\S[\s\S]{30,}?\*\//.test(text))
    .map(([file]) => file);
  assert.deepEqual(bare, []);
});

test('every source file that a comment names is there', async () => {
  const files = (await listFiles()).map((file) => `/${file}`);
  const gone = (await sources()).flatMap(([file, text]) => {
    const comments = [...text.matchAll(/\/\*\*[\s\S]*?\*\/|\/\/ [^\n]*/g)].join('\n');
    return [...comments.matchAll(/(?<![\w*{}./-])[\w/-]*[\w-]\.ts\b/g)]
      .map(([named]) => named)
      .filter((named) => !files.some((path) => path.endsWith(`/${named}`)))
      .map((named) => `${file}: ${named}`);
  });
  assert.deepEqual(gone, []);
});

test('no file holds loose ends, switched-off checks, or names of machines and package registries', async () => {
  const files = (await listFiles()).filter((file) => file !== 'package-lock.json' && file !== 'LICENSE');
  const found = (await readAll(files)).flatMap(([file, text]) =>
    forbidden.flatMap(([what, words]) => {
      const match = words.exec(text);
      return match === null ? [] : [`${file}: ${what}: ${match[0]}`];
    }),
  );
  assert.deepEqual(found, []);
});

interface Package {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly devDependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

test('the lock file holds every package that one of them asks for, and names no package registry', async () => {
  const [lockText, manifestText] = await Promise.all([read('package-lock.json'), read('package.json')]);
  assert.doesNotMatch(lockText, /"resolved": "https?:/);
  const { packages } = JSON.parse(lockText) as { packages: Readonly<Record<string, Package>> };
  const asked = ({ dependencies, devDependencies, optionalDependencies }: Package): Package => ({
    dependencies,
    devDependencies,
    optionalDependencies,
  });
  assert.deepEqual(asked(packages[''] ?? {}), asked(JSON.parse(manifestText) as Package), "run 'npm install'");
  // Those of other platforms too, whether the registry at hand offers them or not: "npm ci" refuses a lock without.
  const names = new Set(Object.keys(packages).map((path) => path.slice(path.lastIndexOf('node_modules/') + 13)));
  const missing = Object.values(packages)
    .flatMap((entry) => Object.keys({ ...entry.dependencies, ...entry.optionalDependencies }))
    .filter((name) => !names.has(name));
  assert.deepEqual(missing, []);
});

/** The TypeScript in it. */
const readTree = async (dir: string): Promise<Map<string, string>> => {
  const entries = await readdir(dir, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile() && entry.name.endsWith('.ts'))
    .map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(
    files.map(async (file) => [relative(dir, file), await readFile(file, 'utf8')] as const),
  );
  return new Map(texts.sort(([a], [b]) => a.localeCompare(b)));
};

test('the generated code is what the generator makes of proto/, and what is written beside it stays', async (t) => {
  const dir = await tempDir(t);
  const readme = join(dir, generated, 'README.md');
  await mkdir(join(dir, generated), { recursive: true });
  await writeFile(readme, 'written by hand');
  await runOk([process.execPath, join(top, 'scripts/gen.ts'), dir], { cwd: top, timeoutMs: 60_000 });
  assert.equal(await readFile(readme, 'utf8'), 'written by hand');
  assert.ok((await readFile(join(dir, generated, 'descriptors.ts'), 'utf8')).includes('runtime.v1.RuntimeService'));
  const [made, committed] = await Promise.all([readTree(join(dir, generated)), readTree(join(top, generated))]);
  assert.deepEqual([...committed.keys()], [...made.keys()]);
  const stale = [...made].filter(([file, text]) => committed.get(file) !== text).map(([file]) => file);
  assert.deepEqual(stale, [], "run 'npm run gen'");
});
