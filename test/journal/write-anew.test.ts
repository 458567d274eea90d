/** A journal of which what is beside the records is damaged: it is written anew from them, and whatever else is set aside whole. */
import assert from 'node:assert/strict';
import { cpSync, existsSync, readdirSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { openReader } from '../../src/journal/open.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import type { Owner } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { closeReads, collect, openTemporary, readRowAt, recordAt, recordsFrom, tearEnd } from './support.ts';

/** With what hangs on the chain in it: read segments, a checkpoint, a snapshot and a tile of the tree. */
const wholeJournal = async (t: Owner): Promise<string> => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 600));
  journal.appendRead(readRowAt(1));
  await closeReads(journal);
  journal.appendRead(readRowAt(2));
  await journal.writeSnapshot({ seq: 600, evolverVersion: 1, state: '{}' });
  await journal.close();
  return path;
};

/** A log that SQLite has not taken into its database. */
const unfinishedLog = async (t: Owner): Promise<string> => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 50));
  const log = join(await tempDir(t), 'log');
  cpSync(`${path}-wal`, log);
  return log;
};

test('C20: damage beside the records is met by a commit or a start once: the journal is written anew from its records', async (t) => {
  const whole = await wholeJournal(t);
  const bodies = async (path: string): Promise<string[]> => {
    const reader = openReader(path);
    try {
      return (await collect(reader.read())).map(({ seq, body }) => `${seq} ${body}`);
    } finally {
      reader.close();
    }
  };
  const before = await bodies(whole);
  for (const [table, without] of [
    ['records_by_call', null],
    ['records_by_stream', null],
    ['sqlite_autoindex_names_1', null],
    ['tree_nodes', 'the tree, which is made anew'],
    ['checkpoints', 'signed checkpoints'],
    ['read_chunks', 'read calls'],
    ['read_segments', 'which segments of read calls were closed'],
  ] as const) {
    const dir = await tempDir(t);
    cpSync(dirname(whole), dir, { recursive: true });
    const path = join(dir, 'journal.db');
    await tearEnd(path, table);
    const append = async (): Promise<readonly string[]> => {
      const { journal, findings, setAside: aside } = await openTemporary(t, { path });
      assert.equal(aside, null, table);
      const next = recordAt(journal.head().seq + 1, { stream: 'container/new', call: 1, type: 'call.received' });
      try {
        await journal.append([next]);
      } finally {
        await journal.close().catch(() => undefined);
      }
      return findings;
    };
    // A commit that meets it ends the journal (C7); only the next start can do something about it.
    const findings = await append().catch(append);
    const [found = ''] = findings;
    assert.equal(findings.length, 1, `${table}: ${findings.join(' ')}`);
    assert.ok(found.startsWith('The journal was damaged, but in none of its records: '), found);
    assert.ok(found.includes(`kept at ${path}.corrupt-1.`) && existsSync(`${path}.corrupt-1`), found);
    assert.equal(/ Not in it: (.*?)\. SQLite said: /.exec(found)?.[1] ?? null, without, found);
    assert.deepEqual((await bodies(path)).slice(0, before.length), before);
    assert.deepEqual(await append(), []);
    assert.deepEqual(
      readdirSync(dir).filter((name) => /anew|db\.damage/.test(name)),
      [],
    );
    if (without === null) assert.deepEqual((await verifyJournal(path)).findings, [], table);
  }
});

test('C20: a start that is killed while it sets the journal aside, or before it takes its place, leaves all to the next', async (t) => {
  const whole = await wholeJournal(t);
  const log = await unfinishedLog(t);
  const chain = ['', '-wal', '.damage', '.head', '.checkpoint'];
  for (let moved = 1; moved <= chain.length; moved += 1) {
    const dir = await tempDir(t);
    cpSync(dirname(whole), dir, { recursive: true });
    const path = join(dir, 'journal.db');
    cpSync(path, `${path}.anew`);
    // What a commit was that nobody has taken into the database: it may not get into the other one.
    cpSync(log, `${path}-wal`);
    writeFileSync(`${path}.damage`, 'database disk image is malformed\n');
    for (const suffix of chain.slice(0, moved)) renameSync(`${path}${suffix}`, `${path}.corrupt-1${suffix}`);
    // One that was to take its place and had head and checkpoint again.
    if (moved === chain.length) cpSync(`${path}.corrupt-1.head`, `${path}.head`);
    const { journal, findings } = await openTemporary(t, { path });
    assert.deepEqual([findings, journal.head().seq], [[], 601], `${moved} were moved`);
    for (const suffix of ['-wal', '.damage'])
      assert.ok(existsSync(`${path}.corrupt-1${suffix}`) && !existsSync(`${path}.corrupt-2`), `${moved} were moved`);
    for (const suffix of ['.head', '.checkpoint']) assert.ok(existsSync(`${path}${suffix}`), `${moved} were moved`);
    assert.deepEqual((await verifyJournal(path)).findings, []);
  }
});

test('C20: records that cannot be read are not left out of a journal: it is set aside whole', async (t) => {
  const path = await wholeJournal(t);
  await tearEnd(path, 'names');
  writeFileSync(`${path}.damage`, 'database disk image is malformed\n');
  const opened = await openTemporary(t, { path });
  assert.equal(opened.setAside?.path, `${path}.corrupt-1`);
  assert.equal(opened.journal.head().seq, 0);
  assert.deepEqual(
    readdirSync(dirname(path)).filter((name) => /anew|db\.damage/.test(name)),
    [],
  );
});
