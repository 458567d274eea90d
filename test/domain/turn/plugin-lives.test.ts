/** C11: what may be pruned of NRI plugins that have gone: without it every beginning of a journal folds to the same. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readGolden } from '../../../src/cli/replay/golden-text.ts';
import { initialState } from '../../../src/domain/model/state.ts';
import { evolve } from '../../../src/domain/turn/evolve.ts';
import { overWith, type PluginLives } from '../../../src/domain/turn/plugin-lives.ts';
import { writeState } from '../../../src/domain/turn/snapshot.ts';
import { fromJournalRecord } from '../../../src/engine/codec.ts';
import type { JournalRecord } from '../../../src/journal/types.ts';

const folded = (records: readonly JournalRecord[]): string => {
  const state = initialState();
  for (const record of records) {
    const sequenced = fromJournalRecord(record);
    if (sequenced !== null) evolve(state, sequenced);
  }
  return writeState(state);
};

const note = (seq: number, type: string, body: object, cause: number | null = null) => ({
  seq,
  type,
  stream: 'node',
  cause,
  body: JSON.stringify(body),
});

test('C11: connections of plugins that are over leave nothing behind, wherever the journal ends', async () => {
  const golden = join(import.meta.dirname, '../../golden/v1/nri-plugins.jsonl');
  const all = readGolden(await readFile(golden, 'utf8'));
  const lives: PluginLives = new Map();
  const over = new Set<number>();
  for (const [index, record] of all.entries()) {
    const found = overWith(lives, record);
    for (const seq of found) over.add(seq);
    if (found.length === 0) continue;
    const until = all.slice(0, index + 1);
    assert.equal(folded(until.filter(({ seq }) => !over.has(seq))), folded(until), `up to record ${record.seq}`);
  }
  assert.ok(over.size >= 8);
  assert.equal(folded(all.filter(({ seq }) => !over.has(seq))), folded(all));
  const types = new Set(all.filter(({ seq }) => over.has(seq)).map(({ type }) => type));
  const expected = ['effect.ended', 'effects.requested', 'nri.plugin.closed', 'nri.plugin.registered'];
  assert.deepEqual([...types].toSorted(), expected);
});

test('C11: one that is being told what there is stays until that has ended, and all go with the daemon', () => {
  const lives: PluginLives = new Map();
  const over = (...record: Parameters<typeof note>): readonly number[] => overWith(lives, note(...record));
  assert.deepEqual(over(1, 'nri.plugin.registered', { id: 'a' }), []);
  assert.deepEqual(over(2, 'effects.requested', { effects: [] }, 1), []);
  assert.deepEqual(over(3, 'nri.plugin.closed', { id: 'a' }), []);
  assert.deepEqual(over(4, 'effect.ended', {}, 2), [1, 2, 3, 4]);
  assert.deepEqual(over(5, 'nri.plugin.registered', { id: 'b' }), []);
  assert.deepEqual(over(6, 'effects.requested', { effects: [] }, 5), []);
  assert.deepEqual(over(7, 'nri.plugin.closed', { id: 'unknown' }), []);
  assert.deepEqual(over(8, 'daemon.started', {}), [5, 6]);
  assert.deepEqual(over(9, 'nri.plugin.closed', { id: 'b' }), []);
});
