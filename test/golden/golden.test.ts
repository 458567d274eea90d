/**
 * C13: golden journals of every version are folded and decided again, and the requests of their effects (OCI specs, CNI
 * arguments, mounts) are made again: all as NAME.expected.json says. When this fails, a decision changed (gate it by the
 * rules of the journal, or accept it with a reason), a request did (look at it, then accept it), or a body lost its meaning
 * (upcast it). `node scripts/make-golden.ts --accept NAME` writes down what is decided and asked for today.
 */
import assert from 'node:assert/strict';
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { evolve } from '../../src/domain/turn/evolve.ts';
import { writeState } from '../../src/domain/turn/snapshot.ts';
import { initialState } from '../../src/domain/model/state.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { readGolden } from '../../src/cli/replay/golden-text.ts';
import { redecided } from '../support/redecided.ts';
import { expectationOf, readExpectation, sequencedIn } from './expectation.ts';

const versions = (await readdir(import.meta.dirname)).filter((name) => /^v\d+$/.test(name));
const v1 = join(import.meta.dirname, 'v1');

const differencesIn = (records: ReturnType<typeof readGolden>): string[] =>
  expectationOf(records.flatMap((record) => fromJournalRecord(record) ?? [])).differences.map((difference) =>
    difference.replace(/ \d+/, ''),
  );

for (const version of versions) {
  const dir = join(import.meta.dirname, version);
  for (const name of (await readdir(dir)).filter((file) => file.endsWith('.jsonl'))) {
    test(`C13: ${version}/${name} folds, is decided again the same, and asks for the same`, async () => {
      const path = join(dir, name);
      const sequenced = sequencedIn(await readFile(path, 'utf8'));
      const expected = await readExpectation(path);
      assert.deepEqual(expectationOf(sequenced), expected);
      assert.ok(expected.decisions > 0 && expected.requests.length > 0);
      const { state } = redecided(sequenced);
      const folded = initialState();
      for (const record of sequenced) evolve(folded, record);
      assert.equal(writeState(folded), writeState(state));
    });
  }
}

test('C13: another decision than the recorded one is found', async () => {
  const records = readGolden(await readFile(join(v1, 'history-12.jsonl'), 'utf8'));
  const planted = records.map((record) =>
    record.type === 'sandbox.ready' ? { ...record, body: '{"claimed":"maybe"}' } : record,
  );
  assert.deepEqual([...new Set(differencesIn(planted))], ['different sandbox.ready body.claimed']);
});

test('C13: another OCI spec than the recorded one is found, also in journals that have no digests', async () => {
  for (const name of ['history-12.jsonl', 'nri-plugins.jsonl']) {
    const path = join(v1, name);
    const records = readGolden(await readFile(path, 'utf8'));
    // As if every spec were built with one capability less.
    const planted = records.map((record) => ({ ...record, body: record.body.replace('"CAP_CHOWN",', '') }));
    const { requests } = expectationOf(planted.flatMap((record) => fromJournalRecord(record) ?? []));
    const expected = (await readExpectation(path)).requests;
    assert.equal(requests.length, expected.length);
    const kinds = requests
      .filter((request, index) => request !== expected[index])
      .map((request) => request.split(' ')[1]);
    assert.ok(kinds.includes('PrepareContainer'), `${name}: ${kinds.join(' ')}`);
  }
});
