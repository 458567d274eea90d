/** Retention: what goes when, on a journal of pods, probes and reads, in both journals; and that nothing living goes. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { createMemoryJournal } from '../../src/journal/memory-journal.ts';
import { createRetention, type RetentionPolicy } from '../../src/journal/retention.ts';
import type { JournalRecord, KeptJournal } from '../../src/journal/types.ts';
import { collect, openTemporary, readRowAt, recordAt, recordOwnIn } from './support.ts';

const hourNs = 3_600_000_000_000n;

const daysPolicy: RetentionPolicy = {
  readsNs: 24n * hourNs,
  calls: { probes: { keptNs: 7n * 24n * hourNs } },
  restNs: 90n * 24n * hourNs,
  maxBytes: 4 * 1024 * 1024 * 1024,
};
const beginNs = 1_760_000_000_000_000_000n;

/** A node's life as a journal sees it, an hour per step. */
const createNode = (journal: KeptJournal) => {
  let nowNs = beginNs;
  const open = new Set<string>(['node']);
  /** Who comes and goes on a stream that is never closed, by the record of that. */
  const guests = new Map<string, number>();
  const add = async (part: Partial<JournalRecord>): Promise<number> => {
    const seq = journal.head().seq + 1;
    await journal.append([recordAt(seq, { atNs: nowNs, cause: null, call: null, ...part })]);
    return seq;
  };
  /** A call that records something on a stream on its way. */
  const call = async (id: string, type: string, stream: string | null): Promise<void> => {
    const received = journal.head().seq + 1;
    open.add(`call/${id}`);
    await add({ type: 'call.received', stream: `call/${id}`, call: received, body: JSON.stringify({ method: type }) });
    if (stream !== null) await add({ type, stream, call: received });
    await add({ type: 'call.completed', stream: `call/${id}`, call: received });
    open.delete(`call/${id}`);
  };
  return {
    passHours: (hours: number) => {
      nowNs += BigInt(hours) * hourNs;
    },
    now: () => nowNs,
    call,
    begin: async (pod: string) => {
      open.add(`sandbox/${pod}`);
      await call(`run-${pod}`, 'sandbox.requested', `sandbox/${pod}`);
    },
    end: async (pod: string) => {
      await call(`remove-${pod}`, 'sandbox.removed', `sandbox/${pod}`);
      open.delete(`sandbox/${pod}`);
    },
    guestComes: async (guest: string) =>
      void guests.set(guest, await add({ type: 'guest.came', stream: 'node', body: guest })),
    guestGoes: async (guest: string) => void (await add({ type: 'guest.went', stream: 'node', body: guest })),
    overWith: ({ seq, type, body }: JournalRecord) => (type === 'guest.went' ? [guests.get(body) ?? 0, seq] : []),
    probe: async (id: string, pod: string) => call(`probe-${id}`, 'ExecSync', `sandbox/${pod}`),
    isClosed: (stream: string) => !open.has(stream),
  };
};

const classOf = ({ type, body }: JournalRecord): string | null => {
  if (type === 'call.completed') return 'over';
  return body.includes('"ExecSync"') ? 'probes' : null;
};

const streamsLeft = async (journal: KeptJournal): Promise<Set<string>> =>
  new Set((await collect(journal.read())).map(({ stream }) => stream));

const setUp = (journal: KeptJournal, policy: RetentionPolicy = daysPolicy) => {
  const node = createNode(journal);
  const record = async (own: Parameters<ReturnType<typeof recordOwnIn>>[0]): Promise<void> =>
    recordOwnIn(journal, node.now())(own);
  const { isClosed, overWith } = node;
  const retention = createRetention({ journal, record, policy, isClosed, overWith, classOf });
  return { node, run: async () => retention.run(node.now()) };
};

const journals: readonly (readonly [string, (t: Parameters<typeof openTemporary>[0]) => Promise<KeptJournal>])[] = [
  ['memory', async () => createMemoryJournal()],
  ['sqlite', async (t) => (await openTemporary(t)).journal],
];

for (const [name, open] of journals) {
  test(`C11: ${name}: probes go after 7 days, removed pods after 90, the living never`, async (t) => {
    const journal = await open(t);
    const { node, run } = setUp(journal);
    await node.begin('old');
    await node.begin('living');
    await node.call('failed', 'Nothing', null);
    await node.probe('1', 'living');
    node.passHours(6 * 24);
    await node.end('old');
    await node.probe('2', 'living');
    assert.equal((await run()).prunedRecords, 0);
    node.passHours(25);
    // Seven days and an hour after the first probe: its three records go, and nothing else.
    assert.equal((await run()).prunedRecords, 3);
    assert.ok(!(await streamsLeft(journal)).has('call/probe-1'));
    assert.ok((await streamsLeft(journal)).has('call/probe-2'));
    node.passHours(7 * 24);
    assert.equal((await run()).prunedRecords, 3);
    node.passHours(76 * 24);
    // 90 days after its first record the old pod is still within 90 days of its last one.
    assert.equal((await run()).prunedRecords, 2, 'only the call that failed');
    node.passHours(8 * 24);
    assert.equal((await run()).prunedRecords, 6);
    assert.deepEqual([...(await streamsLeft(journal))].sort(), ['call/run-living', 'node', 'sandbox/living']);
    assert.equal((await run()).prunedRecords, 0);
    // 200 days later the living pod ends; 90 days after that all of it goes, its first call included.
    node.passHours(200 * 24);
    await run();
    await node.end('living');
    node.passHours(91 * 24);
    assert.equal((await run()).prunedRecords, 6);
    assert.deepEqual([...(await streamsLeft(journal))], ['node']);
  });

  test(`C11: ${name}: what is over on a stream that is never closed goes, all of it at once`, async (t) => {
    const journal = await open(t);
    const { node, run } = setUp(journal);
    await node.guestComes('first');
    await node.guestComes('second');
    node.passHours(100 * 24);
    await node.guestGoes('first');
    assert.equal((await run()).prunedRecords, 0);
    node.passHours(91 * 24);
    assert.equal((await run()).prunedRecords, 2);
    const left = (await collect(journal.read())).flatMap(({ type, body }) => (type.startsWith('guest') ? body : []));
    assert.deepEqual(left, ['second']);
  });

  test(`C11: ${name}: a class of calls that did nothing to an object has a time of its own`, async (t) => {
    const journal = await open(t);
    const calls = { ...daysPolicy.calls, over: { keptNs: 24n * hourNs, isAlone: true } } as const;
    const { node, run } = setUp(journal, { ...daysPolicy, calls });
    await node.begin('living');
    await node.call('failed', 'Nothing', null);
    await node.probe('1', 'living');
    node.passHours(25);
    assert.equal((await run()).prunedRecords, 2);
    const left = await streamsLeft(journal);
    assert.ok(!left.has('call/failed') && left.has('call/run-living') && left.has('call/probe-1'));
  });

  test(`C11: ${name}: a probe that has led to something on another object stays`, async (t) => {
    const journal = await open(t);
    const { node, run } = setUp(journal);
    await node.begin('living');
    await node.probe('1', 'living');
    await node.probe('2', 'living');
    const [received] = (await collect(journal.read())).filter(({ stream }) => stream === 'call/probe-1');
    const follows = { stream: 'container/other', body: '{}', atNs: node.now(), call: received?.seq ?? 0, cause: null };
    await journal.append([recordAt(journal.head().seq + 1, follows)]);
    node.passHours(8 * 24);
    assert.equal((await run()).prunedRecords, 3);
    assert.ok((await streamsLeft(journal)).has('call/probe-1'));
    assert.ok(!(await streamsLeft(journal)).has('call/probe-2'));
  });

  test(`C10: ${name}: rows of read calls go after 24 hours, whole segments at a time`, async (t) => {
    const journal = await open(t);
    const { node, run } = setUp(journal);
    for (let hour = 0; hour < 30; hour++) {
      journal.appendRead(readRowAt(hour, { atNs: node.now() }));
      assert.equal((await run()).closedSegments, 1);
      node.passHours(1);
    }
    const rows = await collect(journal.readReads());
    assert.ok(rows.every(({ atNs }) => atNs >= node.now() - 25n * hourNs));
    assert.ok(rows.length >= 24 && rows.length <= 25, `${rows.length}`);
    node.passHours(26);
    assert.equal((await run()).droppedSegments, rows.length);
    assert.deepEqual(await collect(journal.readReads()), []);
  });

  test(`C11: ${name}: a journal that is too large keeps less, oldest first, and says so`, async (t) => {
    const journal = await open(t);
    const policy = { ...daysPolicy, maxBytes: 400_000 };
    const { node, run } = setUp(journal, policy);
    await node.begin('living');
    for (let day = 0; day < 60; day++) {
      await node.begin(`pod-${day}`);
      const stream = `sandbox/pod-${day}`;
      const body = JSON.stringify({ text: 'x'.repeat(20_000) });
      await journal.append([
        recordAt(journal.head().seq + 1, { stream, body, atNs: node.now(), call: null, cause: null }),
      ]);
      await node.end(`pod-${day}`);
      node.passHours(24);
    }
    const before = await journal.usedBytes();
    assert.ok(before > policy.maxBytes, `${before}`);
    const report = await run();
    assert.ok(report.share < 1 && report.share > 0, `${report.share}`);
    assert.ok((await journal.usedBytes()) <= policy.maxBytes);
    const left = await streamsLeft(journal);
    assert.ok(left.has('sandbox/living') && left.has('sandbox/pod-59') && !left.has('sandbox/pod-0'));
    const reasons = (await collect(journal.read({ types: ['journal.pruned'] }))).map(({ body }) => body);
    assert.match(reasons.join(), /rest, journal too large/);
  });
}

test('C11: what ended too late to go is not looked through for each of its old records', async (t) => {
  const { journal } = await openTemporary(t);
  let looks = 0;
  const watched: KeptJournal = {
    ...journal,
    placesOfStream: (stream) => {
      looks += 1;
      return journal.placesOfStream(stream);
    },
  };
  const { node, run } = setUp(watched);
  await node.begin('probed');
  const add = async (count: number): Promise<void> => {
    const seq = journal.head().seq + 1;
    const part = { stream: 'sandbox/probed', atNs: node.now(), call: null, cause: null };
    await journal.append(Array.from({ length: count }, (_, index) => recordAt(seq + index, part)));
  };
  await add(100);
  node.passHours(91 * 24);
  await add(1000);
  await node.end('probed');
  assert.equal((await run()).prunedRecords, 0);
  assert.equal(looks, 0);
  node.passHours(91 * 24);
  assert.equal((await run()).prunedRecords, 1106);
});

test('C11: a large pod is pruned in batches, oldest first', async (t) => {
  const { journal } = await openTemporary(t);
  const { node, run } = setUp(journal);
  await node.begin('large');
  const changes = Array.from({ length: 9000 }, (_, index) =>
    recordAt(journal.head().seq + 1 + index, { stream: 'sandbox/large', atNs: beginNs, cause: null, call: null }),
  );
  await journal.append(changes);
  await node.end('large');
  node.passHours(91 * 24);
  const head = journal.head().seq;
  assert.equal((await run()).prunedRecords, head, 'all of it, each record once');
  const batches = await collect(journal.read({ types: ['journal.pruned'] }));
  assert.ok(batches.length >= 3, `${batches.length}`);
  const firsts = batches.map(({ body }) => (JSON.parse(body) as { seqs: number[] }).seqs[0] ?? 0);
  assert.deepEqual(
    firsts,
    firsts.toSorted((a, b) => a - b),
  );
});
