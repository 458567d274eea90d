/** `scribe sql` and the views that docs/sql.md describes: on a made journal, as any SQLite and as scribe reads it. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { DatabaseSync } from 'node:sqlite';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { openQueries } from '../../src/journal/queries.ts';
import { runContainer } from '../engine/rig.ts';
import { cleanupAfterAll, type Owner } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { image } from './story.ts';
import { jsonLines, recordsOf, rootWith, type Said, scribe, startNode } from './support.ts';

const docs = new URL('../../docs/sql.md', import.meta.url);

/** As a scribe wrote it that had no views. */
const forgetViews = (path: string): void => {
  const old = new DatabaseSync(path);
  for (const view of ['nri_decisions', 'image_pulls', 'exec_sessions', 'calls', 'exits', 'containers', 'pods'])
    old.exec(`DROP VIEW ${view}`);
  old.exec(
    "DROP TRIGGER schema_delete; DELETE FROM schema WHERE version >= (SELECT version FROM schema WHERE name LIKE '%views%')",
  );
  old.close();
};

describe('sql', () => {
  const owner: Owner = cleanupAfterAll();
  let root = '';
  let path = '';

  before(async () => {
    root = await tempDir(owner);
    path = join(root, 'journal.db');
    await makeJournal({ path, records: 3000, seed: 3 });
  });

  const sql = (...words: readonly string[]): Promise<Said> => scribe(['sql', '--root', root, ...words]);
  const number = (query: string): number => {
    const queries = openQueries(path);
    const [row = []] = queries.ask(query).rows;
    queries.close();
    return Number(row[0]);
  };

  test('every view has the columns that its page describes, and no other', async () => {
    const sections = (await readFile(docs, 'utf8')).split(/^## /m).slice(1);
    const queries = openQueries(path);
    for (const section of sections) {
      const [view = ''] = /^\w+/.exec(section) ?? [];
      const described = [...section.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) => names.match(/\w+/g) ?? []);
      const { columns } = queries.ask(`SELECT * FROM ${view} LIMIT 0`);
      assert.deepEqual([...columns].sort(), ['seq', 'at', 'time', ...described].sort(), view);
    }
    queries.close();
    assert.equal(sections.length, 7);
  });

  test('the queries of the page are answered, by any other SQLite too', async () => {
    const page = await readFile(docs, 'utf8');
    const examples = [...page.matchAll(/^ {4}((?:SELECT|WITH) [^;]*;)$/gm)].map(([, query = '']) => query);
    assert.equal(examples.length, 8);
    const other = new DatabaseSync(path, { readOnly: true });
    const queries = openQueries(path);
    for (const query of examples)
      assert.equal([...queries.ask(query).rows].length, other.prepare(query).all().length, query);
    queries.close();
    other.close();
  });

  test('the views tell what the records do', async () => {
    const records = (type: string): number => number(`SELECT count(*) FROM journal WHERE type = '${type}'`);
    assert.equal(number('SELECT count(*) FROM calls'), records('call.received'));
    assert.equal(number('SELECT count(ended_seq) FROM calls'), records('call.completed'));
    assert.equal(number('SELECT count(*) FROM pods'), records('sandbox.requested'));
    assert.equal(number('SELECT count(removed) FROM pods'), records('sandbox.removed'));
    assert.equal(number('SELECT count(*) FROM containers'), records('container.requested'));
    assert.equal(number('SELECT count(*) FROM exits'), records('container.exited'));
    assert.equal(
      number("SELECT count(*) FROM nri_decisions WHERE decision = 'adjusted'"),
      records('container.adjusted'),
    );
    assert.ok(number("SELECT count(*) FROM exits WHERE reason = 'OOMKilled' AND oom_kills = 1 AND signal = 9") > 0);
    const nowhere =
      'SELECT count(*) FROM exec_sessions WHERE container IS NULL OR pod IS NULL OR namespace IS NULL OR command IS NULL';
    assert.equal(number(nowhere), 0);
    assert.ok(number('SELECT count(*) FROM image_pulls WHERE code = 0 AND size_bytes > 0') > 0);
  });

  test('views that are joined lead from the rows of one to those of the other, and look at nothing else', () => {
    const other = new DatabaseSync(path, { readOnly: true });
    const joins = [
      'SELECT p.name, c.name FROM containers c JOIN pods p ON p.id = c.pod_id WHERE c.seq > 2000',
      'SELECT c.name, e.reason FROM exits e JOIN containers c ON c.id = e.container_id WHERE e.seq > 2000',
      'SELECT c.method, k.name FROM calls c JOIN containers k ON k.id = c.container_id WHERE c.seq > 2000',
    ];
    for (const join of joins) {
      const details = other
        .prepare(`EXPLAIN QUERY PLAN ${join}`)
        .all()
        .map(({ detail }) => String(detail))
        .filter((detail) => /^SCAN|AUTOMATIC|^SEARCH n USING /.test(detail));
      // All things may be gone through once, for rows of the one; those of the other are found by their ids.
      const [last, ...before] = details.toReversed();
      assert.match(last ?? '', /INDEX names_of_(pods|containers) \(<expr>=\?\)$/, join);
      assert.ok(before.length <= 1 && !/AUTOMATIC|SCAN/.test(before.join()), `${join}: ${details.join(', ')}`);
    }
    other.close();
  });

  test('a journal from before the views is asked all the same', async () => {
    forgetViews(path);
    const { stdout } = await sql('--json', 'SELECT count(*) > 0 AS some FROM pods');
    assert.deepEqual(jsonLines(stdout), [{ some: 1 }]);
  });

  test('every migration that makes views is theirs, too', async (t) => {
    const node = await startNode();
    await node.ask({ method: 'PullImage', image, credentials: null });
    const { podSandboxId } = await runContainer(node);
    const [{ id = '' } = {}] = [...node.engine.state.images.values()];
    const config = { metadata: { name: 'by-id' }, image: { image: id, userSpecifiedImage: image } };
    await node.ask({ method: 'CreateContainer', podSandboxId, config });
    const { dir, journalPath } = await rootWith(t, recordsOf(node));
    const ask = async (): Promise<unknown> => {
      const queries = ['containers', 'calls'].map(
        (view) => `SELECT image FROM ${view} WHERE ${view === 'calls' ? 'container' : 'name'} = 'by-id'`,
      );
      return (await scribe(['sql', '--root', dir, '--json', queries.join(' UNION ALL ')])).stdout;
    };
    const now = await ask();
    forgetViews(journalPath);
    assert.equal(await ask(), now);
    assert.deepEqual(jsonLines(String(now)), [{ image }, { image }]);
  });

  test('a table for people', async () => {
    const { stdout } = await sql("SELECT 1 AS one, NULL AS none, x'00ff' AS bytes, 9223372036854775807 AS big");
    assert.equal(stdout, 'one  none  bytes  big\n1          00ff   9223372036854775807\n');
  });

  test('a cell may hold what ends a line elsewhere', async () => {
    // Of a client's annotation, say.
    const query = "SELECT 'a' || char(8232) || 'b' || char(8233, 13, 10) AS text, 1 AS one";
    const { exitStatus, stdout, stderr } = await sql('--json', query);
    assert.equal(exitStatus, 0, stderr);
    assert.deepEqual(jsonLines(stdout), [{ text: 'a\u2028b\u2029\r\n', one: 1 }]);
  });

  test('columns with the same name are told apart in JSON, too', async () => {
    const { stdout } = await sql('--json', 'SELECT 1 AS name, 2 AS name, 3 AS name');
    assert.deepEqual(jsonLines(stdout), [{ name: 1, 'name:1': 2, 'name:2': 3 }]);
  });

  test('nothing that changes anything is taken, and what is wrong is said', async () => {
    for (const query of [
      'DELETE FROM records',
      "ATTACH '/tmp/x' AS x",
      'PRAGMA query_only = OFF',
      'SELECT 1; SELECT 2',
    ]) {
      const { exitStatus, stderr } = await sql(query);
      assert.equal(exitStatus, 1, query);
      assert.match(stderr, /The journal does not answer that: /, query);
    }
    assert.match((await sql('SELECT * FROM nowhere')).stderr, /no such table: nowhere/);
    assert.equal((await sql('--time-limit', '5 minutes', 'SELECT 1')).exitStatus, 2);
  });

  test('a query is read from standard input, and ended when its time is over', async () => {
    // As the page has its queries: with a comment in front.
    for (const query of ['-- Seven.\nSELECT 7 AS seven', '--Seven.\nSELECT 7 AS seven'])
      assert.deepEqual(await sql('--json', query), { exitStatus: 0, stdout: '{"seven":7}\n', stderr: '' });
    const noSuch = await sql('SELECT * FROM call');
    assert.match(
      noSuch.stderr,
      /: no such table: call\. There are calls, containers, .*pods\. docs\/sql\.md describes them\./,
    );
    const column = await sql('SELECT exit_code FROM Exits');
    assert.match(
      column.stderr,
      /: no such column: exit_code\. exits has [^.]*exit_status, [^.]*\. docs\/sql\.md describes them\./,
    );
    assert.match((await sql('SELECT nowhere')).stderr, /: no such column: nowhere\. docs\/sql\.md describes them\./);
    const read = await scribe(['sql', '--root', root, '--json'], { stdin: 'SELECT 7 AS seven' });
    assert.deepEqual(jsonLines(read.stdout), [{ seven: 7 }]);
    const endless = 'WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n';
    const { exitStatus, stderr } = await sql('--time-limit', '500ms', endless);
    assert.equal(exitStatus, 1);
    assert.match(stderr, /took longer than 500 ms and was ended/);
    // As people say that they want none.
    const unlimited = await sql('--time-limit', '9999h', 'SELECT 1');
    assert.equal(unlimited.exitStatus, 0, unlimited.stderr);
  });
});
