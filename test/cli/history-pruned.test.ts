/** `scribe history` where records are pruned: that there was something, and what is left of it. */
import assert from 'node:assert/strict';
import { PassThrough } from 'node:stream';
import { text } from 'node:stream/consumers';
import { describe, test } from 'node:test';
import { showJson } from '../../src/cli/history/json.ts';
import { createNames } from '../../src/cli/history/names.ts';
import { openReader } from '../../src/journal/open.ts';
import { prunedRecord } from '../../src/journal/own-records.ts';
import { rangesOfSeqs } from '../../src/journal/ranges.ts';
import { onCleanup, type Owner } from '../support/cleanup.ts';
import { rowsOf, startNs, type Story, tell } from './story.ts';
import { fails, jsonLines, type Root, rootWith, scribe } from './support.ts';

describe('pruned', () => {
  /** The story with everything about its first pod pruned. */
  const pruned = async (owner: Owner): Promise<{ story: Story; root: Root; seqs: number[] }> => {
    const story = await tell();
    const gone = new Set([`sandbox/${story.web}`, `container/${story.nginx}`]);
    const calls = new Set(story.records.filter(({ stream }) => gone.has(stream)).map(({ call }) => call));
    const seqs = story.records
      .filter(({ stream, call }) => gone.has(stream) || (call !== null && calls.has(call)))
      .map(({ seq }) => seq);
    const root = await rootWith(owner, story.records, async (journal) => {
      const own = prunedRecord({ reason: 'old enough', seqs: rangesOfSeqs(seqs), segments: [] });
      const seq = journal.head().seq + 1;
      const where = { seq, atNs: startNs + 60_000_000_000n, monoNs: 1n, boot: 'boot', cause: null, call: null };
      await journal.append([{ ...own, ...where }]);
    });
    return { story, root, seqs };
  };

  test('records are shown as that, with how many there were', async (t) => {
    const { root, seqs } = await pruned(t);
    const { stdout, stderr } = await scribe(['history', '--root', root.dir]);
    const rows = rowsOf(stdout).filter(({ WHAT }) => WHAT === '(pruned)');
    const counts = rows.map(({ OUTCOME = '' }) => Number(/^(\d+) record/.exec(OUTCOME)?.[1]));
    assert.equal(
      counts.reduce((sum, count) => sum + count, 0),
      seqs.length,
    );
    assert.equal(stderr, '');
    const stretches = jsonLines<{ pruned?: { fromSeq: number; toSeq: number } }>(
      (await scribe(['history', '--root', root.dir, '--json'])).stdout,
    ).flatMap(({ pruned: stretch }) => (stretch === undefined ? [] : [stretch]));
    const listed = stretches.flatMap(({ fromSeq, toSeq }) =>
      Array.from({ length: toSeq - fromSeq + 1 }, (_, index) => fromSeq + index),
    );
    assert.deepEqual(listed, seqs);
  });

  test('records are none of the newest so many, whichever way these are found', async (t) => {
    const { root } = await pruned(t);
    const counted = async (...words: readonly string[]): Promise<number> => {
      const { stdout } = await scribe(['history', '--root', root.dir, ...words]);
      return rowsOf(stdout).filter(({ WHAT }) => WHAT !== '(pruned)').length;
    };
    const all = await counted();
    assert.ok(all > 8);
    for (let limit = 1; limit <= all; limit += 1)
      for (const words of [[], ['--reverse'], ['--reads']])
        assert.equal(await counted('--limit', String(limit), ...words), limit, words.join(' '));
  });

  test('an export says how many records its target does not get, and how many were perhaps meant', async (t) => {
    const { root, seqs } = await pruned(t);
    const [first = 0] = seqs;
    const said = (...words: readonly string[]): ReturnType<typeof scribe> =>
      scribe(['export', '--root', root.dir, ...words]);
    const all = await said();
    assert.equal(all.stderr, `scribe: ${seqs.length} records of this time are pruned: nothing of that is exported.\n`);
    const one = await said('--since', String(first), '--until', String(first));
    assert.deepEqual([one.exitStatus, one.stdout], [0, '']);
    assert.equal(one.stderr, 'scribe: 1 record of this time is pruned: nothing of that is exported.\n');
    const chosen = await said('--pod', 'web', '--until', String(seqs.at(-1)));
    assert.match(
      chosen.stderr,
      /^scribe: \d+ records of this time are pruned: what is asked for may have been among them\.\n$/,
    );
    const whole = await said('--since', String((seqs.at(-1) ?? 0) + 1));
    assert.equal(whole.stderr, '');
  });

  test('a record that is pruned after it was read is shown as it was read, without its hash', async (t) => {
    const { root, story, seqs } = await pruned(t);
    const reader = openReader(root.journalPath);
    onCleanup(t, reader.close);
    const read = story.records.find(({ seq }) => seq === seqs[0]) ?? assert.fail();
    const output = new PassThrough();
    const shown = showJson(output, createNames(reader), reader.hashesOf);
    await shown.show({ kind: 'event', record: read });
    await shown.flush();
    output.end();
    const [line] = jsonLines<Readonly<Record<string, unknown>>>(await text(output));
    assert.deepEqual([line?.['seq'], line?.['hash']], [read.seq, null]);
    assert.match(String(line?.['bodyHash']), /^[0-9a-f]{64}$/);
  });

  test('and why says what became of a record, and of a thing that it does not know', async (t) => {
    const { root, seqs, story } = await pruned(t);
    const [gone = 0] = seqs;
    const head = story.records.length + 1;
    const why = (...words: readonly string[]): readonly string[] => ['why', '--root', root.dir, ...words];
    await fails(why(String(gone)), 1, new RegExp(`^scribe: Record ${gone} is pruned: what it told is gone\\.\n$`));
    await fails(
      why(String(head + 1)),
      1,
      new RegExp(`^scribe: There is no record ${head + 1}: the journal ends with record ${head}\\.\n$`),
    );
    await fails(why('--at', '1', '2'), 1, /^scribe: Record 2 is later than record 1: --at 2 or later has it\.\n$/);
    const among = `up to record ${head}, of which ${seqs.length} records are pruned: it may have been among them\\.`;
    await fails(why('shop/nobody'), 1, new RegExp(among));
  });

  test('and a filter says that what is asked for may have been among them', async (t) => {
    const { root, story, seqs } = await pruned(t);
    const gone = await scribe(['history', '--root', root.dir, '--pod', story.web]);
    assert.equal(gone.exitStatus, 0);
    assert.match(gone.stderr, new RegExp(`${seqs.length} records of this time are pruned`));
    const { stdout } = await scribe(['history', '--root', root.dir, '--events']);
    const row = rowsOf(stdout).find(({ WHAT }) => WHAT === 'pruned');
    assert.equal(row?.['OUTCOME'], `${seqs.length} records: old enough`);
  });

  test('a moment that is a pruned record is that of the next one that is left', async (t) => {
    const { root, story, seqs } = await pruned(t);
    const seq = seqs[0] ?? assert.fail();
    const left = story.records.find((record) => record.seq > seq && !seqs.includes(record.seq)) ?? assert.fail();
    const [at, next] = [String(seq), String(left.seq)];
    const { stderr } = await scribe(['diff', '1', at, '--utc', '--root', root.dir]);
    const time = new Date(Number(left.atNs / 1_000_000n)).toISOString().replace('T', ' ');
    assert.ok(stderr.includes(` to ${time} (record ${at}).`), stderr);
    const ages = async (moment: string): Promise<string[]> => {
      const { stdout } = await scribe(['at', moment, 'get', 'images', '--root', root.dir]);
      return rowsOf(stdout).map(({ AGE = '' }) => AGE);
    };
    assert.deepEqual(await ages(at), await ages(next));
    assert.equal((await ages(at)).length, 1);
  });

  test('a call of which only the end is left is shown as far as it is known', async (t) => {
    const story = await tell();
    const [received] = story.records.filter(({ type, body }) => type === 'call.received' && body.includes('ExecSync'));
    assert.ok(received);
    const root = await rootWith(t, story.records, async (journal) => {
      const own = prunedRecord({ reason: 'test', seqs: [[received.seq, received.seq]], segments: [] });
      const seq = journal.head().seq + 1;
      await journal.append([{ ...own, seq, atNs: startNs, monoNs: 1n, boot: 'boot', cause: null, call: null }]);
    });
    const { stdout } = await scribe(['history', '--root', root.dir, '--method', 'ExecSync']);
    const [row] = rowsOf(stdout);
    assert.equal(row?.['CALLER'], '(pruned)');
    assert.equal(row['OUTCOME'], 'exit 3');
  });
});
