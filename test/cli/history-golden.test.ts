/**
 * Histories of one pod, container or image each, of what real and simulated nodes went through (calls that joined others, were
 * given up, or did nothing): the indexes find what reading every record finds.
 */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readGolden } from '../../src/cli/replay/golden-text.ts';
import { candidatesOf } from '../../src/cli/history/candidates.ts';
import type { Entry } from '../../src/cli/history/entries.ts';
import { createScan } from '../../src/cli/history/scan.ts';
import { createSelection, type Selection, type Wanted } from '../../src/cli/history/selection.ts';
import type { Range } from '../../src/cli/time-argument.ts';
import { openReader } from '../../src/journal/open.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { rootWith } from './support.ts';

const owner = cleanupAfterAll();
const dir = join(import.meta.dirname, '../golden/v1');
/** Of several versions of the rules, with calls that joined others, that ended behind a range, and that an NRI plugin changed. */
const JOURNALS = [
  'history-own-11.jsonl',
  'history-pins-31.jsonl',
  'history-rules2-44.jsonl',
  'history-rules2-138.jsonl',
  'killed-in-create.jsonl',
  'nri-plugins.jsonl',
];
const nothing = {
  methods: [],
  failedOnly: false,
  callerUid: null,
  executable: null,
  code: null,
  execOnly: false,
  text: null,
  plugin: null,
};
const THINGS = { sandbox: 'pod', container: 'container', image: 'image' } as const;

const thingsOf = (records: readonly JournalRecord[]): Wanted[] => {
  const streams = new Set(
    records.map(({ stream }) => stream).filter((stream) => /^(sandbox|container|image)\//.test(stream)),
  );
  const byId = [...streams].map((stream): Wanted => {
    const [kind = '', id = ''] = stream.split('/');
    return { [THINGS[kind as keyof typeof THINGS]]: id };
  });
  const labels = [{ key: 'nobody', value: null, negated: true }];
  return [...byId, { container: 'c' }, { labels }, { namespace: 'default' }];
};

const seqsOf = (entry: Entry): unknown =>
  entry.kind === 'call'
    ? [entry.received?.record.seq, entry.completed?.record.seq]
    : entry.kind === 'event'
      ? entry.record.seq
      : entry;

for (const name of JOURNALS)
  test(`histories of single things are those of a scan: ${name}`, async () => {
    // Up to where the journal told of itself, which no golden journal keeps.
    const whole = readGolden(await readFile(join(dir, name), 'utf8'));
    const gap = whole.findIndex(({ seq }, index) => seq !== index + 1);
    const records = gap < 0 ? whole : whole.slice(0, gap);
    const { journalPath } = await rootWith(owner, records);
    const reader = openReader(journalPath);
    onCleanup(owner, () => reader.close());
    const middle = { kind: 'record', seq: Math.floor(records.length / 2) } as const;
    const ranges: readonly Range[] = [
      { since: null, until: null },
      { since: null, until: middle },
      { since: middle, until: null },
    ];
    let shown = 0;
    for (const wanted of thingsOf(records))
      for (const range of ranges) {
        const entriesOf = async (past: (selection: Selection) => AsyncGenerator<Entry> | null): Promise<unknown[]> => {
          const selection = createSelection(wanted);
          const entries = await Array.fromAsync(past(selection) ?? assert.fail('nothing is chosen'));
          return entries.filter((entry) => selection.has(entry)).map(seqsOf);
        };
        const asked = { reader, withEvents: false, range };
        const rest = { withReads: false, live: false, shownSeq: null };
        const all = await entriesOf((selection) => createScan({ ...asked, ...rest, selection }).past());
        const found = await entriesOf((selection) => candidatesOf({ ...asked, selection }, nothing));
        assert.deepEqual(found, all, JSON.stringify({ wanted, range }));
        shown += found.length;
      }
    assert.ok(shown > 0);
  });
