/** Snapshots: folded by a thread of its own, compared with the live state, used by the next fold, passed over when bad. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { foldRecords, foldState } from '../../src/journal/fold.ts';
import { KEPT_EVERY_RECORDS, superfluousSnapshots } from '../../src/journal/snapshot-table.ts';
import { hashOfState, missingSnapshot, takeSnapshot } from '../../src/journal/snapshots.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { tempDir } from '../support/temp-dir.ts';
import { openTemporary, pruneSeqs, recordAt, recordsFrom, tamper, withoutTriggers } from './support.ts';
import { type Sums, sumFold } from './sum-fold.ts';

const moduleUrl = new URL('./sum-fold.ts', import.meta.url).href;

/** The live state: folded from what was appended, as the engine does it. */
const liveState = (count: number): Sums => {
  const state = sumFold.initial();
  for (const record of recordsFrom(1, count)) sumFold.evolve(state, record);
  return state;
};

test('C14: a snapshot is folded elsewhere, equals the live state, and shortens the next fold', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 3000));
  const live = sumFold.write(liveState(2500));
  const task = { path, moduleUrl, exportName: 'sumFold', seq: 2500 };
  const taken = await takeSnapshot(journal, task, hashOfState(live));
  assert.deepEqual([taken.matches, taken.seq, taken.sizeBytes], [true, 2500, live.length]);
  assert.deepEqual(await journal.newestSnapshot(3), { seq: 2500, evolverVersion: 3, state: live });
  const folded = foldState(path, sumFold);
  assert.deepEqual([folded.seq, folded.snapshotSeq, folded.state], [3000, 2500, liveState(3000)]);
  const earlier = foldState(path, sumFold, 2000);
  assert.deepEqual([earlier.seq, earlier.snapshotSeq, earlier.state], [2000, 0, liveState(2000)]);
  const otherEvolvers = foldState(path, { ...sumFold, evolverVersion: 4 });
  assert.deepEqual([otherEvolvers.snapshotSeq, otherEvolvers.state], [0, liveState(3000)]);
  const again = await takeSnapshot(journal, { ...task, seq: 3000 }, null);
  assert.equal(again.stateHash, hashOfState(sumFold.write(liveState(3000))));
});

test('C14: a snapshot that is not the live state is not written', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 10));
  const task = { path, moduleUrl, exportName: 'sumFold', seq: 10 };
  const taken = await takeSnapshot(journal, task, hashOfState('{"another":"state"}'));
  assert.equal(taken.matches, false);
  assert.equal(await journal.newestSnapshot(3), null);
});

test('C14: a fold that fails takes nothing else with it', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 10));
  const task = { path, moduleUrl, exportName: 'sumFold', seq: 10 };
  await assert.rejects(takeSnapshot(journal, { ...task, exportName: 'throwingFold' }, null), /this fold cannot write/);
  await assert.rejects(takeSnapshot(journal, { ...task, exportName: 'none' }, null), /exports no fold called none/);
  await assert.rejects(takeSnapshot(journal, { ...task, exportName: 'notAFold' }, null), /exports no fold/);
  await assert.rejects(takeSnapshot(journal, { ...task, seq: 11 }, null), /ends at 10, before record 11/);
  await assert.rejects(journal.writeSnapshot({ seq: 11, evolverVersion: 3, state: '{}' }), { code: 'BadRecord' });
  await journal.append([recordAt(11)]);
});

test('C20: a record that cannot be folded is passed over and named, the same way every time', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append([...recordsFrom(1, 5), recordAt(6, { body: 'no json' }), recordAt(7)]);
  const parsing = {
    ...sumFold,
    evolve: (state: Sums, record: JournalRecord) => {
      JSON.parse(record.body);
      sumFold.evolve(state, record);
    },
  };
  const { state, bad } = foldState(path, parsing);
  assert.deepEqual([state.last, bad.length, bad[0]?.seq], [7, 1, 6]);
  assert.match(bad[0]?.what ?? '', /cannot be folded: .*JSON/);
});

test('C14: a damaged snapshot, or one of another chain, is passed over', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 10));
  await journal.writeSnapshot({ seq: 5, evolverVersion: 3, state: '{"good":true}' });
  await journal.writeSnapshot({ seq: 8, evolverVersion: 3, state: '{"good":"also"}' });
  await journal.close();
  const newestAfter = async (change: string): Promise<number | undefined> => {
    tamper(path, (db) => {
      withoutTriggers(db, () => db.exec(change));
    });
    const again = await openTemporary(t, { path });
    const newest = await again.journal.newestSnapshot(3);
    await again.journal.close();
    return newest?.seq;
  };
  assert.equal(await newestAfter('SELECT 1'), 8);
  assert.equal(await newestAfter(`UPDATE snapshots SET state = CAST('{"evil":1}' AS BLOB) WHERE seq = 8`), 5);
  assert.equal(await newestAfter(`UPDATE records SET hash = x'${'00'.repeat(32)}' WHERE seq = 5`), undefined);
});

test('C11: fold(snapshot + tail) = fold(all) = fold(pruned), for a fold that passes over what is gone', async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  // Objects come and go; what counts are those that are there.
  const alive = { evolverVersion: 1, ...objectsFold };
  const expected = new Set<string>();
  for (let seq = 1; seq <= 400; seq++) {
    const stream = `container/${Math.floor(seq / 4)}`;
    const ends = seq % 4 === 3 && seq % 5 !== 0;
    await journal.append([recordAt(seq, { stream, type: seq % 4 === 0 ? 'begun' : ends ? 'ended' : 'changed' })]);
    if (seq % 4 === 0) expected.add(stream);
    if (ends) expected.delete(stream);
  }
  const all = foldState(path, alive).state;
  assert.deepEqual(all, expected);
  const middle = foldState(path, alive, 200);
  await journal.writeSnapshot({ seq: 200, evolverVersion: 1, state: alive.write(middle.state) });
  assert.deepEqual(foldState(path, alive), { state: all, seq: 400, snapshotSeq: 200, bad: [] });
  const closed = Array.from({ length: 101 }, (_, n) => `container/${n}`).filter((stream) => !all.has(stream));
  const places = (await Promise.all(closed.map(journal.placesOfStream))).flat().map(({ seq }) => seq);
  for (const part of [places.slice(0, 40), places.slice(40)])
    await pruneSeqs(
      journal,
      part.toSorted((a, b) => a - b),
    );
  const pruned = foldState(path, alive);
  assert.deepEqual(pruned.state, all);
  let records = 0;
  foldRecords(path, {}, () => records++);
  assert.equal(records, 400 - places.length + 2);
});

test('snapshots are thinned as they are written: the newest two stay, and older ones a short fold apart', () => {
  let kept: { seq: number; sizeBytes: number }[] = [];
  for (let seq = 5_000; seq <= 1_000_000; seq += 5_000) {
    kept.push({ seq, sizeBytes: 1_000_000 });
    const gone = superfluousSnapshots(kept);
    kept = kept.filter((one) => !gone.includes(one.seq));
  }
  const distances = kept.map(({ seq }, index) => seq - (kept[index - 1]?.seq ?? 0));
  assert.deepEqual(new Set(distances.slice(0, -2)), new Set([KEPT_EVERY_RECORDS]));
  assert.deepEqual(
    kept.slice(-2).map(({ seq }) => seq),
    [995_000, 1_000_000],
  );
  // A state of 20 MB is kept every 200,000 records.
  const large = [100_000, 200_000, 300_000, 400_000, 500_000, 600_000].map((seq) => ({ seq, sizeBytes: 20_000_000 }));
  assert.deepEqual(superfluousSnapshots(large), [100_000, 300_000]);
});

test('a snapshot that pruning took is missing where a past state would be a long fold away', () => {
  const every = KEPT_EVERY_RECORDS;
  const small = (seq: number) => ({ seq, sizeBytes: 1_000 });
  assert.equal(missingSnapshot([], every), null);
  assert.equal(missingSnapshot([], 3 * every + 1), every);
  assert.equal(missingSnapshot([every - 1, 2 * every - 1].map(small), 4 * every), 3 * every - 1);
  assert.equal(missingSnapshot([every, 2 * every, 3 * every].map(small), 4 * every), null);
});

test('what is folded for the past is kept, however large the state is, and then nothing is missing', () => {
  for (const sizeBytes of [1_000, 3_999_999, 4_000_001, 17_000_000, 300_000_000]) {
    const headSeq = 1_000_000;
    let kept = [990_000, headSeq].map((seq) => ({ seq, sizeBytes }));
    for (let seq = missingSnapshot(kept, headSeq); seq !== null; seq = missingSnapshot(kept, headSeq)) {
      kept = [...kept, { seq, sizeBytes }].sort((a, b) => a.seq - b.seq);
      const gone = superfluousSnapshots(kept);
      assert.ok(!gone.includes(seq), `${seq} of ${sizeBytes} bytes was dropped at once`);
    }
  }
});

const objectsFold = {
  initial: () => new Set<string>(),
  settledIn: () => new Set<number>(),
  evolve: (state: Set<string>, { type, stream }: { readonly type: string; readonly stream: string }) => {
    if (type === 'begun') state.add(stream);
    if (type === 'ended') state.delete(stream);
  },
  write: (state: Set<string>) => JSON.stringify([...state]),
  read: (text: string) => new Set(JSON.parse(text) as string[]),
};
