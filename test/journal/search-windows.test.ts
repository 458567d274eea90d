/** Searching a journal on two threads: what is found is what one thread finds, in its order, whatever becomes of the other. */
import assert from 'node:assert/strict';
import { truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { openReader, type OpenedReader } from '../../src/journal/open.ts';
import type { Mark, MarkRule } from '../../src/journal/marks.ts';
import {
  createWindowSearch,
  helpSearch,
  helpSearchSoon,
  type SearchHelper,
  type Window,
} from '../../src/journal/search-windows.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
const WINDOW_RECORDS = 50;
const windows = Array.from({ length: 40 }, (_, index) => ({
  fromSeq: index * WINDOW_RECORDS + 1,
  toSeq: (index + 1) * WINDOW_RECORDS,
}));
const rules: readonly MarkRule[] = [{ types: ['call.received'], allOf: [[{ kind: 'holds', text: '"execsync"' }]] }];

describe('a search on two threads', () => {
  let path = '';
  let reader: OpenedReader;

  before(async () => {
    path = join(await tempDir(owner), 'journal.db');
    await makeJournal({ path, records: 2000, seed: 5 });
    reader = openReader(path);
    onCleanup(owner, () => reader.close());
  });

  type Helper = SearchHelper<readonly Mark[]>;

  /** Each window takes this thread a while, so that the other comes to some. */
  const search = async (helper: Helper | null, { eachMs = 0, isAhead = false } = {}) => {
    let mine = 0;
    const lookHere = ({ fromSeq, toSeq }: Window): readonly Mark[] => {
      mine += 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, eachMs);
      return reader.marked(rules, fromSeq, toSeq);
    };
    const help = <T>(): SearchHelper<T> | null => helper as SearchHelper<T> | null;
    const searched = createWindowSearch({ look: { kind: 'marks', rules }, windows }, lookHere, help);
    if (isAhead) {
      searched.beginAhead();
      // Until it has found something.
      await helper?.news();
    }
    const found = await Array.fromAsync(searched.windows());
    const expected = windows.map((window) => ({
      ...window,
      found: reader.marked(rules, window.fromSeq, window.toSeq),
    }));
    assert.deepEqual(found, expected);
    assert.ok(found.some(({ found: marks }) => marks.length > 0));
    return mine;
  };

  const helperFor = (records: number): Helper => helpSearch(path)<readonly Mark[]>(records) ?? assert.fail('no helper');

  test('is shared between them', async () => {
    assert.ok((await search(helperFor(1_000_000), { eachMs: 100 })) < windows.length);
  });

  test('is begun by the other ahead', async () => {
    assert.ok((await search(helperFor(1_000_000), { eachMs: 100, isAhead: true })) < windows.length);
  });

  test('goes on alone where the other ended early', async () => {
    const helper = helperFor(1_000_000);
    helper.end();
    assert.equal(await search(helper), windows.length);
  });

  test('of little is done on one', async () => {
    assert.equal(helpSearch(path)(1000), null);
    assert.equal(await search(null), windows.length);
  });

  test('of a journal that is searched soon has its thread once, where it is a long one', () => {
    const short = helpSearchSoon(path);
    assert.equal(short.help(1000), null);
    short.end();
    // A file of its size alone: what is in it nobody asks.
    const long = `${path}.long`;
    writeFileSync(long, '');
    truncateSync(long, 100 * 1024 * 1024);
    const soon = helpSearchSoon(long);
    const first = soon.help(1000);
    assert.ok(first !== null);
    assert.equal(soon.help(1000), null);
    first.end();
    soon.end();
  });

  test('finds a text as it stands, whatever it means in a pattern', () => {
    const holding = (text: string): number =>
      reader.marked([{ types: null, allOf: [[{ kind: 'holds', text }]] }], 1, 2000).length;
    assert.ok(holding('CALLER') > 0);
    assert.ok(holding('"pid"') > 0);
    for (const text of ['%', 'c_ller', 'c\\aller', '"p%"']) assert.equal(holding(text), 0, text);
  });
});
