/** Reads of the journal as records: the first at once, many of one kind as one, and none that is not told of. */
import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { createJournalReads, type JournalReads } from '../../src/daemon/journal-reads.ts';
import type { JournalRead } from '../../src/domain/model/reads.ts';
import type { Caller } from '../../src/domain/model/records.ts';
import type { CallDraft } from '../../src/domain/call/draft.ts';

const auditor: Caller = { pid: 1, uid: 1001, executable: '/usr/bin/node', startTicks: '1' };
const history: JournalRead = { subcommand: 'history', words: ['--failed'], fromSeq: 1, toSeq: 10, shown: 2 };

interface Recording extends JournalReads {
  readonly recorded: readonly (CallDraft & { readonly by: number })[];
  readonly read: (read: JournalRead, caller?: Caller) => Promise<void>;
}

const recording = (t: TestContext): Recording => {
  t.mock.timers.enable({ apis: ['setInterval'] });
  const recorded: (CallDraft & { by: number })[] = [];
  const reads = createJournalReads(async (draft, { caller }) => {
    recorded.push({ ...draft, by: caller?.pid ?? 0 });
    return { outcome: { ok: true, response: null }, seq: recorded.length } as never;
  });
  return {
    ...reads,
    recorded,
    read: async (read, caller = auditor) =>
      assert.equal(await reads.record(read, { caller, deadlineNs: null }), null, 'refused'),
  };
};

test('the first is recorded at once, and what is read again in ten seconds as one, by whom it was last', async (t) => {
  const { read, recorded } = recording(t);
  await read(history);
  assert.deepEqual(recorded, [{ method: 'ReadJournal', ...history, by: 1 }]);
  for (let pid = 2; pid <= 1000; pid += 1) await read({ ...history, toSeq: pid }, { ...auditor, pid });
  assert.equal(recorded.length, 1);
  t.mock.timers.tick(10_000);
  const all = { ...history, toSeq: 1000, shown: 2 * 999, times: 999 };
  assert.deepEqual(recorded.slice(1), [{ method: 'ReadJournal', ...all, by: 1000 }]);
  await read(history);
  assert.equal(recorded.length, 2, 'whoever goes on is recorded every ten seconds');
  t.mock.timers.tick(10_000);
  assert.deepEqual(recorded.slice(2), [{ method: 'ReadJournal', ...history, by: 1 }]);
  t.mock.timers.tick(10_000);
  await read(history);
  assert.equal(recorded.length, 4, 'after a quiet time it is the first again');
});

test('another user, program, command or filter is recorded by itself', async (t) => {
  const { read, recorded } = recording(t);
  await read(history);
  await read(history, { ...auditor, uid: 0 });
  await read(history, { ...auditor, executable: '/usr/bin/other' });
  await read({ ...history, subcommand: 'report' });
  await read({ ...history, words: [] });
  assert.equal(recorded.length, 5);
});

test('of one who asks in ever other ways all are counted, and few records made', async (t) => {
  const { read, recorded, close } = recording(t);
  for (let seq = 1; seq <= 5000; seq += 1) await read({ subcommand: 'why', words: [String(seq)] });
  await close();
  assert.ok(recorded.length <= 70, `${recorded.length} records`);
  const counts = recorded.map((draft) => (draft.method === 'ReadJournal' ? (draft.times ?? 1) : 0));
  assert.equal(
    counts.reduce((sum, times) => sum + times, 0),
    5000,
  );
  const last = recorded.at(-1);
  assert.ok(last?.method === 'ReadJournal' && last.differing === true);
});

test('what is counted is recorded when the daemon ends', async (t) => {
  const { read, recorded, close } = recording(t);
  await read(history);
  await read(history);
  await close();
  assert.equal(recorded.length, 2);
  t.mock.timers.tick(60_000);
  assert.equal(recorded.length, 2);
});
