/** `scribe history --reverse`: the history backwards, however small the windows in which it is read. */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { createScan } from '../../src/cli/history/scan.ts';
import type { Entry } from '../../src/cli/history/entries.ts';
import { readOn } from '../../src/cli/history/read-on.ts';
import { pastFromItsEnd } from '../../src/cli/history/reverse.ts';
import { createSelection, type Selection, type Wanted } from '../../src/cli/history/selection.ts';
import { openReader } from '../../src/journal/open.ts';
import { cleanupAfterAll, onCleanup, type Owner } from '../support/cleanup.ts';
import { rowsOf, tell } from './story.ts';
import { type Root, rootWith, scribe } from './support.ts';

describe('a history backwards', () => {
  const owner: Owner = cleanupAfterAll();
  let root: Root;

  before(async () => {
    root = await rootWith(owner, (await tell()).records);
  });

  /** What an entry consists of, by the numbers of its records. */
  const seqsOfEntry = (entry: Entry): unknown => {
    switch (entry.kind) {
      case 'call':
        return [entry.received?.record.seq, ...entry.events.map(({ seq }) => seq), entry.completed?.record.seq];
      case 'event':
        return [entry.record.seq, entry.afterKill];
      case 'read':
      case 'pruned':
        return entry;
    }
  };

  const everything = { since: null, until: null };
  const late = { since: { kind: 'record', seq: 40 }, until: { kind: 'record', seq: 120 } } as const;
  for (const windowRecords of [1, 2, 3, 7, 50, 4096])
    for (const wanted of [{}, { pod: 'default/web' }] satisfies Wanted[])
      for (const withEvents of [false, true])
        for (const range of [everything, late])
          test(`is the history turned round: ${JSON.stringify({ windowRecords, wanted, withEvents, range })}`, async (t) => {
            const reader = openReader(root.journalPath);
            onCleanup(t, () => reader.close());
            const common = { reader, withEvents, range };
            const chosen = async (past: (selection: Selection) => AsyncIterable<Entry>): Promise<unknown[]> => {
              const selection = createSelection(wanted);
              const entries = await Array.fromAsync(past(selection));
              return entries.filter(selection.has).map(seqsOfEntry);
            };
            const rest = { withReads: false, live: false, shownSeq: null };
            const forwards = await chosen((selection) => createScan({ ...common, ...rest, selection }).past());
            assert.ok(forwards.length > 3);
            assert.deepEqual(
              await chosen((selection) => pastFromItsEnd({ ...common, selection }, windowRecords)),
              forwards.toReversed(),
            );
          });

  test('is whole wherever it begins, and so is what is read on from a record', async (t) => {
    const reader = openReader(root.journalPath);
    onCleanup(t, () => reader.close());
    const options = { reader, selection: createSelection({}), withEvents: true };
    const rest = { withReads: false, live: false, shownSeq: null };
    const beginOf = (entry: Entry): number => {
      if (entry.kind === 'event') return entry.record.seq;
      return entry.kind === 'call' ? ((entry.received ?? entry.completed)?.record.seq ?? 0) : 0;
    };
    const headSeq = reader.headSeq();
    for (let seq = 1; seq <= headSeq; seq += 3) {
      const part = { ...options, range: { since: { kind: 'record', seq }, until: null } } as const;
      const forwards = await Array.fromAsync(createScan({ ...part, ...rest }).past());
      const backwards = await Array.fromAsync(pastFromItsEnd(part, 5));
      assert.deepEqual(backwards.map(seqsOfEntry), forwards.map(seqsOfEntry).toReversed(), `since ${seq}`);
      for (let first = seq + 1; first <= headSeq; first += 17) {
        const later = forwards.filter((entry) => beginOf(entry) >= first);
        const readOnFrom = await Array.fromAsync(readOn(part, first, false));
        assert.deepEqual(readOnFrom.map(seqsOfEntry), later.map(seqsOfEntry), `since ${seq}, on from ${first}`);
      }
    }
  });

  const whats = async (...words: readonly string[]): Promise<string[]> => {
    const { exitStatus, stdout, stderr } = await scribe(['history', '--root', root.dir, ...words]);
    assert.equal(exitStatus, 0, stderr);
    return rowsOf(stdout).map(({ WHAT = '' }) => WHAT);
  };

  test('the newest so many, the newest first', async () => {
    assert.deepEqual(await whats('--reverse', '--limit', '2'), ['StopPodSandbox', 'PortForward']);
    assert.deepEqual(await whats('-r'), (await whats()).toReversed());
    assert.deepEqual(await whats('-r', '--failed', '--pod', 'unlucky'), ['RunPodSandbox']);
  });

  test('the newest so many are the last of the whole history, whatever it is chosen by', async () => {
    const choices = [
      [],
      ['--failed'],
      ['--pod', 'default/web'],
      ['--events'],
      ['--namespace', 'default', '--until', '90'],
    ];
    for (const words of choices) {
      const { stdout } = await scribe(['history', '--root', root.dir, '--json', ...words]);
      const whole = stdout.split('\n');
      for (const limit of [1, 3, 1000]) {
        const limited = await scribe(['history', '--root', root.dir, '--json', ...words, '--limit', String(limit)]);
        const newest = limited.stdout.split('\n');
        assert.ok(newest.length > limit || limit === 1000, words.join(' '));
        assert.deepEqual(newest, whole.slice(-newest.length), words.join(' '));
      }
    }
  });

  test('what has no end to begin at is refused', async () => {
    for (const words of [['--follow'], ['--reads'], ['--method', 'Status']])
      assert.equal((await scribe(['history', '--root', root.dir, '--reverse', ...words])).exitStatus, 2);
  });
});
