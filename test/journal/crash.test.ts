/**
 * Crashes: a process that is killed while it appends loses nothing that it was told is durable, and a write-ahead log
 * that is cut or torn anywhere gives back a prefix that holds everything acknowledged before the cut.
 */
import assert from 'node:assert/strict';
import { copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { checkChain } from '../../src/journal/chain-check.ts';
import { connectWriter } from '../../src/journal/connect.ts';
import { GENESIS } from '../../src/journal/encoding.ts';
import { openReader } from '../../src/journal/open.ts';
import { createReader } from '../../src/journal/reader.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { collect, openTemporary, recordAt, recordsFrom } from './support.ts';

const child = join(import.meta.dirname, 'crash-child.ts');

const lastNumber = (output: string): number =>
  Math.max(
    0,
    ...output
      .slice(0, output.lastIndexOf('\n') + 1)
      .trim()
      .split('\n')
      .slice(-200)
      .map(Number)
      // The output also has warnings of Node itself, and a first line that is cut off.
      .filter(Number.isSafeInteger),
  );

test('C1: a process killed at any moment loses no record that was acknowledged', { timeout: 120_000 }, async (t) => {
  const path = join(await tempDir(t), 'journal.db');
  const kills = 8;
  let acknowledged = 0;
  for (let n = 0; n < kills; n++) {
    const victim = await startProcess(t, [process.execPath, child, path, String(1 + (n % 3) * 10)]);
    // Not a moment of the clock but of its work: some way into this life.
    await victim.until(new RegExp(`\n\\d*${n}\\d\n(.*\n){${n * 37}}`), 20_000);
    victim.kill('SIGKILL');
    await victim.ended;
    acknowledged = lastNumber(victim.output());
    const reader = openReader(path);
    const head = reader.head().seq;
    assert.ok(head >= acknowledged, `record ${acknowledged} was acknowledged, the journal ends at ${head}`);
    for (const record of await collect(reader.read({ fromSeq: Math.max(1, head - 30) }))) {
      if (record.stream !== 'node') assert.deepEqual(record, recordAt(record.seq));
    }
    reader.close();
  }
  const report = await verifyJournal(path);
  assert.deepEqual(report.findings, []);
  assert.ok(report.headSeq >= acknowledged);
  t.diagnostic(`${kills} kills, ${report.headSeq} records, ${report.prunedRecords} of them pruned`);
});

/** Where the log ended when a record was acknowledged. */
interface Acknowledged {
  readonly seq: number;
  readonly walBytes: number;
}

interface Crashed {
  readonly database: string;
  readonly wal: Buffer;
  readonly acknowledged: readonly Acknowledged[];
}

/** A journal as it lies on the disk in the middle of its work, its log not yet moved into the database. */
const journalInFlight = async (dir: string, t: Parameters<typeof openTemporary>[0]): Promise<Crashed> => {
  const path = join(dir, 'journal.db');
  const { journal } = await openTemporary(t, { path });
  await journal.append(recordsFrom(1, 5));
  await journal.close();
  const again = await openTemporary(t, { path });
  const acknowledged: Acknowledged[] = [];
  for (let seq = 6; seq <= 60; seq += 5) {
    await again.journal.append(recordsFrom(seq, 5));
    acknowledged.push({ seq: seq + 4, walBytes: statSync(`${path}-wal`).size });
  }
  const database = join(dir, 'crashed.db');
  copyFileSync(path, database);
  const wal = readFileSync(`${path}-wal`);
  await again.journal.close();
  return { database, wal, acknowledged };
};

/** Opens what a crash left and gives its last seq, after checking every record. */
const recovered = (path: string): number => {
  const db = connectWriter(path);
  try {
    const { seq } = createReader(db).head();
    const { findings } = checkChain(db, { fromSeq: 1, toSeq: seq, previousHash: GENESIS });
    assert.deepEqual(findings, []);
    assert.equal(db.pragma('integrity_check', { simple: true }), 'ok');
    return seq;
  } finally {
    db.close();
  }
};

const frameBytes = 24 + 4096;

for (const [how, damage] of [
  ['cut off', (wal: Buffer, at: number) => wal.subarray(0, at)],
  ['torn', (wal: Buffer, at: number) => Buffer.concat([wal.subarray(0, at), Buffer.alloc(wal.length - at, 0xa5)])],
  ['zeroed', (wal: Buffer, at: number) => Buffer.concat([wal.subarray(0, at), Buffer.alloc(wal.length - at)])],
  // Later pages reached the disk, an earlier one did not: only what is before it counts.
  ['missing a page', (wal: Buffer, at: number) => Buffer.from(wal).fill(0, at, Math.min(wal.length, at + 512))],
] as const) {
  test(`C1: a log that is ${how} anywhere gives back all that was acknowledged before`, {
    timeout: 120_000,
  }, async (t) => {
    const dir = await tempDir(t);
    const { database, wal, acknowledged } = await journalInFlight(dir, t);
    const path = join(dir, 'damaged.db');
    const heads = new Set<number>();
    const step = how === 'cut off' ? 512 : 1536;
    const places = Array.from({ length: Math.ceil(wal.length / step) }, (_, index) => index * step);
    for (const at of [...places, wal.length]) {
      copyFileSync(database, path);
      writeFileSync(`${path}-wal`, damage(wal, at));
      writeFileSync(`${path}-shm`, '');
      const head = recovered(path);
      const durable = acknowledged.findLast(({ walBytes }) => walBytes <= at)?.seq ?? 5;
      assert.ok(head >= durable, `damaged at ${at}: ${durable} was acknowledged, the journal ends at ${head}`);
      // A batch is there whole or not at all.
      assert.equal(head % 5, 0);
      heads.add(head);
    }
    assert.equal(heads.size, acknowledged.length + 1);
    assert.ok(wal.length > 20 * frameBytes);
  });
}
