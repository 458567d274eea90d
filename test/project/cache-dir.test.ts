/** Programs that are built once are looked for where setup.sh puts them, whatever XDG_CACHE_HOME is. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { cacheDir } from '../../scripts/lib/cache-dir.ts';
import { runOk } from '../support/process.ts';

const setup = join(import.meta.dirname, '../../scripts/setup.sh');

test('what is empty or relative is as none, in TypeScript and in the shell', async () => {
  // The lines of setup.sh that say where, without what it does there.
  const [lines = ''] = /^case \$\{XDG_CACHE_HOME[^]*?^cache=.*$/m.exec(await readFile(setup, 'utf8')) ?? [];
  for (const [asked, is] of [
    ['', join(homedir(), '.cache/scribe')],
    ['relative', join(homedir(), '.cache/scribe')],
    ['/var/cache/me', '/var/cache/me/scribe'],
  ] as const) {
    assert.equal(cacheDir(asked), is);
    const env = { ...process.env, HOME: homedir(), XDG_CACHE_HOME: asked };
    assert.equal(await runOk(['sh', '-euc', `${lines}\necho "$cache"`], { env }), `${is}/bin\n`);
  }
});
