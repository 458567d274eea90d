/** Threads that load SQLite, and are ended meanwhile, or with the process: nothing comes of it. Runs alone. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
const threads = new URL('../../src/journal/sqlite-thread.ts', import.meta.url).href;
const sqlite = import.meta.resolve('better-sqlite3');
let dir = '';
let path = '';

before(async () => {
  dir = await tempDir(owner);
  path = join(dir, 'thread.mts');
  await writeFile(
    path,
    `import { parentPort, workerData } from 'node:worker_threads';
    import Database from '${sqlite}';
    import { tellUp } from '${threads}';
    parentPort.postMessage('loads');
    new Database(':memory:');
    tellUp(workerData.isUp);
    setInterval(() => {}, 1000);`,
  );
});

/** Eight threads at a time, and what is done with them once they load SQLite, each a little later than the one before. */
const exitOf = async (rounds: string, then: string): Promise<string> => {
  const program = `
    import { once } from 'node:events';
    import { pathToFileURL } from 'node:url';
    import { startSqliteThread } from '${threads}';
    const wait = (ms) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
    const one = async (ms) => {
      const thread = startSqliteThread(pathToFileURL(${JSON.stringify(path)}), 'test', {});
      const gone = once(thread.worker, 'exit');
      await once(thread.worker, 'message');
      wait(ms);
      ${then}
      await gone;
    };
    for (const round of ${rounds}) await Promise.all(Array.from({ length: 8 }, (_, k) => one((round * 8 + k) * 0.02)));`;
  const main = join(dir, 'main.mjs');
  await writeFile(main, program);
  const { exitCode, stderr } = await run([process.execPath, main]);
  return `${exitCode} ${stderr}`;
};

test('a thread that is ended while it loads SQLite does not take the process along', async () => {
  assert.equal(await exitOf('Array(8).keys()', 'thread.end();'), '0 ');
});

test('nor does a process that ends meanwhile end badly', async () => {
  for (let round = 0; round < 4; round += 1) assert.equal(await exitOf(`[${round}]`, 'process.exit(0);'), '0 ');
});
