/**
 * Opening a journal: one writer at a time, migrations forward only, the settings that durability rests on, triggers
 * that refuse changes, and a start in spite of whatever is wrong with the files.
 */
import assert from 'node:assert/strict';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { connectWriter, schemaVersion } from '../../src/journal/connect.ts';
import { setAside } from '../../src/journal/files.ts';
import { foldRecords } from '../../src/journal/fold.ts';
import { listMigrations, migrate } from '../../src/journal/migrate.ts';
import { openReader } from '../../src/journal/open.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { run, startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import {
  closeReads,
  collect,
  openTemporary,
  pruneSeqs,
  readRowAt,
  recordAt,
  recordsFrom,
  tamper,
  withoutTriggers,
} from './support.ts';

const migrations = fileURLToPath(new URL('../../migrations', import.meta.url));
const openModule = fileURLToPath(new URL('../../src/journal/open.ts', import.meta.url));

test('C8: a second process is refused, and told who has the journal', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  const script = `import { openJournal } from ${JSON.stringify(openModule)}; openJournal({ path: ${JSON.stringify(path)} });`;
  const second = await run([process.execPath, '--input-type=module', '-e', script]);
  assert.notEqual(second.exitCode, 0);
  assert.match(second.stderr, new RegExp(`The journal is in use: process ${process.pid} holds`));
  await journal.append([recordAt(1)]);
});

test('C8: the lock is not inherited by child processes, and gone with its holder', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const first = await openTemporary(t, { path });
  const child = await startProcess(t, ['sleep', '60']);
  await first.journal.close();
  const { journal } = await openTemporary(t, { path });
  assert.ok(child.isAlive());
  await journal.append([recordAt(1)]);
  await journal.close();
});

test('C8: WAL and synchronous FULL are in force, and SQLite is new enough', async (t) => {
  const db = connectWriter(join(await tempDir(t), 'x.db'));
  const pragma = (name: string): unknown => db.pragma(name, { simple: true });
  assert.deepEqual([pragma('journal_mode'), pragma('synchronous'), pragma('wal_autocheckpoint')], ['wal', 2, 0]);
  const [major = 0, minor = 0, patch = 0] = String(db.prepare('SELECT sqlite_version()').pluck().get())
    .split('.')
    .map(Number);
  assert.ok(major * 1e6 + minor * 1e3 + patch >= 3_051_003);
  db.close();
});

const newest = listMigrations().length;

test('an older journal migrates forward with its records, and each step is written down', async (t) => {
  const dir = await tempDir(t);
  const path = join(dir, 'journal.db');
  const old = join(dir, 'old-migrations');
  mkdirSync(old);
  cpSync(join(migrations, '0001_records.sql'), join(old, '0001_records.sql'));
  const db = connectWriter(path);
  assert.deepEqual(migrate(db, listMigrations(old)), [1]);
  assert.deepEqual(migrate(db, listMigrations(old)), []);
  db.exec(
    "INSERT INTO names VALUES (1, 'x', x'00'); INSERT INTO records (seq, at, body_hash, hash) VALUES (1, 5, x'01', x'02')",
  );
  const later = listMigrations().slice(1);
  assert.deepEqual(
    migrate(db, listMigrations()),
    later.map(({ version }) => version),
  );
  assert.equal(schemaVersion(db), newest);
  assert.equal(db.prepare('SELECT at FROM records WHERE seq = 1').pluck().get(), 5);
  db.close();
});

test('a migration that fails leaves the journal as it was', async (t) => {
  const dir = await tempDir(t);
  const db = connectWriter(join(dir, 'journal.db'));
  migrate(db, listMigrations());
  const bad = [
    ...listMigrations(),
    { version: newest + 1, name: 'bad.sql', sql: 'CREATE TABLE later (x); SELECT nonsense;' },
  ];
  assert.throws(() => migrate(db, bad), /nonsense/);
  assert.equal(schemaVersion(db), newest);
  assert.equal(db.prepare("SELECT count(*) FROM sqlite_schema WHERE name = 'later'").pluck().get(), 0);
  db.close();
});

test('a newer journal is refused with a message and left alone', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 3));
  await journal.close();
  tamper(path, (db) => db.exec(`INSERT INTO schema VALUES (${newest + 1}, 'future.sql', x'00')`));
  const before = readFileSync(path);
  await assert.rejects(openTemporary(t, { path }), {
    code: 'NewerSchema',
    message: new RegExp(`schema ${newest + 1} of a newer scribe.*up to ${newest}`),
  });
  assert.throws(() => openReader(path), { code: 'NewerSchema' });
  assert.deepEqual(readFileSync(path), before);
  assert.deepEqual(
    readdirSync(dirname(path)).filter((name) => name.includes('corrupt')),
    [],
  );
});

test('C9: triggers refuse every change but those of pruning', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  for (let n = 1; n <= 3; n++) {
    journal.appendRead(readRowAt(n));
    await journal.append([recordAt(journal.head().seq + 1)]);
    await closeReads(journal);
  }
  // A full tile of the tree, too.
  const records = recordsFrom(journal.head().seq + 1, 256);
  await journal.append(records.map((record) => ({ ...record, type: 'filler' })));
  await journal.writeSnapshot({ seq: 1, evolverVersion: 1, state: '{}' });
  await pruneSeqs(journal, [1]);
  await journal.close();
  tamper(path, (db) => {
    const tables = db
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'pruning'")
      .pluck();
    for (const table of tables.all()) {
      assert.ok(Number(db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()) > 0, table);
      const column = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?) LIMIT 1').pluck().get(table);
      for (const change of [
        `UPDATE ${table} SET ${column} = ${column}`,
        `DELETE FROM ${table}`,
        `INSERT OR REPLACE INTO ${table} SELECT * FROM ${table}`,
      ]) {
        assert.throws(() => db.exec(change), /never|only|once|in order/, change);
      }
    }
    assert.throws(() => db.exec("INSERT INTO records (seq, body_hash) VALUES (99, x'00')"), /in order of seq/);
    assert.throws(() => db.exec("UPDATE journal SET body = ''"), /view/);
    assert.equal(db.prepare('SELECT count(*) FROM journal WHERE type IS NOT NULL').pluck().get(), 6 + records.length);
  });
  assert.deepEqual((await verifyJournal(path)).findings, []);
});

test('C9: the view for people shows the documented columns', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 3));
  await journal.close();
  const rows = tamper(path, (db) => db.prepare('SELECT * FROM journal').all()) as Record<string, unknown>[];
  const [row] = rows;
  assert.deepEqual(
    [row?.['seq'], row?.['boot'], row?.['type'], row?.['stream'], rows[2]?.['stream']],
    [1, recordAt(1).boot, recordAt(1).type, 'container/1', 'call/3'],
  );
});

const corruptions: readonly (readonly [string, (path: string) => void])[] = [
  ['is no database', (path) => writeFileSync(path, 'This is not what you think it is. '.repeat(500))],
  [
    'is another database',
    (path) => {
      rmSync(path);
      tamper(path, (db) => db.exec('CREATE TABLE other (x)'));
    },
  ],
  [
    'has a broken header',
    (path) => {
      const bytes = readFileSync(path);
      bytes.fill(0xff, 16, 100);
      writeFileSync(path, bytes);
    },
  ],
  [
    'has broken pages',
    (path) => {
      const bytes = readFileSync(path);
      bytes.fill(0x5a, 4096);
      writeFileSync(path, bytes);
    },
  ],
  [
    'has a key that cannot be',
    (path) => {
      tamper(path, (db) => {
        withoutTriggers(db, () => db.exec('UPDATE records SET seq = 1 << 60 WHERE seq = 20'));
      });
    },
  ],
];

for (const [what, corrupt] of corruptions) {
  test(`C20: a journal that ${what} is set aside whole, and a new one begins`, async (t) => {
    const path = join(await tempDir(t), 'journal.db');
    const first = await openTemporary(t, { path });
    await first.journal.append(recordsFrom(1, 20));
    await first.journal.close();
    corrupt(path);
    const bytes = readFileSync(path);
    const opened = await openTemporary(t, { path });
    assert.equal(opened.setAside?.path, `${path}.corrupt-1`);
    assert.ok(opened.setAside.why.length > 10);
    assert.deepEqual(readFileSync(opened.setAside.path).subarray(4096), bytes.subarray(4096));
    assert.ok(existsSync(`${opened.setAside.path}.head`));
    assert.deepEqual(opened.findings, []);
    assert.equal(opened.journal.head().seq, 0);
    await opened.journal.append([recordAt(1)]);
    await opened.journal.close();
    assert.deepEqual((await verifyJournal(path)).findings, []);
    assert.equal(setAside(path), `${path}.corrupt-2`);
  });
}

test('C20: a bad record does not keep the journal from opening; it is a finding', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const first = await openTemporary(t, { path });
  await first.journal.append(recordsFrom(1, 20));
  await first.journal.close();
  tamper(path, (db) => {
    withoutTriggers(db, () =>
      db.exec(
        "DELETE FROM checkpoints; UPDATE records SET body = 'no json' WHERE seq = 15; UPDATE records SET type = 99 WHERE seq = 16",
      ),
    );
  });
  const opened = await openTemporary(t, { path });
  assert.equal(opened.setAside, null);
  assert.match(opened.findings.join('\n'), /Record 15: its columns do not give its body_hash/);
  assert.match(opened.findings.join('\n'), /Record 16: boot, type or stream is not in names/);
  await opened.journal.append([recordAt(21)]);
  const records = await collect(opened.journal.read({ fromSeq: 15, toSeq: 16 }));
  assert.deepEqual(
    records.map(({ type, body }) => [type, body.slice(0, 7)]),
    [
      [recordAt(15).type, 'no json'],
      ['?', '{"seq":'],
    ],
  );
});

test('C20: damage that only folding meets sets the journal aside as well', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const first = await openTemporary(t, { path });
  for (let seq = 1; seq <= 3001; seq += 1000) await first.journal.append(recordsFrom(seq, 1000));
  await first.journal.close();
  const bytes = readFileSync(path);
  // Pages in the middle, far from the root and from the newest records.
  bytes.fill(0x5a, 4096 * 60, 4096 * 70);
  writeFileSync(path, bytes);
  const folded: number[] = [];
  const beforeWriting = (at: string): void => void folded.push(foldRecords(at, {}, () => undefined).records);
  const opened = await openTemporary(t, { path, beforeWriting });
  assert.match(opened.setAside?.why ?? '', /SQLite cannot read the journal/);
  assert.deepEqual([folded, opened.journal.head().seq], [[0], 0]);
  await opened.journal.append([recordAt(1)]);
});

test('a fold that throws something else keeps the journal where it is, and unlocked', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const beforeWriting = (): void => {
    throw new Error('a bug');
  };
  await assert.rejects(openTemporary(t, { path, beforeWriting }), /a bug/);
  const { journal, setAside: aside } = await openTemporary(t, { path });
  assert.equal(aside, null);
  await journal.append([recordAt(1)]);
});

test('C20: a lost, foreign or too widely readable key does not keep the journal from opening', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const key = `${path}.key`;
  const life = async (): Promise<readonly string[]> => {
    const { journal, findings } = await openTemporary(t, { path });
    await journal.append([recordAt(journal.head().seq + 1)]);
    await journal.close();
    assert.equal(statSync(key).mode & 0o777, 0o600);
    return findings;
  };
  assert.deepEqual(await life(), []);
  assert.deepEqual(await life(), []);
  rmSync(key);
  assert.match((await life()).join(), /checkpoint at record 2 is not signed by/);
  writeFileSync(key, 'no key');
  assert.match((await life()).join(), /is no Ed25519 key .* it is now .*unusable-1/);
  writeFileSync(key, readFileSync(key), { mode: 0o644 });
  await run(['chmod', '644', key]);
  assert.match((await life()).join(), /could be read by others/);
  writeFileSync(`${path}.head`, '{"seq":"x"');
  assert.match((await life()).join(), /is no checkpoint/);
});

test('a journal is read while its daemon writes, after it has ended, and with no log file left', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 10));
  const beside = openReader(path);
  await journal.append(recordsFrom(11, 10));
  assert.equal((await collect(beside.read())).length, 20);
  beside.close();
  await journal.close();
  for (const suffix of ['-wal', '-shm']) rmSync(`${path}${suffix}`, { force: true });
  const after = openReader(path);
  assert.equal(after.head().seq, 20);
  after.close();
  assert.deepEqual(
    foldRecords(path, { fromSeq: 5, toSeq: 8 }, () => undefined),
    { seq: 8, records: 4 },
  );
  assert.throws(() => openReader(join(dirname(path), 'none.db')), /There is no journal/);
});
