/** What the bundles in dist/ load at their start: only what whoever waits for that start needs. `npm run build` makes them. */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';

const dist = join(import.meta.dirname, '../../dist');

const textOf = (name: string): Promise<string> => readFile(join(dist, name), 'utf8');

test('no bundle imports node:http, which would load all that Node has for fetch()', async () => {
  const bundles = (await readdir(dist)).filter((name) => name.endsWith('.js'));
  assert.ok(bundles.includes('adapters-images-pull-thread.js'), bundles.join(' '));
  const importsHttp = /^(?:import .*|\} )from "(?:node:)?http";$/m;
  for (const name of bundles) assert.equal(importsHttp.test(await textOf(name)), false, name);
});
