/** What the bundles in dist/ load at their start: only what whoever waits for that start needs. `npm run build` makes them. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

const dist = join(import.meta.dirname, '../../dist');

const textOf = (name: string): Promise<string> => readFile(join(dist, name), 'utf8');

/** The packages that a bundle loads with its static imports, as esbuild notes them: "zod/v4/core". */
const packagesOf = async (name: string): Promise<ReadonlySet<string>> => {
  const seen = new Set<string>();
  const packages = new Set<string>();
  const read = async (file: string): Promise<void> => {
    if (seen.has(file)) return;
    seen.add(file);
    const text = await textOf(file);
    for (const [, path = ''] of text.matchAll(/^\/\/ .*node_modules\/(.+)\/[^/]+$/gm)) packages.add(path);
    for (const [, chunk = ''] of text.matchAll(/^(?:import .*|\} from )"\.\/(chunk-.+\.js)";$/gm)) await read(chunk);
  };
  await read(name);
  return packages;
};

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
