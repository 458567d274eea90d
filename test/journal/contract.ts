/**
 * What any journal must do, whatever it is made of: run against the SQLite journal and its in-memory twin. A restart
 * is whatever keeps only what is durable: closing and opening again here, crashes have tests of their own.
 */
import assert from 'node:assert/strict';
import { test, type TestContext } from 'node:test';
import fc from 'fast-check';
import { bodyHash, chainHash, GENESIS } from '../../src/journal/encoding.ts';
import { prunedRecord, readsClosedRecord } from '../../src/journal/own-records.ts';
import type { JournalRecord, KeptJournal, ReadQuery, ReadRow, SealedSegment } from '../../src/journal/types.ts';
import {
  anyColumns,
  anyReadRow,
  bootId,
  closeReads,
  collect,
  pruneSeqs,
  readRowAt,
  recordAt,
  recordOwnIn,
  recordsFrom,
  startNs,
} from './support.ts';

/** A journal, and how to have it closed and opened again with what it holds. */
export interface Subject {
  readonly journal: KeptJournal;
  readonly reopen: () => Promise<KeptJournal>;
}

const chainOf = (records: readonly JournalRecord[]): Uint8Array =>
  records.reduce<Uint8Array>((hash, record) => chainHash(hash, record.seq, bodyHash(record)), GENESIS);

/** Roots as hex: a Buffer and the Uint8Array it stands for are not deepEqual. */
const plain = (segments: readonly SealedSegment[]): unknown[] =>
  segments.map(({ root, ...rest }) => ({ ...rest, root: Buffer.from(root).toString('hex') }));

const seqsOf = (records: readonly JournalRecord[]): number[] => records.map(({ seq }) => seq);

const queryProperties = (records: readonly JournalRecord[]): fc.Arbitrary<ReadQuery> => {
  const seq = fc.integer({ min: 0, max: records.length + 2 });
  const time = seq.map((n) => startNs + BigInt(n) * 1_000_000n);
  return fc.record(
    {
      fromSeq: seq,
      toSeq: seq,
      limit: fc.nat({ max: 30 }),
      call: seq,
      fromNs: time,
      toNs: time,
      types: fc.uniqueArray(fc.constantFrom('type.0', 'type.1', 'type.4', 'none'), { minLength: 1 }),
      streams: fc.uniqueArray(fc.constantFrom('container/1', 'container/5', 'call/9', 'call/12', 'none'), {
        minLength: 1,
      }),
    },
    { requiredKeys: [], noNullPrototype: true },
  );
};

const expected = (records: readonly JournalRecord[], query: ReadQuery): number[] =>
  seqsOf(
    records
      .filter(({ seq }) => seq >= (query.fromSeq ?? 0) && seq <= (query.toSeq ?? Infinity))
      .filter(({ type }) => query.types?.includes(type) ?? true)
      .filter(({ stream }) => query.streams?.includes(stream) ?? true)
      .filter(({ call }) => query.call === undefined || call === query.call)
      .filter(({ atNs }) => atNs >= (query.fromNs ?? 0n) && (query.toNs === undefined || atNs <= query.toNs))
      .slice(0, query.limit ?? Infinity),
  );

export const contractSuite = (name: string, open: (t: TestContext) => Promise<Subject>): void => {
  const check = (what: string, body: (subject: Subject) => Promise<void>): void => {
    test(`${name}: ${what}`, { timeout: 60_000 }, async (t) => body(await open(t)));
  };

  check('C9: appends give the documented chain, and a restart keeps it', async ({ journal, reopen }) => {
    assert.deepEqual([journal.head().seq, Buffer.from(journal.head().hash)], [0, Buffer.from(GENESIS)]);
    const records = recordsFrom(1, 300);
    await journal.append(records.slice(0, 1));
    await journal.append(records.slice(1, 100));
    await Promise.all(records.slice(100).map(async (record) => journal.append([record])));
    assert.equal(journal.head().seq, 300);
    assert.deepEqual(Buffer.from(journal.head().hash), Buffer.from(chainOf(records)));
    assert.deepEqual(await collect(journal.read()), records);
    const again = await reopen();
    assert.deepEqual(Buffer.from(again.head().hash), Buffer.from(chainOf(records)));
    assert.deepEqual(await collect(again.read()), records);
    await again.append([recordAt(301)]);
    assert.deepEqual(Buffer.from(again.head().hash), Buffer.from(chainOf([...records, recordAt(301)])));
  });

  check('C9: columns of any content come back as they were', async ({ journal }) => {
    await fc.assert(
      fc.asyncProperty(fc.array(anyColumns, { minLength: 1, maxLength: 20 }), async (columns) => {
        const first = journal.head().seq + 1;
        const records = columns.map((part, index) => recordAt(first + index, part));
        await journal.append(records);
        assert.deepEqual(await collect(journal.read({ fromSeq: first })), records);
      }),
      { numRuns: 50 },
    );
  });

  check('C9: any other sequence number is refused, and nothing of that append is taken', async ({ journal }) => {
    await journal.append(recordsFrom(1, 3));
    for (const bad of [
      [recordAt(3)],
      [recordAt(5)],
      [recordAt(4), recordAt(6)],
      [recordAt(4), recordAt(5, { body: '' })],
    ]) {
      await assert.rejects(journal.append(bad), { code: 'BadRecord' });
    }
    const overtaking = Promise.allSettled([journal.append([recordAt(4)]), journal.append([recordAt(4)])]);
    assert.deepEqual(
      (await overtaking).map(({ status }) => status),
      ['fulfilled', 'rejected'],
    );
    await journal.append([]);
    assert.equal(journal.head().seq, 4);
    await journal.append([recordAt(5)]);
    assert.deepEqual(seqsOf(await collect(journal.read())), [1, 2, 3, 4, 5]);
  });

  check('C1: append resolves in order, and only once the record is durable', async ({ journal }) => {
    const resolved: number[] = [];
    await Promise.all(
      recordsFrom(1, 200).map(async (record) => {
        await journal.append([record]);
        assert.ok(journal.head().seq >= record.seq, 'durable before it resolves');
        resolved.push(record.seq);
      }),
    );
    assert.deepEqual(resolved, seqsOf(recordsFrom(1, 200)));
  });

  check('read answers any query as filtering all records would', async ({ journal }) => {
    // A clock that steps back now and then.
    const records = recordsFrom(1, 400).map((record) =>
      record.seq % 50 < 5 ? { ...record, atNs: record.atNs - 30_000_000n } : record,
    );
    await journal.append(records);
    await fc.assert(
      fc.asyncProperty(queryProperties(records), async (query) => {
        assert.deepEqual(seqsOf(await collect(journal.read(query))), expected(records, query));
      }),
      { numRuns: 200 },
    );
  });

  check('takes nothing more once it is closed', async ({ journal }) => {
    await journal.append([recordAt(1)]);
    await journal.close();
    await assert.rejects(journal.append([recordAt(2)]), { code: 'Closed' });
  });

  check('C10: read calls come back as they were, and survive closing', async ({ journal, reopen }) => {
    const rows: ReadRow[] = [];
    await fc.assert(
      fc.asyncProperty(fc.array(anyReadRow, { maxLength: 30 }), async (more) => {
        rows.push(...more);
        more.forEach(journal.appendRead);
        await journal.append([recordAt(journal.head().seq + 1)]);
      }),
      { numRuns: 20 },
    );
    assert.deepEqual(await collect(journal.readReads()), rows);
    journal.appendRead(readRowAt(1));
    const again = await reopen();
    const all = [...rows, readRowAt(1)];
    assert.deepEqual(await collect(again.readReads()), all);
    assert.deepEqual(await collect(again.readReads({ limit: 7 })), all.slice(0, 7));
    const window = { fromNs: startNs, toNs: startNs + 2_000_000n };
    const within = all.filter(({ atNs }) => atNs >= window.fromNs && atNs <= window.toNs);
    assert.deepEqual(await collect(again.readReads(window)), within);
  });

  check('C10: a segment is sealed, closed by a record, and dropped whole', async ({ journal, reopen }) => {
    assert.deepEqual(await journal.sealReads(), []);
    for (let n = 1; n <= 10; n++) {
      journal.appendRead(readRowAt(n));
      await journal.append([recordAt(n)]);
    }
    const [first, ...none] = await journal.sealReads();
    assert.ok(first);
    assert.deepEqual([none, first.count, first.fromNs, first.toNs], [[], 10, readRowAt(1).atNs, readRowAt(10).atNs]);
    assert.deepEqual(plain(await journal.sealReads()), plain([first]), 'named again until its record is there');
    assert.deepEqual(await journal.closedSegments(), []);
    journal.appendRead(readRowAt(11));
    await recordOwnIn(journal)(readsClosedRecord(first));
    assert.deepEqual(plain(await journal.closedSegments()), plain([first]));
    const again = await reopen();
    assert.deepEqual(plain(await again.closedSegments()), plain([first]));
    const [second] = await again.sealReads();
    assert.ok(second && second.segment > first.segment);
    assert.equal(second.count, 1);
    await recordOwnIn(again)(prunedRecord({ reason: 'test', seqs: [], segments: [first.segment] }));
    assert.deepEqual(await again.closedSegments(), []);
    assert.deepEqual(await collect(again.readReads()), [readRowAt(11)]);
    await closeReads(again);
    assert.deepEqual(plain(await again.closedSegments()), plain([second]));
  });

  check('C11: pruned records are gone, all others and the chain stay', async ({ journal, reopen }) => {
    await journal.append(recordsFrom(1, 50));
    const gone = [2, 3, 4, 17, 30, 31];
    const hashBefore = journal.head().hash;
    await pruneSeqs(journal, gone);
    const left = recordsFrom(1, 50).filter(({ seq }) => !gone.includes(seq));
    const own = recordAt(51, {
      ...prunedRecord({
        reason: 'test',
        seqs: [
          [2, 4],
          [17, 17],
          [30, 31],
        ],
        segments: [],
      }),
      atNs: startNs,
      cause: null,
      call: null,
    });
    assert.deepEqual(await collect(journal.read()), [...left, own]);
    assert.deepEqual(Buffer.from(journal.head().hash), chainHash(hashBefore, 51, bodyHash(own)));
    assert.deepEqual(seqsOf(await collect(journal.read({ fromSeq: 2, limit: 2 }))), [5, 6]);
    const again = await reopen();
    assert.deepEqual(await collect(again.read()), [...left, own]);
    const places = await again.placesOfStream('container/4');
    assert.equal(await again.lastSeqOfStream('container/4'), places.at(-1)?.seq);
    assert.equal(await again.lastSeqOfStream('container/none'), 0);
    assert.deepEqual(
      places.map(({ seq }) => seq),
      seqsOf(left.filter(({ stream }) => stream === 'container/4')),
    );
    const ofCall = await again.placesOfCall(9);
    assert.deepEqual(
      ofCall.map(({ seq, stream }) => [seq, stream]),
      [
        [9, 'call/9'],
        [10, 'container/3'],
      ],
    );
  });

  check('C11: the records that tell of pruning and of reads are never pruned', async ({ journal }) => {
    await journal.append(recordsFrom(1, 5));
    await pruneSeqs(journal, [1]);
    await pruneSeqs(journal, [1, 2, 3, 4, 5, 6]);
    assert.deepEqual(seqsOf(await collect(journal.read())), [6, 7]);
  });

  check("C11: a malformed record of the journal's own is refused before anything happens", async ({ journal }) => {
    await journal.append(recordsFrom(1, 3));
    const bodies = [
      '{}',
      'no',
      '{"reason":"x","seqs":[0,9],"segments":[]}',
      '{"reason":"x","seqs":[1],"segments":[]}',
      '{"reason":"x","seqs":[1,-1],"segments":[]}',
    ];
    for (const body of bodies) {
      await assert.rejects(recordOwnIn(journal)({ type: 'journal.pruned', v: 1, stream: 'node', body }), {
        code: 'BadRecord',
      });
      await assert.rejects(recordOwnIn(journal)({ type: 'reads.closed', v: 1, stream: 'node', body }), {
        code: 'BadRecord',
      });
    }
    assert.equal(journal.head().seq, 3);
  });

  check(
    'C14: the newest snapshot of the asked evolvers is found, also after a restart',
    async ({ journal, reopen }) => {
      await journal.append(recordsFrom(1, 10));
      assert.equal(await journal.newestSnapshot(1), null);
      for (const [seq, evolverVersion] of [
        [3, 1],
        [5, 1],
        [7, 2],
        [9, 1],
        [8, 1],
      ] as const) {
        await journal.writeSnapshot({ seq, evolverVersion, state: `{"seq":${seq},"ż":"\u{1F6E0}"}` });
      }
      await journal.writeSnapshot({ seq: 9, evolverVersion: 1, state: '{"seq":9,"ż":"\u{1F6E0}"}' });
      const again = await reopen();
      assert.deepEqual(await again.newestSnapshot(1), {
        seq: 9,
        evolverVersion: 1,
        state: '{"seq":9,"ż":"\u{1F6E0}"}',
      });
      assert.equal((await again.newestSnapshot(2))?.seq, 7);
      assert.equal(await again.newestSnapshot(3), null);
    },
  );

  check('C11: a snapshot from before what is pruned is not used any more', async ({ journal }) => {
    await journal.append(recordsFrom(1, 10));
    await journal.writeSnapshot({ seq: 5, evolverVersion: 1, state: 'early' });
    await journal.writeSnapshot({ seq: 8, evolverVersion: 1, state: 'late' });
    await pruneSeqs(journal, [2, 8]);
    assert.equal((await journal.newestSnapshot(1))?.state, 'late');
    await pruneSeqs(journal, [9]);
    assert.equal(await journal.newestSnapshot(1), null);
  });

  check('C14: a moment is the greatest seq under the running maximum of at', async ({ journal }) => {
    const atNs = [10n, 20n, 15n, 5n, 30n, 30n, 25n, 40n];
    await journal.append(atNs.map((at, index) => recordAt(index + 1, { atNs: at })));
    const running = atNs.map((_, index) => atNs.slice(0, index + 1).reduce((a, b) => (a > b ? a : b)));
    for (let t = 0n; t <= 45n; t++) {
      assert.equal(await journal.seqAtTime(t), running.filter((max) => max <= t).length, `at ${t}`);
    }
  });

  check('C9: bytes in use grow with the records and shrink with pruning', async ({ journal }) => {
    const body = JSON.stringify({ text: 'x'.repeat(2000) });
    await journal.append(Array.from({ length: 500 }, (_, index) => recordAt(index + 1, { body, boot: bootId })));
    const full = await journal.usedBytes();
    assert.ok(full > 1_000_000, `${full}`);
    await pruneSeqs(
      journal,
      Array.from({ length: 500 }, (_, index) => index + 1),
    );
    const left = await journal.usedBytes();
    assert.ok(left < full / 5, `${left} of ${full}`);
  });
};
