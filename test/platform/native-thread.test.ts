/** Threads that load what is native, and are ended meanwhile, or with the process: nothing comes of it. Runs alone. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
const threads = new URL('../../src/platform/native-thread.ts', import.meta.url).href;
const background = new URL('../../src/adapters/images/background-thread.ts', import.meta.url).href;
let dir = '';

const packages = {
  'better-sqlite3': `new loaded.default(':memory:');`,
  koffi: `loaded.load('libc.so.6').func('int getpid()');`,
} as const;
type Package = keyof typeof packages;

const programOf = (name: Package): string => join(dir, `${name}.mts`);

before(async () => {
  dir = await tempDir(owner);
  for (const [name, use] of Object.entries(packages))
    await writeFile(
      join(dir, `${name}.mts`),
      `import { parentPort, workerData } from 'node:worker_threads';
      import { tellUp } from '${threads}';
      parentPort.postMessage('loads');
      const loaded = await import('${import.meta.resolve(name)}');
      ${use}
      tellUp(workerData);
      setInterval(() => {}, 1000);`,
    );
});

/** What a process makes of eight threads at a time, each ended by `one` a little later than the one before. */
const exitOf = async (rounds: string, one: string): Promise<string> => {
  const program = `
    import { once } from 'node:events';
    import { pathToFileURL } from 'node:url';
    import { startNativeThread } from '${threads}';
    import { createBackgroundThread } from '${background}';
    const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    const one = async (ms) => { ${one} };
    for (const round of ${rounds}) await Promise.all(Array.from({ length: 8 }, (_, k) => one((round * 8 + k) * 0.1)));`;
  const main = join(dir, 'main.mjs');
  await writeFile(main, program);
  const { exitCode, stderr } = await run([process.execPath, main]);
  return `${exitCode} ${stderr}`;
};

const started = (name: Package, then: string): string => `
  const thread = startNativeThread(pathToFileURL(${JSON.stringify(programOf(name))}), null);
  await once(thread.worker, 'message');
  wait(ms);
  ${then}`;

for (const name of ['better-sqlite3', 'koffi'] as const) {
  test(`a thread that is ended while it loads ${name} does not take the process along`, async () => {
    assert.equal(await exitOf('Array(6).keys()', started(name, 'await thread.end();')), '0 ');
  });

  test(`nor does a process that ends while ${name} is loaded end badly`, async () => {
    for (let round = 0; round < 2; round += 1)
      assert.equal(await exitOf(`[${round}]`, started(name, 'process.exit(0);')), '0 ');
  });
}

test('a background thread that is closed while it starts does not take the daemon along', async () => {
  const closed = `
    const { promise: loads, resolve } = Promise.withResolvers();
    const program = pathToFileURL(${JSON.stringify(programOf('koffi'))});
    const options = { program, data: null, idleMs: 1000, onMessage: resolve, onFailure: (error) => { throw error; } };
    const thread = createBackgroundThread(options);
    thread.post(null);
    await loads;
    wait(ms);
    await thread.close();`;
  for (let times = 0; times < 2; times += 1) assert.equal(await exitOf('Array(6).keys()', closed), '0 ');
});
