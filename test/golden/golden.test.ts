/**
 * C13: golden journals of every version are folded and decided again. When this fails, either a decision changed (then
 * it has to be gated by the record version or accepted here with a reason) or a body lost its meaning (then upcast it).
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

const versions = (await readdir(import.meta.dirname)).filter((name) => /^v\d+$/.test(name));

for (const version of versions) {
  const dir = join(import.meta.dirname, version);
  for (const name of (await readdir(dir)).filter((file) => file.endsWith('.jsonl'))) {
    test(`C13: ${version}/${name} folds and is decided again the same`, async () => {
      const records = readGolden(await readFile(join(dir, name), 'utf8'));
      const sequenced = records.map((record) => {
        const parsed = fromJournalRecord(record);
        assert.ok(parsed !== null, `record ${record.seq} can not be read any more`);
        return parsed;
      });
      const { differences, decisions, state } = redecided(sequenced);
      assert.deepEqual(differences, []);
      assert.ok(decisions > 0);
      const folded = initialState();
      for (const record of sequenced) evolve(folded, record);
      assert.equal(writeState(folded), writeState(state));
    });
  }
}

test('C13: another decision than the recorded one is found', async () => {
  const [name = ''] = await readdir(join(import.meta.dirname, 'v1'));
  const records = readGolden(await readFile(join(import.meta.dirname, 'v1', name), 'utf8'));
  const planted = records.map((record) =>
    record.type === 'sandbox.ready' ? { ...record, body: '{"claimed":"maybe"}' } : record,
  );
  const { differences } = redecided(planted.flatMap((record) => fromJournalRecord(record) ?? []));
  assert.deepEqual(
    [...new Set(differences.map(({ type, path }) => `${type} ${path}`))],
    ['sandbox.ready body.claimed'],
  );
});
