/** What the bundles in dist/ load at their start: only what whoever waits for that start needs. `npm run build` makes them. */
import { execFile } from 'node:child_process';
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { promisify } from 'node:util';

const dist = join(import.meta.dirname, '../../dist');

const textOf = (name: string): Promise<string> => readFile(join(dist, name), 'utf8');

/** A bundle and what it loads with its static imports: texts by their names. */
const loadedWith = async (name: string): Promise<ReadonlyMap<string, string>> => {
  const texts = new Map<string, string>();
  const read = async (file: string): Promise<void> => {
    if (texts.has(file)) return;
    const text = await textOf(file);
    texts.set(file, text);
    for (const [, chunk = ''] of text.matchAll(/^(?:import .*|\} from )"\.\/(chunk-.+\.js)";$/gm)) await read(chunk);
  };
  await read(name);
  return texts;
};

/** The packages among them, as esbuild notes them: "zod/v4/core". */
const packagesOf = async (name: string): Promise<ReadonlySet<string>> => {
  const texts = [...(await loadedWith(name)).values()];
  const notes = texts.flatMap((text) => [...text.matchAll(/^\/\/ .*node_modules\/(.+)\/[^/]+$/gm)]);
  return new Set(notes.map(([, path = '']) => path));
};

const bin = join(import.meta.dirname, '../../bin/scribe');
const main = join(import.meta.dirname, '../../src/cli/main.ts');

const helpOf = async (...words: string[]): Promise<string> => {
  const [program = '', ...before] = words;
  return (await promisify(execFile)(program, [...before, '--help'])).stdout;
};

for (const command of ['serve', 'history', 'why', 'at', 'sql'])
  test(`scribe ${command} is loaded from few files, and is the command of the sources`, async () => {
    const files = [...(await loadedWith(`command-${command}.js`)).keys()];
    assert.ok(files.length <= 16, `${files.length}: ${files.join(' ')}`);
    assert.equal(await helpOf(bin, command), await helpOf(process.execPath, main, command));
  });

test('other words find every command', async () => {
  assert.equal(await helpOf(bin), await helpOf(process.execPath, main));
  assert.equal(await helpOf(bin, 'journal', 'info'), await helpOf(process.execPath, main, 'journal', 'info'));
});

test('no bundle imports node:http, which would load all that Node has for fetch()', async () => {
  const bundles = (await readdir(dist)).filter((name) => name.endsWith('.js'));
  assert.ok(bundles.includes('adapters-images-pull-thread.js'), bundles.join(' '));
  const importsHttp = /^(?:import .*|\} )from "(?:node:)?http";$/m;
  for (const name of bundles) assert.equal(importsHttp.test(await textOf(name)), false, name);
});

test('the thread that pulls loads no package but the small half of zod before it pulls', async () => {
  const packages = await packagesOf('adapters-images-pull-thread.js');
  assert.deepEqual([...packages].toSorted(), ['zod/v4/core', 'zod/v4/mini']);
});

test('the thread of sessions loads neither WebSockets nor TLS before somebody speaks them', async () => {
  const name = 'daemon-sessions-thread.js';
  assert.deepEqual([...(await packagesOf(name))], []);
  assert.doesNotMatch(await textOf(name), /^(?:import .*|\} )from "node:(?:https|tls)";$/m);
});
