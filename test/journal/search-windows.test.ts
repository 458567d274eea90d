/** Searching a journal on two threads: what is found is what one thread finds, in its order, whatever becomes of the other. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { openReader, type OpenedReader } from '../../src/journal/open.ts';
import type { Mark, MarkRule } from '../../src/journal/marks.ts';
import { helpSearch, searchWindows, type SearchHelper } from '../../src/journal/search-windows.ts';
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

  /** Each window takes this thread a while, so that the other comes to some. */
  const search = async (helper: SearchHelper | null, eachMs: number) => {
    let mine = 0;
    const marked = (...range: Parameters<OpenedReader['marked']>): readonly Mark[] => {
      mine += 1;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, eachMs);
      return reader.marked(...range);
    };
    const found = await Array.fromAsync(searchWindows({ rules, windows }, marked, () => helper));
    const expected = windows.map((window) => ({
      ...window,
      marks: reader.marked(rules, window.fromSeq, window.toSeq),
    }));
    assert.deepEqual(found, expected);
    assert.ok(found.some(({ marks }) => marks.length > 0));
    return mine;
  };

  const helperFor = (records: number): SearchHelper => helpSearch(path, records) ?? assert.fail('no helper');

  test('is shared between them', async () => {
    assert.ok((await search(helperFor(1_000_000), 100)) < windows.length);
  });

  test('goes on alone where the other ended early', async () => {
    const helper = helperFor(1_000_000);
    helper.end();
    assert.equal(await search(helper, 0), windows.length);
  });

  test('of little is done on one', async () => {
    assert.equal(helpSearch(path, 1000), null);
    assert.equal(await search(null, 0), windows.length);
  });

  test('finds a text as it stands, whatever it means in a pattern', () => {
    const holding = (text: string): number =>
      reader.marked([{ types: null, allOf: [[{ kind: 'holds', text }]] }], 1, 2000).length;
    assert.ok(holding('CALLER') > 0);
    assert.ok(holding('"pid"') > 0);
    for (const text of ['%', 'c_ller', 'c\\aller', '"p%"']) assert.equal(holding(text), 0, text);
  });
});
