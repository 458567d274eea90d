/**
 * The writer thread: few commits for many appends, lazy rows in time, a log that stays small or raises an alarm,
 * bounded memory when it can't keep up, and what calls cost on disk.
 */
import assert from 'node:assert/strict';
import { readFileSync, statSync } from 'node:fs';
import { watch } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { connectReader } from '../../src/journal/connect.ts';
import { openReader } from '../../src/journal/open.ts';
import type { JournalRecord } from '../../src/journal/types.ts';
import { onCleanup } from '../support/cleanup.ts';
import { tempDir } from '../support/temp-dir.ts';
import { bootId, collect, openTemporary, readRowAt, recordAt, recordsFrom, startNs } from './support.ts';

test('C8: appends that wait for a commit share the next one', async (t) => {
  const { journal } = await openTemporary(t);
  await journal.append([recordAt(1)]);
  /** What the journal ends with when an append is told to be durable: the same for all that one commit wrote. */
  const heads = await Promise.all(
    recordsFrom(2, 1000).map(async (record) => {
      await journal.append([record]);
      return journal.head().seq;
    }),
  );
  const commits = new Set(heads).size;
  assert.ok(commits <= 5, `${commits} commits for 1,000 appends`);
});

test('what may wait goes to the disk with what comes next, and by itself when nothing comes', {
  timeout: 20_000,
}, async (t) => {
  const { journal } = await openTemporary(t);
  const waiting = journal.append([recordAt(1)], true).then(() => journal.head().seq);
  await journal.append([recordAt(2)]);
  assert.equal(await waiting, 2, 'both by one commit');
  await journal.append([recordAt(3)], true);
  assert.equal(journal.head().seq, 3);
});

test('C10: read calls are on disk within a second, though nothing else is appended', { timeout: 20_000 }, async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append([recordAt(1)]);
  const reader = openReader(path);
  onCleanup(t, reader.close);
  const startedMs = performance.now();
  journal.appendRead(readRowAt(1));
  // The test's own timer keeps the process alive; the journal's must not.
  while ((await collect(reader.readReads())).length === 0) {
    await new Promise((resolve) => {
      setTimeout(resolve, 20);
    });
    assert.ok(performance.now() - startedMs < 5000, 'still not on disk after 5 s');
  }
  t.diagnostic(`on disk after ${Math.round(performance.now() - startedMs)} ms`);
});

test('C8: the log starts over between batches, also while others read', { timeout: 60_000 }, async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  const body = JSON.stringify({ text: 'x'.repeat(3000) });
  await journal.append([recordAt(1)]);
  const ended = { writing: false };
  const reading = (async () => {
    while (!ended.writing) await collect(journal.read({ limit: 500 }));
  })();
  let largest = 0;
  for (let seq = 2; seq <= 12_000; seq += 100) {
    await journal.append(Array.from({ length: 100 }, (_, index) => recordAt(seq + index, { body })));
    largest = Math.max(largest, statSync(`${path}-wal`).size);
  }
  ended.writing = true;
  await reading;
  assert.ok(statSync(path).size > 30_000_000);
  assert.ok(largest < 24_000_000, `the log grew to ${largest} bytes`);
});

test('C8: a reader that never ends raises the alarm, and its end takes it back', { timeout: 60_000 }, async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const alarms: (number | null)[] = [];
  const onWalAlarm = (bytes: number | null): number => alarms.push(bytes);
  const { journal } = await openTemporary(t, { path, walAlarmBytes: 2_000_000, onWalAlarm });
  await journal.append(recordsFrom(1, 10));
  const endless = connectReader(path);
  endless.exec('BEGIN');
  assert.equal(endless.prepare('SELECT count(*) FROM records').pluck().get(), 10);
  const body = JSON.stringify({ text: 'x'.repeat(3000) });
  const appendUntil = async (done: () => boolean): Promise<void> => {
    for (let n = 0; n < 20_000 && !done(); n++) await journal.append([recordAt(journal.head().seq + 1, { body })]);
    assert.ok(done(), JSON.stringify(alarms));
  };
  await appendUntil(() => alarms.length === 1);
  assert.ok((alarms[0] ?? 0) > 2_000_000);
  endless.exec('COMMIT');
  endless.close();
  await appendUntil(() => alarms.length === 2);
  assert.equal(alarms[1], null);
});

test('C8: a log that grew while somebody read for long gives that room back', { timeout: 60_000 }, async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append([recordAt(1)]);
  const walBytes = (): number => statSync(`${path}-wal`).size;
  const long = connectReader(path);
  long.exec('BEGIN');
  assert.equal(long.prepare('SELECT count(*) FROM records').pluck().get(), 1);
  const body = JSON.stringify({ text: 'x'.repeat(30_000) });
  const appendUntil = async (done: () => boolean): Promise<void> => {
    for (let n = 0; n < 200 && !done(); n++) {
      const first = journal.head().seq + 1;
      await journal.append(Array.from({ length: 20 }, (_, index) => recordAt(first + index, { body })));
    }
    assert.ok(done(), `the log has ${walBytes()} bytes`);
  };
  await appendUntil(() => walBytes() > 32_000_000);
  long.exec('COMMIT');
  long.close();
  await appendUntil(() => walBytes() < 24_000_000);
});

test('C10: more read calls than can be written are counted, not kept in memory', { timeout: 60_000 }, async (t) => {
  const { journal } = await openTemporary(t);
  await journal.append([recordAt(1)]);
  const rows = 300_000;
  const before = process.memoryUsage().rss;
  const row = readRowAt(1);
  // All in one turn: nothing can be handed over meanwhile.
  for (let n = 0; n < rows; n++) journal.appendRead(row);
  const grownMb = (process.memoryUsage().rss - before) / 1e6;
  await journal.sealReads();
  journal.appendRead(row);
  const sealed = await journal.sealReads();
  const dropped = sealed.reduce((sum, segment) => sum + segment.dropped, 0);
  assert.equal(
    sealed.reduce((sum, { count }) => sum + count, dropped),
    rows + 1,
  );
  assert.ok(dropped > 0);
  assert.equal((await collect(journal.readReads())).length, rows + 1 - dropped);
  assert.ok(grownMb < 64, `${grownMb} MB`);
});

test('C9: the checkpoint beside the journal is made anew while the daemon runs', { timeout: 40_000 }, async (t) => {
  const dir = await tempDir(t);
  const { journal } = await openTemporary(t, { path: join(dir, 'journal.db') });
  const aborter = new AbortController();
  const changes = watch(dir, { signal: aborter.signal });
  await journal.append(recordsFrom(1, 3));
  for await (const { filename } of changes) if (filename === 'journal.db.head') break;
  aborter.abort();
  const head = JSON.parse(readFileSync(join(dir, 'journal.db.head'), 'utf8')) as { seq: number; hash: string };
  assert.deepEqual([head.seq, head.hash], [3, Buffer.from(journal.head().hash).toString('hex')]);
});

test('C14: a moment is found among many checkpoints', async (t) => {
  const { journal } = await openTemporary(t);
  // A clock that now and then steps back by a second, and records of the same moment.
  const atOf = (seq: number): bigint =>
    startNs + BigInt(Math.floor(seq / 2) - (seq % 100 === 0 ? 1000 : 0)) * 1_000_000n;
  const count = 7500;
  for (let first = 1; first <= count; first += 500) {
    await journal.append(
      Array.from({ length: 500 }, (_, index) => recordAt(first + index, { atNs: atOf(first + index) })),
    );
  }
  let running = 0n;
  for (let seq = 1; seq <= count; seq++) {
    if (atOf(seq) > running) running = atOf(seq);
    const next = atOf(seq + 1) > running;
    if (seq % 50 < 4 && next) assert.equal(await journal.seqAtTime(running), seq, `at record ${seq}`);
  }
  assert.equal(await journal.seqAtTime(startNs - 1n), 0);
  assert.equal(await journal.seqAtTime(2n ** 62n), count);
});

const hex = (n: number, length: number): string => n.toString(16).padStart(8, '0').repeat(8).slice(0, length);

/** The records of one ExecSync, with bodies of the size that real ones have. */
const execSync = (seq: number): JournalRecord[] => {
  const common = {
    boot: bootId,
    v: 1,
    atNs: startNs + BigInt(seq) * 1_234_567n,
    monoNs: BigInt(seq) * 1_234_567n,
    call: seq,
  };
  const call = `call/${hex(seq, 8)}-52b1-4c4e-9d6e-2f0f7c6a9b10`;
  const container = `container/${hex(seq % 100, 64)}`;
  const ofSize = (bytes: number): string => JSON.stringify({ seq, text: 'x'.repeat(bytes - 20) });
  return [
    { ...common, seq, type: 'call.received', stream: call, cause: null, body: ofSize(300) },
    { ...common, seq: seq + 1, type: 'effects.requested', stream: container, cause: seq, body: ofSize(120) },
    { ...common, seq: seq + 2, type: 'effect.ended', stream: container, cause: seq + 1, body: ofSize(120) },
    { ...common, seq: seq + 3, type: 'call.completed', stream: call, cause: seq + 2, body: ofSize(120) },
  ];
};

test('an ExecSync costs at most 1.5 KB on disk, indexes and checkpoints included', async (t) => {
  const { journal } = await openTemporary(t);
  const before = await journal.usedBytes();
  const calls = 3000;
  for (let n = 0; n < calls; n += 10) {
    const first = journal.head().seq + 1;
    await journal.append(Array.from({ length: 10 }, (_, index) => execSync(first + 4 * index)).flat());
  }
  const bytes = ((await journal.usedBytes()) - before) / calls;
  t.diagnostic(`${Math.round(bytes)} bytes`);
  assert.ok(bytes <= 1536, `${bytes} bytes`);
});

test('a read call costs at most 150 bytes on disk, though each is committed by itself', async (t) => {
  const { journal } = await openTemporary(t);
  const before = await journal.usedBytes();
  const reads = 3000;
  for (let n = 0; n < reads; n++) {
    journal.appendRead(readRowAt(n, { subject: n % 2 === 0 ? '' : 'ab'.repeat(32) }));
    if (n % 100 === 99) await journal.sealReads();
  }
  const bytes = ((await journal.usedBytes()) - before) / reads;
  t.diagnostic(`${Math.round(bytes)} bytes in chunks of 100`);
  assert.ok(bytes <= 150);
  const single = await journal.usedBytes();
  const singles = 500;
  // The worst case: a chunk of one row per commit.
  for (let n = 0; n < singles; n++) {
    journal.appendRead(readRowAt(0));
    await journal.append([recordAt(journal.head().seq + 1, { body: '0', stream: 'node', call: null, cause: null })]);
  }
  const records = 500 * 130;
  const alone = ((await journal.usedBytes()) - single - records) / singles;
  t.diagnostic(`about ${Math.round(alone)} bytes for one by itself`);
  assert.ok(alone <= 150);
});
