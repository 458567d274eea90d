/**
 * Folding from snapshot to snapshot while a journal is verified says what folding from record 1 says, wherever snapshots, pruned
 * records and the moments that somebody asks for lie.
 */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, test } from 'node:test';
import fc from 'fast-check';
import { foldAll } from '../../src/journal/fold.ts';
import { hashOfState } from '../../src/journal/snapshots.ts';
import { verifyJournal, type VerifyReport } from '../../src/journal/verify.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { sumFold } from './sum-fold.ts';
import { insertSnapshots, openTemporary, pruneSeqs, recordsFrom, tamper, withoutTriggers } from './support.ts';

const { evolverVersion } = sumFold;
const moduleUrl = new URL('./sum-fold.ts', import.meta.url).href;
const RECORDS = 3_000;
const owner = cleanupAfterAll();
let path = '';
/** With the record that pruning added. */
let headSeq = 0;

before(async () => {
  path = join(await tempDir(owner), 'journal.db');
  const { journal } = await openTemporary(owner, { path });
  await journal.append(recordsFrom(1, RECORDS));
  await pruneSeqs(journal, [1, 2, 3, 255, 256, 257, ...Array.from({ length: 40 }, (_, index) => 1_000 + index)]);
  headSeq = journal.head().seq;
  await journal.close();
});

/** What is written of the state after each of these, folded from record 1. */
const statesAt = (seqs: readonly number[]): Map<number, string> => {
  const states = new Map<number, string>();
  const stops = [...new Set(seqs)].sort((a, b) => a - b);
  foldAll(path, sumFold, {
    stops,
    atStop: (state, seq) => states.set(seq, sumFold.write(state)),
    onProgress: () => {},
  });
  return states;
};

const replaceSnapshots = (states: ReadonlyMap<number, string>): void => {
  tamper(path, (db) => withoutTriggers(db, () => db.exec('DELETE FROM snapshots')));
  insertSnapshots(
    path,
    [...states].map(([seq, state]) => ({ seq, evolverVersion, state })),
  );
};

const verify = async (
  snapshots: readonly number[],
  others: readonly number[] = [],
  exportName = 'sumFold',
): Promise<VerifyReport> => {
  const fold = { module: { moduleUrl, exportName }, snapshots, others };
  return verifyJournal(path, { structure: false, fold: Promise.resolve(fold) });
};

const anySeqs = (maxLength: number): fc.Arbitrary<number[]> =>
  fc.uniqueArray(fc.integer({ min: 1, max: RECORDS }), { maxLength });

test('folds to the same states as from record 1, wherever snapshots and other moments lie', async () => {
  await fc.assert(
    fc.asyncProperty(anySeqs(8), anySeqs(4), async (snapshots, others) => {
      const states = statesAt([...snapshots, ...others, headSeq]);
      const inOrder = snapshots.toSorted((a, b) => a - b);
      replaceSnapshots(new Map(inOrder.map((seq) => [seq, states.get(seq) ?? ''])));
      const { ok, findings, folded } = await verify(inOrder, others);
      assert.ok(ok, JSON.stringify(findings));
      assert.deepEqual(
        folded?.states,
        [...states].map(([seq, state]) => ({ seq, stateHash: hashOfState(state) })),
      );
      assert.equal(folded.state, states.get(headSeq));
    }),
    {
      numRuns: 25,
      examples: [
        [
          [256, 257, 511, 512, 513, 768, 1_020, headSeq - 1],
          [255, 1_010, 2_999],
        ],
      ],
    },
  );
});

test('a snapshot with another state leads to another state than the next one has', async () => {
  const states = statesAt([1_000, 2_000, headSeq]);
  const wrong = '{"last":1000,"byType":{}}';
  replaceSnapshots(new Map([1_000, 2_000].map((seq) => [seq, seq === 1_000 ? wrong : (states.get(seq) ?? '')])));
  const { ok, folded } = await verify([1_000, 2_000]);
  assert.ok(ok);
  const hashes = new Map(folded?.states.map(({ seq, stateHash }) => [seq, stateHash]));
  assert.equal(hashes.get(1_000), hashOfState(states.get(1_000) ?? ''), 'what was folded up to it');
  assert.notEqual(hashes.get(2_000), hashOfState(states.get(2_000) ?? ''));
});

test('what cannot be folded is no finding: nothing is told of it, and the check goes on', async () => {
  const states = statesAt([1_000, 2_000]);
  replaceSnapshots(states);
  const nothing = [
    ['a fold that throws', await verify([1_000, 2_000], [], 'throwingFold')],
    ['a snapshot that is not there', await verify([500, 2_000])],
  ] as const;
  replaceSnapshots(new Map(states).set(1_000, 'no JSON'));
  const unread = ['a snapshot that cannot be read', await verify([1_000, 2_000])] as const;
  for (const [what, { ok, folded }] of [...nothing, unread]) {
    assert.equal(ok, true, what);
    assert.equal(folded, null, what);
  }
});

test('without a fold nothing is folded', async () => {
  const { folded } = await verifyJournal(path);
  assert.equal(folded, null);
});
