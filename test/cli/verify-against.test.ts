/**
 * `scribe verify --against`: what is done to a journal by somebody who can write all of its files, and what an auditor
 * reads who kept checkpoints elsewhere. Each test holds the words that are printed.
 */
import assert from 'node:assert/strict';
import { copyFileSync, cpSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type Database from 'better-sqlite3';
import { openJournal } from '../../src/journal/open.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { recordAt, recordsFrom, tamper, withoutTriggers } from '../journal/support.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonLines, scribe } from './support.ts';

const owner = cleanupAfterAll();
const KEPT_AT = [40, 80, 120];
const journalIn = (dir: string): string => join(dir, 'journal.db');

const append = async (dir: string, records: readonly JournalRecord[]): Promise<void> => {
  const { journal } = openJournal({ path: journalIn(dir) });
  await journal.append(records);
  await journal.close();
};

/** What the auditor has: checkpoints of three days, and the key. */
let audit = '';
/** The journal as it was written, and as it was on the second day. */
let whole = '';
let older = '';

before(async () => {
  [audit, whole, older] = [await tempDir(owner), await tempDir(owner), await tempDir(owner)];
  mkdirSync(join(audit, 'node7'));
  for (const seq of KEPT_AT) {
    await append(whole, recordsFrom(seq - 39, 40));
    copyFileSync(`${journalIn(whole)}.head`, join(audit, 'node7', `at-${String(seq).padStart(3, '0')}`));
    if (seq === 80) cpSync(whole, older, { recursive: true });
  }
  copyFileSync(`${journalIn(whole)}.key`, join(audit, 'key'));
});

const copyOf = async (dir: string): Promise<string> => {
  const copy = await tempDir(owner);
  cpSync(dir, copy, { recursive: true });
  return copy;
};

/** The whole journal after somebody who knows SQLite, and takes the triggers for what they are, was at it. */
const damaged = async (work: (db: Database.Database) => void): Promise<string> => {
  const dir = await copyOf(whole);
  tamper(journalIn(dir), (db) => withoutTriggers(db, () => work(db)));
  return dir;
};

/** A journal that is written anew; with the key of the old one where it is told. */
const writtenAnew = async (records: readonly JournalRecord[], keyOf: string | null): Promise<string> => {
  const dir = await tempDir(owner);
  if (keyOf !== null) copyFileSync(`${journalIn(keyOf)}.key`, `${journalIn(dir)}.key`);
  await append(dir, records);
  return dir;
};

interface Printed {
  readonly exitStatus: number;
  readonly failure: string;
  readonly lines: readonly string[];
}

const short = (text: string, dir: string): string =>
  text.replaceAll(`${audit}/`, 'AUDIT/').replaceAll(`${dir}/`, 'ROOT/');

const verify = async (dir: string, ...words: string[]): Promise<Printed> => {
  const said = await scribe(['verify', '--root', dir, ...words]);
  const lines = short(said.stdout, dir)
    .split('\n')
    .filter((line) => /^record|^AUDIT|^every hash|put back|cut/.test(line));
  return { exitStatus: said.exitStatus, failure: short(said.stderr, dir).trim(), lines };
};

const kept = (): string[] => ['--against', join(audit, 'node7')];

/** Nobody finds it who has only what is on this machine. */
const assertFindsNothingAlone = async (dir: string): Promise<void> => {
  const alone = await verify(dir);
  assert.deepEqual([alone.exitStatus, alone.failure], [0, '']);
};

const assertFound = async (dir: string, lines: readonly string[]): Promise<void> => {
  const found = await verify(dir, ...kept());
  assert.equal(found.exitStatus, 1);
  assert.deepEqual(found.lines, lines);
  const first = lines.find((line) => line.startsWith('record '));
  assert.equal(found.failure, `scribe: The journal is not what was written: ${first}`);
};

/** The newest signed note beside the journal tells it too. */
const NOTE_DIFFERS =
  'record 120: ROOT/journal.db.checkpoint has another hash: this is another journal, or it was rewritten.';

const CONTAINED = [40, 80, 120].map(
  (seq) =>
    `AUDIT/node7/at-${String(seq).padStart(3, '0')}: the journal contains it, up to record ${seq}, and the same key signed`,
);

describe('verify --against', () => {
  test('the journal that was written contains every checkpoint that was kept of it', async () => {
    const found = await verify(whole, ...kept(), '--key', join(audit, 'key'));
    assert.deepEqual([found.exitStatus, found.failure], [0, '']);
    assert.deepEqual(found.lines, ['every hash is right', ...CONTAINED]);
    const { stdout } = await scribe(['verify', '--root', whole, ...kept(), '--json']);
    const [report] = jsonLines<{ against: { seq: number; verdict: string }[] }>(stdout);
    assert.deepEqual(
      report?.against.map(({ seq, verdict }) => [seq, verdict]),
      KEPT_AT.map((seq) => [seq, 'contained']),
    );
  });

  test('a flipped bit', async () => {
    const dir = await damaged((db) =>
      db.exec(`UPDATE records SET body = replace(body, '"seq":50', '"seq":51') WHERE seq = 50`),
    );
    await assertFound(dir, ['record 50: its columns do not give its body_hash.', ...CONTAINED]);
  });

  test('a removed record', async () => {
    const dir = await damaged((db) => db.exec('DELETE FROM records WHERE seq = 50'));
    await assertFound(dir, ['record 50: the record is missing.', NOTE_DIFFERS, ...CONTAINED]);
  });

  test('a swapped pair', async () => {
    const dir = await damaged((db) =>
      db.exec(
        'UPDATE records SET seq = CASE seq WHEN 50 THEN -51 ELSE -50 END WHERE seq IN (50, 51); UPDATE records SET seq = -seq WHERE seq < 0',
      ),
    );
    await assertFound(dir, [
      'record 50: its columns do not give its body_hash.',
      'record 50: its hash does not follow from the record before it and its body_hash.',
      'record 51: its columns do not give its body_hash.',
      'record 51: its hash does not follow from the record before it and its body_hash.',
      'record 52: its hash does not follow from the record before it and its body_hash.',
      NOTE_DIFFERS,
      ...CONTAINED,
    ]);
  });

  test('a truncated tail, with all traces of it on this machine', async () => {
    const dir = await damaged((db) =>
      db.exec('DELETE FROM records WHERE seq > 100; DELETE FROM checkpoints WHERE seq > 100'),
    );
    for (const trace of ['head', 'checkpoint']) rmSync(`${journalIn(dir)}.${trace}`);
    await assertFindsNothingAlone(dir);
    await assertFound(dir, [
      'record 120: AUDIT/node7/at-120 knows this record, but the records end at 100: the journal was put back to an older copy, or cut.',
      ...CONTAINED.slice(0, 2),
    ]);
  });

  test('a chain that was rewritten from a record on, by the same key', async () => {
    const records = recordsFrom(1, 120).map((record) =>
      record.seq === 50 ? { ...record, body: '{"forged":true}' } : record,
    );
    const dir = await writtenAnew(records, whole);
    await assertFindsNothingAlone(dir);
    await assertFound(dir, [
      'record 80: AUDIT/node7/at-080 has another hash: the chain was rewritten; of records 41 to 80 at least one is not what was written.',
      'record 120: AUDIT/node7/at-120 has another hash: the chain was rewritten; of records 41 to 80 at least one is not what was written.',
      CONTAINED[0] ?? '',
    ]);
  });

  test('an older copy put back, with its checkpoint', async () => {
    const dir = await copyOf(older);
    await assertFindsNothingAlone(dir);
    await assertFound(dir, [
      'record 120: AUDIT/node7/at-120 knows this record, but the records end at 80: the journal was put back to an older copy, or cut.',
      ...CONTAINED.slice(0, 2),
    ]);
  });

  test('all signed again with a new key', async () => {
    const dir = await writtenAnew(recordsFrom(1, 120), null);
    await assertFindsNothingAlone(dir);
    await assertFound(
      dir,
      KEPT_AT.map(
        (seq) =>
          `record ${seq}: AUDIT/node7/at-${String(seq).padStart(3, '0')} has the same hash, but its signature is not by ROOT/journal.db.key: the journal was signed again with another key.`,
      ),
    );
    // The kept key alone tells it as well.
    const byKey = await verify(dir, '--key', join(audit, 'key'));
    assert.equal(byKey.exitStatus, 1);
    assert.match(byKey.failure, /record 120: the signature of the checkpoint is not by AUDIT\/key\./);
  });

  test('another journal in its place, with a key of its own', async () => {
    const dir = await writtenAnew(
      recordsFrom(1, 130).map(({ seq }) => recordAt(seq, { body: '{"other":true}' })),
      null,
    );
    await assertFindsNothingAlone(dir);
    await assertFound(
      dir,
      KEPT_AT.map(
        (seq) =>
          `record ${seq}: AUDIT/node7/at-${String(seq).padStart(3, '0')} has another hash: this is another journal, or it was rewritten.`,
      ),
    );
  });

  test('among several the one of another node is named as that, and keys beside them are no checkpoints', async () => {
    const dir = await tempDir(owner);
    cpSync(join(audit, 'node7'), dir, { recursive: true });
    writeFileSync(join(dir, 'node7.vkey'), 'node7+00000000+AA==\n');
    assert.equal((await verify(whole, '--against', dir)).exitStatus, 0);
    const others = recordsFrom(1, 60).map(({ seq }) => recordAt(seq, { body: '{"node":"other"}' }));
    const other = await writtenAnew(others, null);
    copyFileSync(`${journalIn(other)}.checkpoint`, join(dir, 'at-060'));
    const { exitStatus, failure } = await verify(whole, '--against', dir);
    assert.equal(exitStatus, 1);
    const named =
      /record 60: (.*) is of (scribe\.journal\/[0-9a-f]+), and this is (scribe\.journal\/[0-9a-f]+): another/;
    const [, file, its, mine] = named.exec(failure) ?? assert.fail(failure);
    assert.equal(file, join(dir, 'at-060'));
    assert.notEqual(its, mine);
  });

  test('a checkpoint that is missing or none proves nothing, and neither does an empty directory', async () => {
    const missing = await verify(whole, '--against', join(audit, 'at-999'));
    assert.match(missing.failure, /^scribe: --against: AUDIT\/at-999 is missing\. Nothing was verified\.$/);
    const none = await verify(whole, '--against', join(audit, 'key'));
    assert.match(none.failure, /^scribe: --against: AUDIT\/key is no checkpoint.* Nothing was verified\.$/);
    const empty = await verify(whole, '--against', await tempDir(owner));
    assert.equal(empty.exitStatus, 1);
    assert.match(empty.failure, /there is no checkpoint in it/);
  });
});
