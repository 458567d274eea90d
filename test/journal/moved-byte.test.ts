/** A page of records of which everything is right but where one hash ends and the other begins. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tamper, withoutTriggers } from './support.ts';

test('C9: a byte that moved from one hash of a record to the other is found', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  await makeJournal({ path, records: 2000, seed: 3 });
  assert.deepEqual((await verifyJournal(path)).findings, []);
  tamper(path, (db) => {
    withoutTriggers(db, () =>
      db.exec(`UPDATE records SET body_hash = CAST(substr(body_hash, 1, 31) AS BLOB),
        hash = CAST(CAST(substr(body_hash, 32) AS BLOB) || hash AS BLOB) WHERE seq = 777`),
    );
  });
  const { findings } = await verifyJournal(path);
  assert.deepEqual(findings[0], { seq: 777, what: 'body_hash has 31 bytes.' });
});
