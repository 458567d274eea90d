/** A journal that is put back, cut or replaced under its head: the head stays, and tells of itself at every opening. */
import assert from 'node:assert/strict';
import { copyFileSync, existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { verifyJournal } from '../../src/journal/verify.ts';
import { tempDir } from '../support/temp-dir.ts';
import { openTemporary, pruneSeqs, recordAt, recordsFrom } from './support.ts';

/** A closed journal of `count` records; resolves with its path. */
const journalOf = async (t: TestContext, count: number): Promise<string> => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, count));
  await journal.close();
  return path;
};

const append = async (t: TestContext, path: string, count: number, part = {}): Promise<void> => {
  const { journal } = await openTemporary(t, { path });
  for (let n = 0; n < count; n++) await journal.append([recordAt(journal.head().seq + 1, part)]);
  await journal.close();
};

test('an older copy is opened with a finding, and the head that it lacks is kept for ever', async (t) => {
  const path = await journalOf(t, 5);
  copyFileSync(path, `${path}.copy`);
  await append(t, path, 5);
  const head = readFileSync(`${path}.head`, 'utf8');
  copyFileSync(`${path}.copy`, path);

  const first = await openTemporary(t, { path });
  assert.match(first.findings.join('\n'), /put back or cut: .*knows record 10, it ends at 5/);
  assert.deepEqual(
    first.lostHeads.map(({ file, seq }) => [file, seq]),
    [['journal.db.head.lost-1', 10]],
  );
  // The note that was written along with it says the same: it is out of the way too, and verify goes by the head.
  assert.match(readFileSync(`${path}.checkpoint.lost-1`, 'utf8'), /\n10\n/);
  assert.deepEqual((await verifyJournal(path)).findings, []);
  await first.journal.append([recordAt(6)]);
  await first.journal.close();
  assert.equal(readFileSync(`${path}.head.lost-1`, 'utf8'), head);
  assert.equal((JSON.parse(readFileSync(`${path}.head`, 'utf8')) as { seq: number }).seq, 6);

  const second = await openTemporary(t, { path });
  assert.deepEqual([second.findings, second.lostHeads], [[], first.lostHeads]);
  await second.journal.close();
});

test('a copy that is put back before a head was signed is told by what was noted of the records', async (t) => {
  const path = await journalOf(t, 5);
  const markPath = join(await tempDir(t), 'journal.seq');
  const none = await openTemporary(t, { path, markPath });
  assert.equal(none.missingThrough, null);
  await none.journal.append(recordsFrom(6, 7));
  assert.equal(Number(readFileSync(markPath, 'utf8')), 12);
  const mark = readFileSync(markPath);
  await none.journal.close();
  // From here on the head says as much.
  assert.ok(!existsSync(markPath));
  const [whole, head] = [readFileSync(path), readFileSync(`${path}.head`)];

  for (const [text, missingThrough] of [
    [mark, null],
    ['13', 13],
    ['x', null],
    ['', null],
    ['9'.repeat(30), null],
    ['-4', null],
  ] as const) {
    writeFileSync(path, whole);
    writeFileSync(`${path}.head`, head);
    writeFileSync(markPath, text);
    const opened = await openTemporary(t, { path, markPath });
    assert.deepEqual([opened.missingThrough, opened.lostHeads], [missingThrough, []]);
    // It stays until a record of this journal says more.
    assert.ok(readFileSync(markPath, 'latin1').startsWith(text.toString().slice(0, 17)));
    await opened.journal.append([recordAt(13)]);
    assert.equal(Number(readFileSync(markPath, 'utf8')), 13);
    await opened.journal.close();
  }

  // A head that is lost says it better.
  copyFileSync(path, `${path}.copy`);
  await append(t, path, 2);
  copyFileSync(`${path}.copy`, path);
  writeFileSync(markPath, '15');
  const both = await openTemporary(t, { path, markPath });
  assert.deepEqual([both.missingThrough, both.lostHeads.length], [null, 1]);
  await both.journal.close();
});

test('a place where nothing can be noted keeps no journal from being written', async (t) => {
  const path = await journalOf(t, 5);
  const { journal, missingThrough } = await openTemporary(t, { path, markPath: '/proc/version/journal.seq' });
  assert.equal(missingThrough, null);
  await journal.append([recordAt(6)]);
  await journal.close();
});

test('a copy that was written on past the head has another hash where the head was', async (t) => {
  const path = await journalOf(t, 5);
  copyFileSync(path, `${path}.copy`);
  await append(t, path, 2);
  const head = readFileSync(`${path}.head`);
  copyFileSync(`${path}.copy`, path);
  rmSync(`${path}.head`);
  await append(t, path, 9, { body: '{"other":true}' });
  writeFileSync(`${path}.head`, head);
  const { journal, findings, lostHeads } = await openTemporary(t, { path });
  assert.match(findings.join('\n'), /put back and written on: .* another hash of record 7/);
  assert.equal(lostHeads.length, 1);
  await journal.close();
});

test('a head whose record was pruned since is still that of its journal', async (t) => {
  const path = await journalOf(t, 5);
  const head = readFileSync(`${path}.head`);
  const { journal } = await openTemporary(t, { path });
  await journal.append([recordAt(6)]);
  await pruneSeqs(journal, [3, 4, 5]);
  await journal.close();
  // As where the daemon dies before it signs again.
  writeFileSync(`${path}.head`, head);
  const { findings, lostHeads, ...opened } = await openTemporary(t, { path });
  assert.deepEqual([findings, lostHeads], [[], []]);
  await opened.journal.close();
});

test('a new journal where an older one was deleted, and a head that is unreadable, are told too', async (t) => {
  const path = await journalOf(t, 5);
  rmSync(path);
  const fresh = await openTemporary(t, { path });
  assert.deepEqual(
    fresh.lostHeads.map(({ seq }) => seq),
    [5],
  );
  await fresh.journal.append([recordAt(1)]);
  await fresh.journal.close();
  writeFileSync(`${path}.head`, 'no head');
  const third = await openTemporary(t, { path });
  assert.deepEqual(
    third.lostHeads.map(({ seq }) => seq),
    [5, null],
  );
  assert.notEqual(third.lostHeads[0]?.digest, third.lostHeads[1]?.digest);
  await third.journal.close();
});

test('a head and a key that an auditor kept are what a journal is verified against', async (t) => {
  const path = await journalOf(t, 5);
  const head = join(dirname(path), 'audit.head');
  const key = join(dirname(path), 'audit.key');
  copyFileSync(`${path}.head`, head);
  copyFileSync(`${path}.key`, key);
  await append(t, path, 5);
  assert.deepEqual((await verifyJournal(path, { against: [head], key })).findings, []);

  // Whoever owns the machine begins anew, with a key and a head of their own.
  for (const suffix of ['', '.head', '.key']) rmSync(`${path}${suffix}`);
  await append(t, path, 8, { body: '{"other":true}' });
  assert.ok(existsSync(`${path}.head`));
  assert.deepEqual((await verifyJournal(path)).findings, []);
  const { findings } = await verifyJournal(path, { against: [head], key });
  const words = findings.map(({ what }) => what).join('\n');
  assert.match(words, /audit\.head has another hash: this is another journal, or it was rewritten/);
  assert.match(words, /signature of the checkpoint is not by .*audit\.key/);
  const missing = await verifyJournal(path, { against: [`${head}.none`] });
  assert.match(missing.findings.map(({ what }) => what).join('\n'), /audit\.head\.none is missing/);
});
