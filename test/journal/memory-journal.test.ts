/** The in-memory journal: the contract, and the disk that its caller plays. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryJournal, emptyContents } from '../../src/journal/memory-journal.ts';
import { contractSuite } from './contract.ts';
import { collect, recordAt } from './support.ts';

contractSuite('memory', async () => {
  const contents = emptyContents();
  const journal = createMemoryJournal({ contents });
  return {
    journal,
    reopen: async () => {
      await journal.close();
      return createMemoryJournal({ contents });
    },
  };
});

test('C7: when a commit fails everybody is told, and nothing more is taken', async () => {
  const contents = emptyContents();
  let commits = 0;
  const commit = async (): Promise<void> => {
    if (++commits === 2) throw new Error('no room');
  };
  const journal = createMemoryJournal({ contents, commit });
  const appends = [1, 2, 3].map(async (seq) => journal.append([recordAt(seq)]));
  assert.deepEqual(
    (await Promise.allSettled(appends)).map(({ status }) => status),
    ['fulfilled', 'rejected', 'rejected'],
  );
  assert.match((await journal.failed).message, /no room/);
  await assert.rejects(journal.append([recordAt(4)]), { code: 'Failed' });
  await journal.close();
  assert.deepEqual((await collect(createMemoryJournal({ contents }).read())).length, 1);
});

test('C1: what was not committed when the process died never happened', async () => {
  const contents = emptyContents();
  let commits = 0;
  const commit = async (): Promise<void> => (++commits === 2 ? new Promise<never>(() => undefined) : undefined);
  const journal = createMemoryJournal({ contents, commit });
  await journal.append([recordAt(1)]);
  void journal.append([recordAt(2)]);
  const next = createMemoryJournal({ contents });
  assert.equal(next.head().seq, 1);
  await next.append([recordAt(2, { body: '"another"' })]);
  assert.equal((await collect(next.read()))[1]?.body, '"another"');
});
