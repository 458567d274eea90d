/**
 * C12 with a real daemon: what an exception says that nobody handled is in none of the places that tell of it (the log, the
 * crash file, the report, the journal's start, history, doctor and bundle), and where it came from is in all.
 */
import assert from 'node:assert/strict';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { searcherFor } from '../support/canaries.ts';
import { startDaemon } from '../support/daemon.ts';
import { recordsOf } from '../support/journal.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const patienceMs = 10_000;
const planted = ['message', 'cause', 'field', 'rejection'].map((name, n) => ({
  name,
  secret: `canary-${n}-${'91d4c7'.repeat(3)}`,
}));
const search = searcherFor(planted);
const [message, cause, field, rejection] = planted.map(({ secret }) => `'${secret}'`);
/** Throws where nobody handles it, on demand. */
const throwing = `
  const wrong = () => Object.assign(new TypeError(${message}, { cause: new Error(${cause}) }), { code: 'ERR_X', token: ${field} });
  process.on('SIGUSR2', function planted() { throw wrong(); });
  process.on('SIGPROF', () => void Promise.reject(${rejection}));
`;

test('C12: an exception that nobody handled is told of with name, code and frames, and without its message', async (t) => {
  const module = join(await tempDir(t), 'throwing.mjs');
  await writeFile(module, throwing);
  const daemon = await startDaemon(t, { env: { NODE_OPTIONS: `--import=${module}` } });
  const { root, state } = daemon.dirs;
  const reports = async (): Promise<string[]> =>
    (await readdir(root)).filter((name) => name.startsWith('crash-')).toSorted();
  const end = async (signal: NodeJS.Signals): Promise<void> => {
    process.kill(daemon.pid(), signal);
    assert.equal(await Promise.race([daemon.ended(), sleep(patienceMs, 'still there', { ref: false })]), 1);
  };

  await end('SIGUSR2');
  const [name = ''] = await reports();
  const log = daemon.log();
  const [crashFile, report] = await Promise.all(
    [join(state, 'crash.txt'), join(root, name)].map((path) => readFile(path, 'utf8')),
  );
  for (const [place, text = ''] of Object.entries({ log, crashFile, report })) {
    assert.deepEqual(search(text), [], place);
    assert.match(text, /TypeError \[ERR_X\]: \[message left out\](?:\\n|\n) {4}at wrong \(file:.*throwing\.mjs/, place);
    assert.match(text, /Caused by: Error: \[message left out\]/, place);
  }
  await daemon.start();
  await end('SIGPROF');
  assert.match(daemon.log(), /a rejection nobody handled: the daemon ends/);
  await daemon.start();

  const started = (await recordsOf(daemon, { types: ['daemon.started'] })).map(({ body }) => JSON.stringify(body));
  assert.match(started[1] ?? '', /"crash":"Error: an exception nobody handled: \[message left out\]/);
  assert.match(started[2] ?? '', /"crash":"Error: a rejection nobody handled: \[message left out\]/);
  assert.deepEqual(search(started[2] ?? ''), []);
  const output = join(state, 'bundle.tar.gz');
  for (const words of [['history'], ['doctor'], ['bundle', '--since', '1', '--output', output]]) {
    const { stdout, stderr } = await daemon.scribe(...words, '--root', root);
    assert.deepEqual(search(stdout + stderr), [], words.join(' '));
  }
  const bundled = (await run(['tar', '-xzOf', output])).stdout;
  assert.deepEqual(search(bundled), [], 'bundle');
});
