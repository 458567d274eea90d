/**
 * `scribe export --tlog`, `scribe prove` and `scribe journal vkey`, judged by programs that others wrote: Tessera's fsck,
 * torchwood's verifier of proofs and Go's own of signed notes.
 */
import assert from 'node:assert/strict';
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { openJournal, openReader } from '../../src/journal/open.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { pruneSeqs, recordsFrom, tamper, withoutTriggers } from '../journal/support.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { fsck } from '../support/fsck.ts';
import { goProgram } from '../support/go-program.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { type Said, scribe } from './support.ts';

const owner = cleanupAfterAll();
/** More than 256 tiles of leaves, so that the tree has three levels of tiles, each with one that is not full. */
const RECORDS = 66_000;
const PRUNED = Array.from({ length: 40_000 }, (_, index) => 100 + index);

let root = '';
let journalPath = '';
let vkey = '';
let tlog = '';

const said = async (words: readonly string[]): Promise<Said> => {
  const done = await scribe(words);
  assert.equal(done.exitStatus, 0, done.stderr);
  return done;
};

before(async () => {
  root = await tempDir(owner);
  journalPath = join(root, 'journal.db');
  const { journal } = openJournal({ path: journalPath });
  for (let first = 1; first < RECORDS; first += 2000) await journal.append(recordsFrom(first, 2000));
  await pruneSeqs(journal, PRUNED);
  await journal.close();
  vkey = join(root, 'vkey');
  writeFileSync(vkey, (await said(['journal', 'vkey', '--root', root])).stdout);
  tlog = await tempDir(owner);
  await said(['export', '--root', root, '--tlog', tlog]);
});

const judge = async (...words: string[]): Promise<string> => {
  const { stdout, stderr } = await run([await goProgram('tlog-judges'), ...words], { timeoutMs: 20_000 });
  return (stdout + stderr).trim();
};

const bodyHashOf = (seq: number): string => {
  const reader = openReader(journalPath);
  try {
    return Buffer.from(reader.hashesOf(seq)?.bodyHash ?? []).toString('hex');
  } finally {
    reader.close();
  }
};

const flipLastByte = (path: string): void => {
  const bytes = readFileSync(path);
  bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
  writeFileSync(path, bytes);
};

describe('export --tlog', () => {
  test("Tessera's fsck accepts a journal of which most is pruned", async () => {
    const { ok, words } = await fsck(tlog, vkey);
    assert.ok(ok, words);
    assert.match(words, new RegExp(`checking log of size ${RECORDS + 1}`));
    const [origin, size] = readFileSync(join(tlog, 'checkpoint'), 'utf8').split('\n');
    assert.match(origin ?? '', /^scribe\.journal\/[0-9a-f]{32}$/);
    assert.equal(size, String(RECORDS + 1));
  });

  test("Tessera's fsck rejects a changed leaf, and a changed tile", async () => {
    const files = [join(tlog, 'tile/entries/x000/123'), join(tlog, 'tile/0/123'), join(tlog, 'tile/1/000')].map(
      (path) => path.replace('x000/', ''),
    );
    for (const path of files) {
      assert.ok(existsSync(path), path);
      flipLastByte(path);
      const { ok, words } = await fsck(tlog, vkey);
      assert.ok(!ok, `${path}: ${words}`);
      flipLastByte(path);
    }
    assert.ok((await fsck(tlog, vkey)).ok);
  });

  test('the checkpoint beside the journal, and the exported one, are signed notes by the printed key', async () => {
    assert.equal(await judge('note', vkey, `${journalPath}.checkpoint`), 'accepted');
    assert.equal(await judge('note', vkey, join(tlog, 'checkpoint')), 'accepted');
    const forged = join(root, 'forged');
    writeFileSync(forged, readFileSync(join(tlog, 'checkpoint'), 'utf8').replace(`\n${RECORDS + 1}\n`, '\n7\n'));
    assert.match(await judge('note', vkey, forged), /^refused: /);
  });

  test('a directory that has another log is not written over', async () => {
    const other = await tempDir(owner);
    const { journal } = openJournal({ path: join(other, 'journal.db') });
    await journal.append(recordsFrom(1, 3).map((record) => ({ ...record, body: '{"other":1}' })));
    await journal.close();
    const refused = await scribe(['export', '--root', other, '--tlog', tlog]);
    assert.equal(refused.exitStatus, 1);
    assert.match(refused.stderr, /there is the log scribe\.journal\/[0-9a-f]{32} already/);
  });

  test('a directory is not taken back to an older copy of its journal, nor to one that went on otherwise', async () => {
    const base = await tempDir(owner);
    const [at, older, other, dir] = [join(base, 'at'), join(base, 'older'), join(base, 'other'), join(base, 'tlog')];
    mkdirSync(at);
    const grow = async (path: string, first: number, count: number, body?: string): Promise<void> => {
      const { journal } = openJournal({ path: join(path, 'journal.db') });
      await journal.append(
        recordsFrom(first, count).map((record) => (body === undefined ? record : { ...record, body })),
      );
      await journal.close();
    };
    const exported = (path: string): Promise<Said> => scribe(['export', '--root', path, '--tlog', dir]);
    await grow(at, 1, 300);
    cpSync(at, older, { recursive: true });
    cpSync(at, other, { recursive: true });
    await grow(at, 301, 300);
    await grow(other, 301, 500, '{"other":1}');
    assert.equal((await exported(older)).exitStatus, 0);
    assert.equal((await exported(at)).exitStatus, 0);
    const checkpoint = readFileSync(join(dir, 'checkpoint'), 'utf8');
    assert.equal(checkpoint.split('\n')[1], '600');
    for (const [path, why] of [
      [older, /its checkpoint knows 600 records, and this journal has 300: it is an older copy, .*: name another/],
      [other, /the 600 records that its checkpoint knows are others than this journal has: .*: name another/],
    ] as const) {
      const { exitStatus, stderr } = await exported(path);
      assert.equal(exitStatus, 1);
      assert.match(stderr, why);
    }
    assert.equal(readFileSync(join(dir, 'checkpoint'), 'utf8'), checkpoint);
    assert.ok(!existsSync(join(dir, 'tile/entries/003.p/32')));

    for (const text of ['', 'no note\n']) {
      writeFileSync(join(dir, 'checkpoint'), text);
      assert.match((await exported(at)).stderr, /its checkpoint is none that scribe reads: name another directory/);
    }
  });

  test('a journal from before there was a tree gives the same files', async () => {
    const old = await tempDir(owner);
    for (const name of readdirSync(root)) copyFileSync(join(root, name), join(old, name));
    rmSync(join(old, 'journal.db.checkpoint'));
    tamper(join(old, 'journal.db'), (db) => {
      db.exec('DROP TABLE tree_nodes');
    });
    const dir = await tempDir(owner);
    await said(['export', '--root', old, '--tlog', dir]);
    assert.equal(readFileSync(join(dir, 'checkpoint'), 'utf8'), readFileSync(join(tlog, 'checkpoint'), 'utf8'));
    assert.ok((await fsck(dir, vkey)).ok);
  });
});

describe('prove', () => {
  test('torchwood verifies the proof of a first, a last, a pruned and any other record, each of no other', async () => {
    const file = join(root, 'proof');
    for (const seq of [1, 2, 256, 257, 20_000, 65_536, 65_537, RECORDS, RECORDS + 1]) {
      writeFileSync(file, (await said(['prove', '--root', root, String(seq)])).stdout);
      assert.equal(await judge('proof', vkey, file, bodyHashOf(seq)), 'accepted', String(seq));
      assert.match(await judge('proof', vkey, file, bodyHashOf(seq === 1 ? 2 : 1)), /^refused: /, String(seq));
    }
  });

  test('a copy without its key proves what its checkpoint knows, and says of the rest where it can be proven', async () => {
    const copy = await tempDir(owner);
    copyFileSync(journalPath, join(copy, 'journal.db'));
    const proving = (): ReturnType<typeof scribe> => scribe(['prove', '--root', copy, '1']);
    assert.match(
      (await proving()).stderr,
      /journal\.db\.key is not there to sign record 1, and of the checkpoint \S+ there is none: ask the journal that /,
    );
    copyFileSync(`${journalPath}.checkpoint`, join(copy, 'journal.db.checkpoint'));
    assert.equal((await proving()).exitStatus, 0);
    writeFileSync(join(copy, 'journal.db.key'), 'no key');
    rmSync(join(copy, 'journal.db.checkpoint'));
    assert.match((await proving()).stderr, /journal\.db\.key cannot be read to sign record 1, .*: run this as root\./);
  });

  test('a record that is not there, and what is no number', async () => {
    const beyond = await scribe(['prove', '--root', root, String(RECORDS + 2)]);
    assert.equal(beyond.exitStatus, 1);
    assert.match(beyond.stderr, /There is no record 66002: the journal ends with record 66001\./);
    const none = await scribe(['prove', '--root', root, 'web']);
    assert.equal(none.exitStatus, 2);
    assert.match(none.stderr, /RECORD is a record's number/);
  });
});

describe('the tree in the journal', () => {
  test('what the writer built is what the records give, and a note that was kept is verified against', async () => {
    const kept = join(root, 'kept');
    copyFileSync(`${journalPath}.checkpoint`, kept);
    const whole = await verifyJournal(journalPath, { against: [kept], key: vkey });
    assert.deepEqual(whole.findings, []);
    assert.deepEqual(whole.against, [{ file: kept, seq: RECORDS + 1, verdict: 'contained' }]);
    const nodes = tamper(journalPath, (db) =>
      db.prepare('SELECT level, count(*) FROM tree_nodes GROUP BY level').raw().all(),
    );
    assert.deepEqual(nodes, [
      [1, Math.floor((RECORDS + 1) / 256)],
      [2, 1],
    ]);
  });

  test('a changed hash of the tree is found, and nothing is proven by it', async () => {
    const bad = await tempDir(owner);
    for (const name of readdirSync(root)) copyFileSync(join(root, name), join(bad, name));
    const path = join(bad, 'journal.db');
    tamper(path, (db) =>
      withoutTriggers(db, () => db.exec('UPDATE tree_nodes SET hash = zeroblob(32) WHERE level = 1 AND n = 7')),
    );
    const { findings } = await verifyJournal(path);
    assert.match(
      findings.map(({ what }) => what).join('\n'),
      /Hash 7 of level 1 of the tree is not what the records give/,
    );
    const refused = await scribe(['prove', '--root', bad, '5']);
    assert.equal(refused.exitStatus, 1);
    assert.match(refused.stderr, /The tree in the journal does not prove record 5: scribe verify says what is wrong/);
  });
});
