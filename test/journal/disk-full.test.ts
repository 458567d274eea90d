/**
 * A disk that fills up, on a small file system of its own: it is refused at the door, what must still be written
 * finds its reserve, and when a commit fails all the same, the journal ends and has lost nothing (C7).
 */
import assert from 'node:assert/strict';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createDiskGuard } from '../../src/journal/disk-space.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { onCleanup } from '../support/cleanup.ts';
import { runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { collect, openTemporary, readRowAt, recordAt } from './support.ts';

const mebibyte = 1024 * 1024;

/** A file system of this size; needs root. */
const smallDisk = async (t: TestContext, sizeMb: number): Promise<string> => {
  const dir = await tempDir(t);
  await runOk(['mount', '-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=0700`, 'scribe-test', dir]);
  onCleanup(t, async () => {
    // The writer's thread may still be letting go of its files.
    await runOk(['umount', '--lazy', dir]);
  });
  return dir;
};

const body = JSON.stringify({ text: 'x'.repeat(4000) });
const large = (seq: number) => recordAt(seq, { body });

test('C7: when the disk is full the journal fails for everybody, and keeps all it had acknowledged', async (t) => {
  const dir = await smallDisk(t, 6);
  const path = join(dir, 'journal.db');
  const { journal } = await openTemporary(t, { path });
  const ended = Promise.withResolvers<unknown>();
  journal.follow(1).subscribe({ error: ended.resolve });
  let acknowledged = 0;
  const full = async (): Promise<void> => {
    for (;;) {
      const first = journal.head().seq + 1;
      await Promise.all([first, first + 1, first + 2].map(async (seq) => journal.append([large(seq)])));
      acknowledged = journal.head().seq;
    }
  };
  await assert.rejects(full(), { code: 'Failed', message: /full/ });
  assert.match((await journal.failed).message, /full/);
  assert.match(String(await ended.promise), /full/);
  await assert.rejects(journal.append([large(acknowledged + 1)]), { code: 'Failed' });
  await assert.rejects(journal.writeSnapshot({ seq: 1, evolverVersion: 1, state: '{}' }), { code: 'Failed' });
  journal.appendRead(readRowAt(1));
  await journal.close();
  assert.ok(acknowledged > 100, `${acknowledged}`);
  await runOk(['mount', '-o', 'remount,size=32m', dir]);
  const again = await openTemporary(t, { path });
  assert.deepEqual(again.findings, []);
  assert.ok(again.journal.head().seq >= acknowledged);
  await again.journal.append([recordAt(again.journal.head().seq + 1)]);
  const records = await collect(again.journal.read());
  assert.deepEqual(
    records.slice(0, acknowledged).map(({ seq }) => seq),
    Array.from({ length: acknowledged }, (_, index) => index + 1),
  );
  await again.journal.close();
  assert.deepEqual((await verifyJournal(path)).findings, []);
});

test('C7: the guard says full before a commit could fail, and the reserve carries what must be written', async (t) => {
  const dir = await smallDisk(t, 24);
  const path = join(dir, 'journal.db');
  const changes: boolean[] = [];
  const guard = await createDiskGuard({
    reservePath: join(dir, 'reserve'),
    reserveBytes: 6 * mebibyte,
    minFreeBytes: 4 * mebibyte,
    tightBytes: 2 * mebibyte,
    onChange: (full) => changes.push(full),
  });
  onCleanup(t, () => guard.close());
  const reserved = (): number => statSync(join(dir, 'reserve')).size;
  assert.equal(guard.isFull(), false);
  assert.equal(reserved(), 6 * mebibyte);
  const { journal } = await openTemporary(t, { path, refuseReads: guard.isFull });
  // Ordinary work, refused at the door.
  while (!(await guard.look())) await journal.append([large(journal.head().seq + 1)]);
  assert.deepEqual([guard.isFull(), changes], [true, [true]]);
  // Somebody else takes the rest.
  writeFileSync(join(dir, 'others'), Buffer.alloc(3 * mebibyte));
  await guard.look();
  assert.equal(reserved(), 0);
  // Stopping and removing goes on.
  for (let n = 0; n < 200; n++) await journal.append([large(journal.head().seq + 1)]);
  journal.appendRead(readRowAt(1));
  assert.deepEqual(await journal.sealReads(), [], 'rows of read calls are not written to a full disk');
  // Room again: the guard heals by itself, reserve included.
  rmSync(join(dir, 'others'));
  await runOk(['mount', '-o', 'remount,size=48m', dir]);
  assert.equal(await guard.look(), false);
  assert.deepEqual([reserved(), changes], [6 * mebibyte, [true, false]]);
  journal.appendRead(readRowAt(2));
  const [sealed] = await journal.sealReads();
  assert.deepEqual([sealed?.count, sealed?.dropped], [1, 1]);
  await journal.close();
  assert.deepEqual((await verifyJournal(path)).findings, []);
});

test('C7: a snapshot that finds no room is refused, and nothing else suffers', async (t) => {
  const dir = await smallDisk(t, 6);
  const { journal } = await openTemporary(t, { path: join(dir, 'journal.db') });
  await journal.append([recordAt(1)]);
  const state = 'x'.repeat(8 * mebibyte);
  await assert.rejects(journal.writeSnapshot({ seq: 1, evolverVersion: 1, state }), /too full for a snapshot/);
  await journal.append([recordAt(2)]);
  assert.equal(await journal.newestSnapshot(1), null);
});

test('a look sees what was there when it was asked for, also while an earlier one is under way', async (t) => {
  const dir = await smallDisk(t, 16);
  const mebibytes = (count: number): number => count * mebibyte;
  const guard = await createDiskGuard({
    reservePath: join(dir, 'reserve'),
    reserveBytes: mebibytes(1),
    minFreeBytes: mebibytes(8),
    tightBytes: mebibytes(1),
  });
  onCleanup(t, () => guard.close());
  const others = join(dir, 'others');
  for (let turns = 0; turns < 40; turns += 1) {
    const earlier = guard.look();
    // In every stage of the earlier one.
    for (let n = 0; n < turns % 8; n += 1) await new Promise((resolve) => setImmediate(resolve));
    writeFileSync(others, Buffer.alloc(mebibytes(10)));
    assert.equal(await guard.look(), true);
    await earlier;
    rmSync(others);
    assert.equal(await guard.look(), false);
  }
});
