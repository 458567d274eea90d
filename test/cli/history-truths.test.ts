/** `scribe history` where it could be misread: allowed sessions, daemons that were killed, scribe's own calls, slow readers. */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { describe, test } from 'node:test';
import Database from 'better-sqlite3';
import { write } from '../../src/cli/io.ts';
import { runContainer } from '../engine/rig.ts';
import { tempDir } from '../support/temp-dir.ts';
import { rowsOf, startNs } from './story.ts';
import { kubelet, recordsOf, rootWith, scribe, startNode } from './support.ts';

describe('a history tells what was, and no more', () => {
  test('a session that was allowed and never begun does not read as if it ran', async (t) => {
    const node = await startNode();
    const { containerId } = await runContainer(node);
    const wanted = { tty: false, stdin: false, stdout: true, stderr: true };
    await node.ask({ method: 'Exec', containerId, cmd: ['rm', '-rf', '/data'], ...wanted });
    const root = await rootWith(t, recordsOf(node));
    const rows = rowsOf((await scribe(['history', '--root', root.dir, '--method', 'Exec'])).stdout);
    assert.deepEqual(
      rows.map(({ WHAT, OUTCOME }) => [WHAT, OUTCOME]),
      [['Exec', 'session allowed (stdout stderr: rm -rf /data)']],
    );
  });

  test('a daemon that was killed is told of by the next one, in any range', async (t) => {
    const first = await startNode();
    const second = await startNode({ contents: first.contents, nowNs: startNs + 10_000_000_000n });
    await second.engine.stop('SIGTERM');
    const third = await startNode({ contents: first.contents, nowNs: startNs + 20_000_000_000n });
    const root = await rootWith(t, recordsOf(third));
    const starts = async (...words: readonly string[]): Promise<boolean[]> => {
      const { stdout } = await scribe(['history', '--root', root.dir, ...words]);
      const started = rowsOf(stdout).filter(({ WHAT }) => WHAT === 'daemon started');
      return started.map(({ OUTCOME = '' }) => OUTCOME.includes('ended without a word: it was killed, or crashed'));
    };
    assert.deepEqual(await starts(), [false, true, false]);
    assert.deepEqual(await starts('--failed'), [true]);
    // What it could say is not said twice.
    const told = recordsOf(third).map((record) => ({
      ...record,
      body: record.body.replace('"crash":null', '"crash":"Error: x"'),
    }));
    const crashed = await scribe(['history', '--root', (await rootWith(t, told)).dir]);
    assert.match(crashed.stdout, /the one before ended with: Error: x$/m);
    assert.doesNotMatch(crashed.stdout, /without a word/);
    // The life that ended so is before the range.
    assert.deepEqual(await starts('--since', '@1800000005'), [true, false]);
    assert.deepEqual(await starts('--since', '@1800000015'), [false]);
  });

  test('a file that is no journal is called that by every command that reads one, with the remedy', async (t) => {
    const [empty, foreign, alike] = [await tempDir(t), await tempDir(t), await tempDir(t)];
    writeFileSync(join(empty, 'journal.db'), '');
    const database = new Database(join(foreign, 'journal.db'));
    // As a schema of ours has it, too.
    database.exec('CREATE TABLE things (name); CREATE TABLE names (id)');
    database.close();
    const other = new Database(join(alike, 'journal.db'));
    other.exec('CREATE TABLE schema (id, name)');
    other.close();
    const bytes = readFileSync(join(alike, 'journal.db'));
    const remedy = '\\. A journal is journal\\.db in the root directory of its node, which --root names';
    for (const words of [
      ['history'],
      ['report'],
      ['verify'],
      ['why', 'web'],
      ['at', 'now', 'get', 'pods'],
      ['diff', '1', '2'],
      ['replay'],
      ['export'],
      ['ui'],
      ['sql', 'SELECT 1'],
      ['prove', '1'],
      ['journal', 'info'],
      ['journal', 'vkey'],
      ['journal', 'backup', join(foreign, 'copy')],
      ['journal', 'compact'],
    ])
      for (const root of [foreign, alike]) {
        const { exitStatus, stdout, stderr } = await scribe([...words, '--root', root]);
        const said = `${stdout}${stderr}`;
        assert.equal(exitStatus, 1, said);
        assert.match(
          said,
          new RegExp(`journal\\.db is a database, but no journal of scribe${remedy}`),
          words.join(' '),
        );
        assert.doesNotMatch(said, /no such (table|column)/);
      }
    assert.deepEqual(readFileSync(join(alike, 'journal.db')), bytes);
    for (const root of [foreign, alike]) assert.deepEqual(readdirSync(root), ['journal.db']);
    const { exitStatus, stderr } = await scribe(['history', '--root', empty]);
    assert.equal(exitStatus, 1);
    const said = new RegExp(`journal\\.db is no journal of scribe, or one to which nothing was ever written${remedy}`);
    assert.match(stderr, said);
  });

  test("scribe's own commands are called by their name", async (t) => {
    const node = await startNode();
    const caller = { ...kubelet, executable: '/usr/lib/node/bin/node', program: 'scribe' } as const;
    await node.ask({ method: 'SetLogLevel', level: 'debug' }, caller);
    const root = await rootWith(t, recordsOf(node));
    const [row] = rowsOf((await scribe(['history', '--root', root.dir, '--method', 'SetLogLevel'])).stdout);
    assert.equal(row?.['CALLER'], 'scribe pid 812 uid 0');
  });

  test('a range that begins behind the newest record does not read as if nothing had been done', async (t) => {
    const records = recordsOf(await startNode());
    const root = await rootWith(t, records);
    const head = records.length;
    for (const command of ['history', 'export']) {
      const { stderr } = await scribe([command, '--root', root.dir, '--since', String(head + 1)]);
      const said = `scribe: Nothing was recorded that fits: the journal ends with record ${head}.\n`;
      assert.equal(stderr, said, command);
    }
  });

  test('times are in UTC when that is asked for', async (t) => {
    const root = await rootWith(t, recordsOf(await startNode()));
    const { stdout } = await scribe(['history', '--root', root.dir, '--utc']);
    for (const { TIME = '' } of rowsOf(stdout)) assert.match(TIME, /^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3}Z$/);
  });

  test('on a terminal times say how long ago that was, in colours unless NO_COLOR is set; in a pipe there is neither', async (t) => {
    const root = await rootWith(t, recordsOf(await startNode()));
    t.mock.timers.enable({ apis: ['Date'], now: Number(startNs / 1_000_000n) + 90_000 });
    const { NO_COLOR: noColor, FORCE_COLOR: forceColor } = process.env;
    t.after(() => Object.assign(process.env, noColor === undefined ? {} : { NO_COLOR: noColor }));
    t.after(() => Object.assign(process.env, forceColor === undefined ? {} : { FORCE_COLOR: forceColor }));
    const shown = async (...words: readonly string[]): Promise<string> => {
      const options = { terminal: { columns: 100, rows: 24 }, showsResults: true };
      return (await scribe(['history', '--root', root.dir, ...words], options)).stdout;
    };
    delete process.env['NO_COLOR'];
    delete process.env['FORCE_COLOR'];
    assert.match(await shown(), /\u001b\[1mTIME.*\n.* {2}1 min 30 s ago {2}daemon started/);
    process.env['NO_COLOR'] = '1';
    const plain = await shown('--utc');
    assert.match(plain, /^2027-01-15 08:00:00\.000Z {2}1 min 30 s ago {2}daemon started/m);
    assert.doesNotMatch(plain, /\u001b/);
    delete process.env['NO_COLOR'];
    const { stdout } = await scribe(['history', '--root', root.dir]);
    assert.doesNotMatch(stdout, /\u001b| ago /);
  });

  test('a slow reader leaves no listener behind for each time it was waited for', async () => {
    const slow = new Writable({ highWaterMark: 1, write: (_chunk, _encoding, done) => setImmediate(done) });
    const before = slow.listenerCount('close');
    for (let n = 0; n < 50; n += 1) await write(slow, 'a line\n');
    assert.deepEqual([slow.listenerCount('close'), slow.listenerCount('drain')], [before, 0]);
  });
});
