/**
 * Verifying finds what was done to a journal: any flipped bit in any column of any table, anywhere in the file where
 * it matters, records that are missing, moved or rewritten, and a journal that was cut or put back.
 */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync } from 'node:crypto';
import { copyFileSync, cpSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { before, test } from 'node:test';
import type Database from 'better-sqlite3';
import { checkChain, type ChainPart } from '../../src/journal/chain-check.ts';
import { readCheckpoints, signCheckpoint } from '../../src/journal/checkpoints.ts';
import { GENESIS } from '../../src/journal/encoding.ts';
import { checkOwnTables } from '../../src/journal/own-tables-check.ts';
import { createReader } from '../../src/journal/reader.ts';
import { checkSurroundings, snapshotSeqs } from '../../src/journal/surroundings-check.ts';
import { createTreePart, readTreeBefore } from '../../src/journal/tree-check.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import {
  closeReads,
  dropTriggers,
  openTemporary,
  pruneSeqs,
  readRowAt,
  recordAt,
  recordsFrom,
  tamper,
  withoutTriggers,
} from './support.ts';

const owner = cleanupAfterAll();
let original = '';

/** A journal of two lives with something in every table: records, pruned ones, segments closed, dropped and open. */
before(async () => {
  const path = join(await tempDir(owner), 'journal.db');
  const first = await openTemporary(owner, { path });
  await first.journal.append(recordsFrom(1, 120));
  await first.journal.close();
  const { journal } = await openTemporary(owner, { path });
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 6; n++) {
      journal.appendRead(readRowAt(round * 10 + n));
      await journal.append([recordAt(journal.head().seq + 1)]);
    }
    if (round < 2) await closeReads(journal);
  }
  await pruneSeqs(journal, [5, 6, 7, 40, 100, 101]);
  // Enough for a full tile of the tree.
  await journal.append(recordsFrom(journal.head().seq + 1, 130));
  await journal.writeSnapshot({ seq: 120, evolverVersion: 1, state: JSON.stringify({ folded: 'x'.repeat(300) }) });
  await journal.writeSnapshot({ seq: 110, evolverVersion: 2, state: '{}' });
  await journal.close();
  original = path;
});

/** A copy of the journal with all its files, in a directory of its own. */
const copy = async (): Promise<string> => {
  const dir = await tempDir(owner);
  cpSync(dirname(original), dir, { recursive: true });
  return join(dir, 'journal.db');
};

/** The same checks as verifyJournal makes, on this thread: thousands of them take seconds instead of minutes. */
const findingsIn = (db: Database.Database, path: string): string[] => {
  const headSeq = createReader(db).head().seq;
  const wanted = new Set([...readCheckpoints(db, 0, 2 ** 40).map(({ seq }) => seq), ...snapshotSeqs(db)]);
  const stretch = { fromSeq: 1, toSeq: headSeq, previousHash: GENESIS };
  const treeBefore = readTreeBefore(db, path, []);
  const tree = createTreePart(stretch, treeBefore.sizes);
  const part: ChainPart = checkChain(db, stretch, { wanted, onBodyHash: tree.add });
  const [parts, treeParts] = [[part], [tree.part()]];
  const task = { kind: 'surroundings', path, headSeq, parts, treeBefore, treeParts, kept: {} } as const;
  const { findings } = checkSurroundings(db, task);
  return [...part.findings, ...findings, ...checkOwnTables(db)].map(({ seq, what }) => `${seq}: ${what}`);
};

/** Does something to a journal whose triggers are gone, looks, and takes it back; that they are gone does not count. */
const findingsAfter = (db: Database.Database, path: string, damage: () => void): string[] => {
  db.exec('BEGIN');
  try {
    damage();
    return findingsIn(db, path).filter((finding) => !/trigger \w+ is missing/.test(finding));
  } finally {
    db.exec('ROLLBACK');
  }
};

const assertFound = async (path: string, pattern: RegExp, seq?: number): Promise<void> => {
  const report = await verifyJournal(path);
  assert.equal(report.ok, false);
  assert.match(report.findings.map(({ what }) => what).join('\n'), pattern);
  if (seq !== undefined) assert.equal(report.findings[0]?.seq, seq, JSON.stringify(report.findings));
};

test('an untouched journal verifies, with everything in it counted', async () => {
  const report = await verifyJournal(await copy());
  assert.deepEqual(report.findings, []);
  assert.deepEqual([report.prunedRecords, report.readSegments, report.snapshots], [6, 3, 2]);
  assert.ok(report.checkpoints >= 2);
});

test('a journal that is not there, empty or no database is a finding, not a crash', async () => {
  const dir = await tempDir(owner);
  for (const content of [null, '', 'not a database at all'.repeat(300)]) {
    const path = join(dir, `j${content?.length ?? 'none'}.db`);
    if (content !== null) writeFileSync(path, content);
    const report = await verifyJournal(path);
    assert.equal(report.ok, false);
  }
});

interface Flip {
  readonly table: string;
  readonly column: string;
  readonly rowid: number;
  readonly bit: number;
}

/** Flips one bit of a stored value, keeping its type: of an integer its 64 bits, of text and blobs their bytes. */
const flipped = (value: unknown, bit: number): unknown => {
  if (typeof value === 'bigint') return BigInt.asIntN(64, value ^ (1n << BigInt(bit % 64)));
  const bytes = Buffer.from(value as string | Uint8Array);
  const at = Math.floor(bit / 8) % bytes.length;
  bytes[at] = (bytes[at] ?? 0) ^ (1 << (bit % 8));
  return bytes;
};

const flip = (db: Database.Database, { table, column, rowid, bit }: Flip): void => {
  const value = db
    .prepare<[number], unknown>(`SELECT ${column} FROM ${table} WHERE rowid = ?`)
    .pluck()
    .safeIntegers()
    .get(rowid);
  // NULL becomes 0 by a single bit of the row's header.
  const set = value === null ? '0' : typeof value === 'string' ? 'CAST(? AS TEXT)' : '?';
  const values = value === null ? [rowid] : [flipped(value, bit), rowid];
  db.prepare(`UPDATE ${table} SET ${column} = ${set} WHERE rowid = ?`).run(...values);
};

/** A generator that gives the same numbers in every run. */
const numbers = (seed: number): ((below: number) => number) => {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

test('a flipped bit in any column of any table is found', { timeout: 120_000 }, async (t) => {
  const path = await copy();
  const random = numbers(7);
  const flipsPerColumn = 70;
  const missed: Flip[] = [];
  let flips = 0;
  tamper(path, (db) => {
    dropTriggers(db);
    const tables = db
      .prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'pruning'")
      .pluck()
      .all();
    for (const table of tables) {
      const columns = db.prepare<[string], string>('SELECT name FROM pragma_table_info(?)').pluck().all(table);
      const rowids = db.prepare<[], number>(`SELECT rowid FROM ${table}`).pluck().all();
      assert.ok(rowids.length > 0, `${table} has rows`);
      for (const column of columns) {
        for (let n = 0; n < flipsPerColumn; n++) {
          const one = { table, column, rowid: rowids[random(rowids.length)] ?? 0, bit: random(20_000) };
          const outcome = { refused: false };
          const findings = findingsAfter(db, path, () => {
            try {
              flip(db, one);
            } catch {
              // The flipped key is another row's, which SQLite itself refuses, and finds in a file.
              outcome.refused = true;
            }
          });
          if (outcome.refused) continue;
          flips++;
          if (findings.length === 0) missed.push(one);
        }
      }
    }
  });
  assert.deepEqual(missed, []);
  assert.ok(flips > 2000, `${flips} flips`);
  t.diagnostic(`${flips} flipped bits, all found`);
});

test('a flipped bit anywhere in the file is found, or changes nothing that is read', {
  timeout: 120_000,
}, async (t) => {
  const dump = (path: string): string =>
    tamper(path, (db) => {
      const tables = db.prepare<[], string>("SELECT name FROM sqlite_schema WHERE type = 'table'").pluck().all();
      const rows = tables.map((table) =>
        db.prepare(`SELECT * FROM ${table} ORDER BY rowid`).raw().safeIntegers().all(),
      );
      const text = JSON.stringify(rows, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
      return createHash('sha256').update(text).digest('hex');
    });
  const path = await copy();
  const whole = readFileSync(path);
  const rows = dump(path);
  const random = numbers(11);
  let found = 0;
  const flips = 80;
  for (let n = 0; n < flips; n++) {
    const [at, bit] = [random(whole.length), random(8)];
    const damaged = Buffer.from(whole);
    damaged[at] = (damaged[at] ?? 0) ^ (1 << bit);
    writeFileSync(path, damaged);
    if (isFound(path)) found++;
    else assert.equal(dump(path), rows, `byte ${at}, bit ${bit}`);
  }
  assert.ok(found > flips / 5, `${found} of ${flips}`);
  t.diagnostic(`${found} of ${flips} flipped bits found, the others in bytes that hold nothing`);
});

const isFound = (path: string): boolean => {
  try {
    return tamper(path, (db) => {
      const damage = db.pragma('integrity_check', { simple: true }) !== 'ok';
      return damage || findingsIn(db, path).length > 0;
    });
  } catch {
    return true;
  }
};

test('a value that only changed its type is found', async () => {
  const path = await copy();
  tamper(path, (db) => {
    dropTriggers(db);
    const changes = [
      'UPDATE records SET body = CAST(body AS BLOB) WHERE seq = 9',
      'UPDATE records SET body_hash = CAST(body_hash AS TEXT) WHERE seq = 9',
      'UPDATE records SET hash = CAST(hash AS TEXT) WHERE seq = 9',
      'UPDATE records SET body_hash = CAST(body_hash AS TEXT) WHERE seq = 5',
      'UPDATE records SET stream = CAST(stream AS BLOB) WHERE seq = 9',
      'UPDATE records SET stream = CAST(stream AS REAL) WHERE seq = 8',
      'UPDATE records SET cause = 0 WHERE seq = 9 AND cause IS NULL',
      "UPDATE records SET at = 'x' || at WHERE seq = 9",
      'UPDATE names SET name = CAST(name AS BLOB) WHERE id = 2',
      'UPDATE names SET digest = CAST(digest AS TEXT) WHERE id = 2',
      'UPDATE checkpoints SET hash = CAST(hash AS TEXT)',
      'UPDATE checkpoints SET signature = CAST(signature AS TEXT)',
      'UPDATE read_chunks SET rows = CAST(rows AS TEXT)',
      'UPDATE read_chunks SET root = CAST(root AS TEXT)',
      'UPDATE snapshots SET state = CAST(state AS TEXT)',
      'UPDATE snapshots SET state_hash = CAST(state_hash AS TEXT)',
      'UPDATE schema SET sha256 = CAST(sha256 AS TEXT)',
      'UPDATE tree_nodes SET hash = CAST(hash AS TEXT)',
    ];
    for (const change of changes) {
      const findings = findingsAfter(db, path, () => {
        assert.ok(db.prepare(change).run().changes > 0, change);
      });
      assert.notDeepEqual(findings, [], change);
    }
  });
});

test('the first bad record is named, with the reason', async () => {
  const path = await copy();
  tamper(path, (db) => {
    withoutTriggers(db, () => db.exec(`UPDATE records SET body = '{"seq":7,"forged":true}' WHERE seq IN (77, 150)`));
  });
  const report = await verifyJournal(path);
  assert.deepEqual(
    report.findings.map(({ seq }) => seq),
    [77, 150],
  );
  assert.match(report.findings[0]?.what ?? '', /columns do not give its body_hash/);
});

test('records that are missing, doubled, exchanged or added are found', async () => {
  const path = await copy();
  tamper(path, (db) => {
    dropTriggers(db);
    const columns = 'at, mono, boot, type, v, stream, cause, call, body_hash, hash, body';
    const head = db.prepare<[], number>('SELECT max(seq) FROM records').pluck().get() ?? 0;
    const changes: readonly (readonly [string, RegExp])[] = [
      ['DELETE FROM records WHERE seq = 77', /77: the record is missing/],
      ['DELETE FROM records WHERE seq BETWEEN 77 AND 79', /77: the records up to 79 are missing/],
      [`DELETE FROM records WHERE seq = ${head}`, /cut/],
      [`INSERT INTO records (seq, ${columns}) SELECT ${head + 1}, ${columns} FROM records WHERE seq = 77`, /does not/],
      [
        'UPDATE records SET seq = CASE seq WHEN 77 THEN -78 ELSE -77 END WHERE seq IN (77, 78); UPDATE records SET seq = -seq WHERE seq < 0',
        /77: /,
      ],
      ['DELETE FROM read_chunks WHERE id = (SELECT min(id) FROM read_chunks)', /lacks chunks|another root/],
      ['DELETE FROM read_segments WHERE segment = 1', /closes read segment 1/],
      [
        'DELETE FROM read_chunks WHERE id < (SELECT max(id) FROM read_chunks) / 16777216 * 16777216',
        /gone, but not by pruning/,
      ],
      ['INSERT INTO pruning VALUES (1)', /guard/],
      ['CREATE TABLE more (x)', /table more is none of this scribe/],
      ['DROP INDEX records_by_call', /index records_by_call is missing/],
      ['DROP INDEX records_of_calls', /index records_of_calls is missing/],
      ['PRAGMA application_id = 1', /application id/],
      ['INSERT INTO tree_nodes VALUES (1, 1, zeroblob(32))', /tree has a hash, 1\/1, that no records give/],
    ];
    for (const [change, found] of changes) {
      assert.match(findingsAfter(db, path, () => db.exec(change)).join('\n'), found, change);
    }
  });
});

test('C9: a trigger that is gone or tamed is found', async () => {
  const path = await copy();
  tamper(path, (db) => db.exec('DROP TRIGGER records_delete'));
  await assertFound(path, /trigger records_delete is missing or changed/);
  tamper(path, (db) => db.exec('CREATE TRIGGER records_delete BEFORE DELETE ON records BEGIN SELECT 1; END'));
  await assertFound(path, /trigger records_delete is missing or changed/);
});

test('C11: a record that lost its columns without a prune record is found', async () => {
  const path = await copy();
  tamper(path, (db) => {
    withoutTriggers(db, () =>
      db.exec(`UPDATE records SET at = NULL, mono = NULL, boot = NULL, type = NULL, v = NULL, stream = NULL, cause = NULL,
      call = NULL, hash = NULL, body = NULL WHERE seq BETWEEN 80 AND 82`),
    );
  });
  await assertFound(path, /records up to 82 are pruned, but no journal.pruned says so/, 80);
});

test('C9: a chain that was rewritten and signed again by another key is found', async () => {
  const path = await copy();
  tamper(path, (db) => {
    const { privateKey } = generateKeyPairSync('ed25519');
    const [checkpoint] = readCheckpoints(db, 0, 2 ** 40);
    assert.ok(checkpoint);
    const forged = signCheckpoint(privateKey, checkpoint.seq, checkpoint.hash, checkpoint.atMaxNs);
    withoutTriggers(db, () => {
      db.prepare('UPDATE checkpoints SET signature = ? WHERE seq = ?').run(forged.signature, checkpoint.seq);
    });
  });
  await assertFound(path, /signature of the checkpoint is not by/);
});

test('C9: a journal that was cut, or put back to an older copy, is found', async () => {
  const path = await copy();
  const { journal } = await openTemporary(owner, { path });
  await journal.append(recordsFrom(journal.head().seq + 1, 10));
  const newSeq = journal.head().seq;
  await journal.close();
  const older = await copy();
  copyFileSync(`${path}.head`, `${older}.head`);
  await assertFound(older, /was put back or cut/, newSeq);
  tamper(path, (db) => {
    withoutTriggers(db, () => db.exec(`DELETE FROM records WHERE seq > ${newSeq - 5}`));
  });
  await assertFound(path, /the journal was cut/);
  const opened = await openTemporary(owner, { path: older });
  assert.match(opened.findings.join('\n'), /put back or cut/);
});

test('C9: a journal is verified while it is being written', async () => {
  const path = await copy();
  const { journal } = await openTemporary(owner, { path });
  const ended = { writing: false };
  const verifying = verifyJournal(path).finally(() => {
    ended.writing = true;
  });
  while (!ended.writing) {
    const first = journal.head().seq + 1;
    await journal.append(recordsFrom(first, 40));
    journal.appendRead(readRowAt(first));
    await closeReads(journal);
    await pruneSeqs(journal, [60, 61, first + 1, first + 2]);
  }
  assert.deepEqual((await verifying).findings, []);
  await journal.close();
  assert.deepEqual((await verifyJournal(path)).findings, []);
});

test('a long journal is verified from both ends, with damage in either half named', async () => {
  const path = join(await tempDir(owner), 'journal.db');
  const { journal } = await openTemporary(owner, { path });
  for (let first = 1; first <= 22_000; first += 1000) await journal.append(recordsFrom(first, 1000));
  await journal.close();
  assert.deepEqual((await verifyJournal(path)).findings, []);
  tamper(path, (db) => {
    withoutTriggers(db, () => db.exec('UPDATE records SET v = 9 WHERE seq IN (100, 21000)'));
  });
  const { findings } = await verifyJournal(path);
  assert.deepEqual(
    findings.map(({ seq }) => seq),
    [100, 21_000],
  );
});
