/** The generator of large journals: the same seed makes the same records, which verify and are decided again alike. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { redecide } from '../../src/domain/turn/redecide.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { openReader } from '../../src/journal/open.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { tempDir } from '../support/temp-dir.ts';

test('C13: a made journal is what its seed says, verifies, and is decided again alike', async (t) => {
  const dir = await tempDir(t);
  const make = async (name: string, seed: number): Promise<string> => {
    const path = join(dir, name, 'journal.db');
    const made = await makeJournal({ path, records: 3000, seed });
    assert.ok(made >= 3000 && made < 3100, `${made} records`);
    return path;
  };
  const [one, same, other] = [await make('one', 5), await make('same', 5), await make('other', 6)];
  const hashOf = (path: string): string => {
    const reader = openReader(path);
    const hash = Buffer.from(reader.hashesOf(3000)?.hash ?? []).toString('hex');
    reader.close();
    return hash;
  };
  assert.equal(hashOf(one), hashOf(same));
  assert.notEqual(hashOf(one), hashOf(other));
  assert.deepEqual((await verifyJournal(one)).findings, []);
  const reader = openReader(one);
  const records = await Array.fromAsync(reader.read(), (record) => fromJournalRecord(record) ?? []);
  reader.close();
  for (const { input, isSame } of redecide(records.flat())) assert.ok(isSame, `record ${input.seq}`);
  const types = new Set(records.flat().map(({ type }) => type));
  for (const type of ['sandbox.removed', 'container.exited', 'container.adjusted', 'image.pulled', 'task.oomed'])
    assert.ok(types.has(type as never), type);
});
