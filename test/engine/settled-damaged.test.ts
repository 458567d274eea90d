/**
 * Folding checked, as `at` and `why` do, leaves out what has settled, but tells of every record that is not as it was written, and takes it
 * for none that settles another: with each record of a probe damaged in turn.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { writeState } from '../../src/domain/turn/snapshot.ts';
import { nodeFold } from '../../src/engine/node-fold.ts';
import { foldRecords, foldState } from '../../src/journal/fold.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { tamper, withoutTriggers } from '../journal/support.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
/** Before the first snapshot. */
const HEAD = 1_500;
let path = '';
let all: readonly JournalRecord[] = [];

before(async () => {
  path = join(await tempDir(owner), 'journal.db');
  await makeJournal({ path, records: HEAD, seed: 3 });
  const read: JournalRecord[] = [];
  foldRecords(path, { toSeq: HEAD }, (record) => read.push(record));
  all = read;
});

/** What is folded without one record, each of the others looked at. */
const foldedWithout = (left: number): string => {
  const state = nodeFold.initial();
  for (const record of all) if (record.seq !== left) nodeFold.evolve(state, record);
  return writeState(state);
};

const setBody = (seq: number, body: string): void =>
  tamper(path, (db) =>
    withoutTriggers(db, () => db.prepare('UPDATE records SET body = ? WHERE seq = ?').run(body, seq)),
  );

test('C20: a damaged record of a probe is told of, and settles nothing', () => {
  const probe = all.find(({ type, body }) => type === 'call.received' && body.includes('"ExecSync"'));
  assert.ok(probe !== undefined);
  const ofProbe = all.filter(({ call }) => call === probe.seq);
  assert.deepEqual(
    ofProbe.map(({ type }) => type),
    ['call.received', 'effects.requested', 'effect.ended', 'call.completed'],
  );
  const whole = foldState(path, nodeFold, HEAD, 'checked');
  assert.deepEqual(whole.bad, []);
  assert.equal(writeState(whole.state), foldedWithout(0));
  for (const { seq, body } of ofProbe) {
    // As much JSON as before.
    setBody(seq, body.replace('{', '{ '));
    const { state, bad } = foldState(path, nodeFold, HEAD, 'checked');
    setBody(seq, body);
    assert.deepEqual(
      bad.map((one) => one.seq),
      [seq],
    );
    assert.match(bad[0]?.what ?? '', /not as it was written/);
    assert.equal(writeState(state), foldedWithout(seq), `record ${seq}`);
  }
});
