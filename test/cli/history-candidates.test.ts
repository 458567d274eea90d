/** Filters that SQLite narrows: what a history shows is what it shows when every record is read, for each filter and range. */
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { makeJournal } from '../../scripts/lib/large-journal/make.ts';
import { candidatesOf } from '../../src/cli/history/candidates.ts';
import type { Entry } from '../../src/cli/history/entries.ts';
import { type Filter, passes } from '../../src/cli/history/filter.ts';
import { createScan } from '../../src/cli/history/scan.ts';
import { createSelection, type Selection, type Wanted } from '../../src/cli/history/selection.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { openJournal, openReader, type OpenedReader } from '../../src/journal/open.ts';
import { pruneSeqs, recordAt } from '../journal/support.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';

const owner = cleanupAfterAll();
const none: Filter = {
  methods: [],
  failedOnly: false,
  callerUid: null,
  executable: null,
  code: null,
  execOnly: false,
  text: null,
  plugin: null,
};
const FILTERS: Readonly<Record<string, Partial<Filter>>> = {
  'a method': { methods: ['pullimage'] },
  'two methods': { methods: ['StopContainer', 'RemoveImage'] },
  'what is mostly there': { methods: ['ExecSync'] },
  'a caller': { callerUid: 998 },
  'a program': { executable: 'node-agent' },
  'a path': { executable: '/opt/agent/bin/node-agent' },
  'a code': { code: 14 },
  'no failure': { code: 0 },
  'failed ones': { failedOnly: true },
  'failed ones of a method': { failedOnly: true, methods: ['ExecSync'] },
  'commands of somebody': { execOnly: true, callerUid: 998 },
  'a text': { text: 'REGISTRYUNAVAILABLE' },
  'a text of ends': { text: '"exitcode":1' },
  'a text that events have': { text: 'oomkilled' },
  'a text with a quote': { text: '"Completed"' },
  'a text of what is told beneath calls, and by itself of pods': { text: 'exitStatus' },
  'words of a command': { text: 'pg_isready -U ORDERS' },
  'a text that nothing has': { text: 'nowhere-to-be-found' },
  'a text of other letters, which nothing has': { text: 'żółć' },
  'a plugin': { plugin: '10-limits' },
  'a plugin by its bare name': { plugin: 'limits' },
};
const RANGES = {
  all: { since: null, until: null },
  middle: { since: { kind: 'record', seq: 900 }, until: { kind: 'record', seq: 2500 } },
} as const;

/** What an entry consists of, by the numbers of its records. */
const seqsOf = (entry: Entry): unknown => {
  switch (entry.kind) {
    case 'call':
      return [entry.received?.record.seq, entry.events.map(({ seq }) => seq), entry.completed?.record.seq];
    case 'event':
      return [entry.record.seq, entry.afterKill ?? false];
    case 'read':
    case 'pruned':
      return entry;
  }
};

let reader: OpenedReader;
let path = '';
/** What reading everything gives, by range and whether events are asked for. */
const scans = new Map<string, readonly Entry[]>();

const scanOf = async (name: string, withEvents: boolean): Promise<readonly Entry[]> => {
  const range = RANGES[name as keyof typeof RANGES];
  const options = { reader, selection: createSelection({}), withEvents, range, withReads: false, live: false };
  const key = `${name} ${withEvents}`;
  const entries = scans.get(key) ?? (await Array.fromAsync(createScan({ ...options, shownSeq: null }).past()));
  scans.set(key, entries);
  return entries;
};

const bodyOf = (type: string): JournalRecord =>
  reader.page({ types: [type] }, type === 'image.pulled' ? 1 : 1500, 4000).records[0] ?? assert.fail(type);
const objectOf = (type: string): string => bodyOf(type).stream.replace(/^.*\//, '');
const nameOf = (type: string): string =>
  (JSON.parse(bodyOf(type).body) as { config: { metadata: { name: string } } }).config.metadata.name;

const imageName = (): string => {
  const [tag] = (JSON.parse(bodyOf('image.pulled').body) as { image: { repoTags: string[] } }).image.repoTags;
  return tag ?? assert.fail('an image without a tag');
};

const assertSame = async (filter: Filter, words: string): Promise<number> => {
  let found = 0;
  for (const [name, range] of Object.entries(RANGES))
    for (const withEvents of [false, true])
      for (const window of [64, 1000]) {
        const options = { reader, selection: createSelection({}), withEvents, range };
        const given = candidatesOf(options, filter, { windowMin: window });
        if (given === null) continue;
        const narrow = (await Array.fromAsync(given)).filter((entry) => passes(filter, entry)).map(seqsOf);
        const all = await scanOf(name, withEvents);
        assert.deepEqual(
          narrow,
          all.filter((entry) => passes(filter, entry)).map(seqsOf),
          `${words}, ${name}, ${window}`,
        );
        if (window !== 1000) continue;
        const backwards = candidatesOf({ ...options, selection: createSelection({}) }, filter, {
          windowMin: window,
          isReversed: true,
        });
        const reversed = (await Array.fromAsync(backwards ?? [])).filter((entry) => passes(filter, entry)).map(seqsOf);
        assert.deepEqual(reversed, narrow.toReversed(), `${words}, ${name}, ${window}, reversed`);
        found += narrow.length;
      }
  return found;
};

before(async () => {
  path = join(await tempDir(owner), 'journal.db');
  await makeJournal({ path, records: 4000, seed: 5 });
  reader = openReader(path);
  onCleanup(owner, () => reader.close());
});

describe('a scan', () => {
  test('that holds nothing back for calls under way gives what one gives that holds all', async () => {
    for (const [name, range] of Object.entries(RANGES))
      for (const withEvents of [false, true]) {
        const options = { reader, selection: createSelection({}), withEvents, range, withReads: false, live: false };
        const entries = await Array.fromAsync(createScan({ ...options, shownSeq: null, heldMax: 0 }).past());
        assert.deepEqual(entries.map(seqsOf), (await scanOf(name, withEvents)).map(seqsOf), `${name}, ${withEvents}`);
      }
  });

  test('of a journal with a session that goes on gives what came since, before it has read all', async (t) => {
    const file = join(await tempDir(t), 'journal.db');
    const { journal } = openJournal({ path: file });
    const body = JSON.stringify({
      request: { method: 'ExecSession', newId: 'a', containerId: 'b', cmd: [] },
      caller: null,
    });
    await journal.append([recordAt(1, { type: 'call.received', stream: 'call/1', cause: null, call: 1, body })]);
    const stopped = { type: 'daemon.stopped', stream: 'node', cause: null, call: null, body: '{"reason":"test"}' };
    await journal.append(Array.from({ length: 10_000 }, (_, index) => recordAt(index + 2, stopped)));
    await journal.close();
    const long = openReader(file);
    onCleanup(t, () => long.close());
    for (const live of [false, true]) {
      const options = { reader: long, selection: createSelection({}), withEvents: false, range: RANGES.all };
      const scan = createScan({ ...options, withReads: false, live, shownSeq: null });
      const past = scan.past();
      const first = (await past.next()).value as Entry;
      assert.equal(first.kind, live ? 'event' : 'call');
      assert.ok(scan.readSeq() < 5000, String(scan.readSeq()));
      assert.equal((await Array.fromAsync(past)).length, live ? 9999 : 10_000);
    }
  });
});

describe('a history of candidates', () => {
  for (const [words, part] of Object.entries(FILTERS))
    test(`is that of a scan: ${words}`, async () => {
      const found = await assertSame({ ...none, ...part }, words);
      assert.equal(found > 0, !words.includes('nothing'), words);
    });

  const THINGS: Readonly<Record<string, () => Wanted>> = {
    'a pod by its name': () => ({ pod: nameOf('sandbox.requested') }),
    'a pod by its id': () => ({ pod: objectOf('sandbox.requested') }),
    'a container by its id': () => ({ container: objectOf('container.requested') }),
    'containers by their name': () => ({ container: nameOf('container.requested') }),
    'a container of a pod': () => ({
      pod: nameOf('sandbox.requested'),
      container: nameOf('container.requested'),
    }),
    'a namespace': () => ({ namespace: 'kube-system' }),
    'a namespace of much': () => ({ namespace: 'default' }),
    'a label': () => ({ labels: [{ key: 'tier', value: 'back', negated: false }] }),
    'a label, whatever its value': () => ({ labels: [{ key: 'tier', value: null, negated: false }] }),
    'two labels': () => ({
      labels: [
        { key: 'tier', value: 'back', negated: false },
        { key: 'app', value: null, negated: false },
      ],
    }),
    'a label that is not there': () => ({ labels: [{ key: 'tier', value: 'back', negated: true }] }),
    'a label in a namespace': () => ({
      namespace: 'default',
      labels: [{ key: 'tier', value: 'back', negated: false }],
    }),
    'an image': () => ({ image: imageName() }),
    'what nobody is called': () => ({ pod: 'nobody' }),
  };
  for (const [words, wanted] of Object.entries(THINGS))
    for (const [name, range] of Object.entries(RANGES))
      for (const withEvents of [false, true])
        for (const part of [{}, { failedOnly: true }])
          test(`is that of a scan: ${words}, ${name}, ${JSON.stringify({ withEvents, ...part })}`, async () => {
            const filter = { ...none, ...part };
            const chosen = async (past: (selection: Selection) => AsyncGenerator<Entry> | null): Promise<unknown[]> => {
              const selection = createSelection(wanted());
              const entries = past(selection) ?? assert.fail('nothing is chosen');
              const isChosen = (entry: Entry) => selection.has(entry) && passes(filter, entry);
              return (await Array.fromAsync(entries)).filter(isChosen).map(seqsOf);
            };
            const rest = { withReads: false, live: false, shownSeq: null };
            const all = await chosen((selection) =>
              createScan({ reader, selection, withEvents, range, ...rest }).past(),
            );
            const narrow = (isReversed: boolean, windowMin: number) =>
              chosen((selection) =>
                candidatesOf({ reader, selection, withEvents, range }, filter, { isReversed, windowMin }),
              );
            for (const window of [64, 8192]) {
              assert.deepEqual(await narrow(false, window), all);
              assert.deepEqual((await narrow(true, window)).toReversed(), all);
            }
            if (part.failedOnly !== true && name === 'all') assert.equal(all.length > 0, !words.includes('nobody'));
          });

  test('of much, the newest first, is begun with what its end tells of, and is that of a scan', async (t) => {
    const file = join(await tempDir(t), 'journal.db');
    await makeJournal({ path: file, records: 10_000, seed: 6 });
    const long = openReader(file);
    onCleanup(t, () => long.close());
    const wanted: Wanted = { labels: [{ key: 'app', value: null, negated: false }] };
    const options = { reader: long, withEvents: false, range: RANGES.all };
    const makings = (): never => assert.fail('all that was ever made is looked for');
    const selection = createSelection(wanted);
    const probed = { ...options, reader: { ...long, makings }, selection };
    const narrow: unknown[] = [];
    for await (const entry of candidatesOf(probed, none, { isReversed: true }) ?? [])
      if (selection.has(entry)) narrow.push(seqsOf(entry));
    const whole = createSelection(wanted);
    const rest = { withReads: false, live: false, shownSeq: null };
    const all = await Array.fromAsync(createScan({ ...options, ...rest, selection: whole }).past());
    assert.deepEqual(narrow.toReversed(), all.filter(whole.has).map(seqsOf));
  });

  test('of a text shows what it has found while it looks on, with calls that go on', async () => {
    const filter = { ...none, text: 'exitStatus' };
    let looked = 0;
    const markedWindows: OpenedReader['markedWindows'] = (rules, asked) => {
      const search = reader.markedWindows(rules, asked);
      const windows: typeof search.windows = async function* () {
        for await (const window of search.windows()) {
          looked = window.toSeq;
          yield window;
        }
      };
      return { ...search, windows };
    };
    const options = { selection: createSelection({}), withEvents: false, range: RANGES.all };
    const candidates = candidatesOf({ ...options, reader: { ...reader, markedWindows } }, filter, { windowMin: 64 });
    const lookedAtEach: number[] = [];
    for await (const entry of candidates ?? []) if (passes(filter, entry)) lookedAtEach.push(looked);
    assert.ok((lookedAtEach[0] ?? Infinity) < reader.headSeq() / 2, String(lookedAtEach));
    assert.equal(lookedAtEach.length, (await scanOf('all', false)).filter((entry) => passes(filter, entry)).length);
  });

  test('is not made of a filter that lets everything through', () => {
    const options = { reader, selection: createSelection({}), withEvents: false, range: RANGES.all };
    assert.equal(candidatesOf(options, none), null);
  });

  test('tells what is pruned, and of calls of which only the end is left', async () => {
    const { journal } = openJournal({ path });
    const calls = reader.page({ types: ['call.received'] }, 1, 2000).records.map(({ seq }) => seq);
    await pruneSeqs(
      journal,
      [...new Set([...calls.filter((_, index) => index % 3 === 0), ...calls.map((seq) => seq + 1)])].sort(
        (a, b) => a - b,
      ),
    );
    await journal.close();
    const options = { reader, selection: createSelection({}), withEvents: false, range: RANGES.all };
    const countPruned = (entries: readonly Entry[]): number =>
      entries.reduce((sum, entry) => sum + (entry.kind === 'pruned' ? entry.toSeq - entry.fromSeq + 1 : 0), 0);
    const filter = { ...none, methods: ['RunPodSandbox'] };
    const narrow = await Array.fromAsync(candidatesOf(options, filter) ?? []);
    const all = await Array.fromAsync(createScan({ ...options, withReads: false, live: false, shownSeq: null }).past());
    assert.ok(countPruned(all) > 100);
    assert.equal(countPruned(narrow), countPruned(all));
    const shown = (entries: readonly Entry[]) =>
      entries
        .filter((entry) => passes(filter, entry))
        .map((entry) => JSON.stringify(seqsOf(entry)))
        .sort();
    assert.deepEqual(shown(narrow), shown(all));
  });
});
