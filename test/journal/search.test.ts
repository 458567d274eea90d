/** What a search finds by indexes, against a look at every record; also in a journal that is older than an index. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { connectReader } from '../../src/journal/connect.ts';
import { openReader, type OpenedReader } from '../../src/journal/open.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { tamper } from './support.ts';

const owner = cleanupAfterAll();
const HEAD = 3000;
const STRETCHES = [
  [1, HEAD],
  [1, 40],
  [700, 1400],
  [2900, HEAD],
] as const;
const FEW = 2;

const inOrder = (numbers: Iterable<number>): number[] => [...numbers].sort((a, b) => a - b);

describe('searching by indexes', () => {
  let path = '';
  let reader: OpenedReader;
  let all: readonly JournalRecord[] = [];

  before(async () => {
    path = join(await tempDir(owner), 'journal.db');
    await makeJournal({ path, records: HEAD, seed: 8 });
    reader = openReader(path);
    onCleanup(owner, () => reader.close());
    all = await Array.fromAsync(reader.read());
  });

  /** The records of each call that began in a stretch. */
  const calls = (fromSeq: number, toSeq: number): Map<number, JournalRecord[]> =>
    Map.groupBy(
      all.filter(({ call }) => call !== null && call >= fromSeq && call <= toSeq),
      ({ call }) => call ?? 0,
    );

  const checkAsides = async (searched: OpenedReader): Promise<void> => {
    let found = 0;
    for (const [fromSeq, toSeq] of STRETCHES) {
      const ofCall = ({ stream, type }: JournalRecord): boolean =>
        stream.startsWith('call/') && type !== 'call.received' && type !== 'call.completed';
      const expected = [...calls(fromSeq, toSeq)].filter(([, records]) => records.some(ofCall)).map(([call]) => call);
      const [told] = await Array.fromAsync(searched.suspectWindows(FEW, [{ fromSeq, toSeq }], null).windows());
      assert.deepEqual(inOrder(told?.found.withAsides ?? []), inOrder(expected), `${fromSeq} to ${toSeq}`);
      found += expected.length;
    }
    assert.ok(found > 0);
  };

  test('finds calls that have told of more on their own streams', async () => {
    await checkAsides(reader);
  });

  test('finds them in a journal that is older than the index for that', async () => {
    const old = join(await tempDir(owner), 'journal.db');
    await makeJournal({ path: old, records: HEAD, seed: 8 });
    tamper(old, (db) => db.exec('DROP INDEX records_of_calls'));
    const older = openReader(old);
    onCleanup(owner, () => older.close());
    await checkAsides(older);
  });

  test('asks no table where calls have told of more', () => {
    const db = connectReader(path);
    onCleanup(owner, () => void db.close());
    const plan = db
      .prepare<[], { detail: string }>(
        `EXPLAIN QUERY PLAN SELECT call FROM records WHERE typeof(stream) = 'text' AND call <> seq AND call >= 1
           AND call <= ${HEAD} GROUP BY call HAVING count(*) > 1`,
      )
      .all();
    assert.match(plan.map(({ detail }) => detail).join(), /COVERING INDEX records_of_calls/);
  });

  test('finds calls of few records, and those that go on behind a stretch', () => {
    for (const [fromSeq, toSeq] of STRETCHES) {
      const expected = [...calls(fromSeq, toSeq)].map(([call, records]) => ({
        call,
        goesOn: records.some(({ seq }) => seq > toSeq),
        count: records.length,
      }));
      const told = reader.callsOfFew(FEW, { fromSeq, toSeq });
      const few = expected.filter(({ goesOn, count }) => goesOn || count <= FEW);
      assert.deepEqual(
        told.toSorted((a, b) => a.call - b.call),
        few.map(({ call, goesOn }) => ({ call, goesOn })).sort((a, b) => a.call - b.call),
      );
      const goingOn = expected.filter(({ goesOn }) => goesOn).map(({ call }) => call);
      assert.deepEqual(inOrder(reader.callsOfFew(0, { fromSeq, toSeq }).map(({ call }) => call)), inOrder(goingOn));
    }
    assert.ok(reader.callsOfFew(0, { fromSeq: 700, toSeq: 1400 }).length > 0);
  });

  test('finds those of many stretches, and that they go on behind their own or behind all', async () => {
    const windows = STRETCHES.slice(1).map(([fromSeq, toSeq]) => ({ fromSeq, toSeq }));
    const told = await Array.fromAsync(reader.suspectWindows(FEW, windows, null).windows());
    assert.deepEqual(
      told.map(({ found }) => found.few),
      windows.map((window) => reader.callsOfFew(FEW, window)),
    );
    const seen = await Array.fromAsync(reader.suspectWindows(FEW, windows, HEAD).windows());
    for (const { found, fromSeq, toSeq } of seen) {
      const few = [...calls(fromSeq, toSeq)].filter(([, records]) => records.length <= FEW).map(([call]) => call);
      assert.deepEqual(inOrder(found.few.map(({ call }) => call)), inOrder(few));
      assert.ok(found.few.every(({ goesOn }) => !goesOn));
    }
  });

  test('finds a value among some, however JSON and patterns write it', () => {
    const path = '$.request.method';
    const bodies = all.filter(({ type }) => type === 'call.received');
    const methodOf = ({ body }: JournalRecord): string =>
      (JSON.parse(body) as { request: { method: string } }).request.method;
    const search = (texts: readonly string[]): number =>
      reader.marked([{ types: ['call.received'], allOf: [[{ kind: 'isOneOf', path, texts }]] }], 1, HEAD).length;
    for (const texts of [['ExecSync'], ['RunPodSandbox', 'StopPodSandbox']]) {
      const expected = bodies.filter((record) => texts.includes(methodOf(record))).length;
      assert.ok(expected > 0);
      assert.equal(search(texts), expected);
      assert.equal(search([...texts, 'q"uo\\te', 'ż', '[*?', 'and']), expected, 'more of them than are sought');
    }
    for (const text of ['execsync', 'ExecSyn?', '*', '[E]xecSync']) assert.equal(search([text]), 0, text);
  });

  test('finds an exact text as it stands, whatever it means in a pattern', () => {
    const holding = (text: string): number =>
      reader.marked([{ types: null, allOf: [[{ kind: 'holds', text, isExact: true }]] }], 1, HEAD).length;
    assert.ok(holding('"caller":{"pid"') > 0);
    assert.ok(holding('"cmd":["') > 0);
    for (const text of ['"Caller":{', '*', 'c?ller', '[c]aller']) assert.equal(holding(text), 0, text);
  });
});
