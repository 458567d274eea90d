/**
 * A disk that fills up, on a small file system of its own: it is refused before it is decided about, what must still be written
 * finds its reserve, and when a commit fails all the same, the journal ends and has lost nothing (C7).
 */
import assert from 'node:assert/strict';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test, type TestContext } from 'node:test';
import { createDiskGuard } from '../../src/journal/disk-space.ts';
import { openJournal } from '../../src/journal/open.ts';
import { verifyJournal } from '../../src/journal/verify.ts';
import { onCleanup } from '../support/cleanup.ts';
import { fillAtOnce, freeBytesOf, mountSmallDisk, resizeSmallDisk } from '../support/small-disk.ts';
import { tempDir } from '../support/temp-dir.ts';
import { collect, openTemporary, readRowAt, recordAt } from './support.ts';

const mebibyte = 1024 * 1024;

/** The path of a file system of this size. */
const smallDisk = async (t: TestContext, sizeMb: number): Promise<string> => {
  const dir = await tempDir(t);
  await mountSmallDisk(t, dir, sizeMb);
  return dir;
};

const body = JSON.stringify({ text: 'x'.repeat(4000) });
const large = (seq: number) => recordAt(seq, { body });

test('C7: when the disk is full the journal fails for everybody, and keeps all it had acknowledged', async (t) => {
  const dir = await smallDisk(t, 6);
  const path = join(dir, 'journal.db');
  const { journal } = await openTemporary(t, { path });
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
  await assert.rejects(journal.append([large(acknowledged + 1)]), { code: 'Failed' });
  await assert.rejects(journal.writeSnapshot({ seq: 1, evolverVersion: 1, state: '{}' }), { code: 'Failed' });
  journal.appendRead(readRowAt(1));
  await journal.close();
  assert.ok(acknowledged > 100, `${acknowledged}`);
  await resizeSmallDisk(dir, 32);
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
  // Ordinary work, refused before it is decided about.
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
  await resizeSmallDisk(dir, 48);
  assert.equal(await guard.look(), false);
  assert.deepEqual([reserved(), changes], [6 * mebibyte, [true, false]]);
  journal.appendRead(readRowAt(2));
  const [sealed] = await journal.sealReads();
  assert.deepEqual([sealed?.count, sealed?.dropped], [1, 1]);
  await journal.close();
  assert.deepEqual((await verifyJournal(path)).findings, []);
});

test('C7: a disk that fills at once takes the reserve and not the journal, and is full until there is room for both', async (t) => {
  const dir = await smallDisk(t, 32);
  const path = join(dir, 'journal.db');
  const reservePath = join(dir, 'reserve');
  const options = { reservePath, reserveBytes: 8 * mebibyte, minFreeBytes: 4 * mebibyte };
  const guard = await createDiskGuard(options);
  // Nobody looks from here on: only the commit itself meets the full disk.
  await guard.close();
  let met = 0;
  const { journal } = await openTemporary(t, {
    path,
    reservePath,
    onDiskFull() {
      met += 1;
      guard.noteFull();
    },
  });
  await journal.append([recordAt(1)]);
  const others = await fillAtOnce(dir);
  assert.equal(freeBytesOf(dir), 0);
  const lastSeq = 500;
  for (let seq = 2; seq <= lastSeq; seq++) await journal.append([large(seq)]);
  assert.ok(met > 0, 'no commit found the disk full');
  assert.equal(guard.isFull(), true);
  assert.equal(statSync(reservePath).size, 0);
  await journal.close();

  const again = await openTemporary(t, { path, reservePath });
  assert.deepEqual([again.findings, again.journal.head().seq], [[], lastSeq]);
  const guardAgain = await createDiskGuard(options);
  onCleanup(t, () => guardAgain.close());
  // What the reserve left is above the threshold, and still is for stopping and removing only.
  assert.ok(freeBytesOf(dir) > 4 * mebibyte);
  assert.equal(guardAgain.isFull(), true);
  rmSync(others);
  assert.equal(await guardAgain.look(), false);
  assert.equal(statSync(reservePath).size, 8 * mebibyte);
  await again.journal.close();
  assert.deepEqual((await verifyJournal(path)).findings, []);
});

test('C7: a disk that was filled while nobody watched keeps no journal from being opened', async (t) => {
  const dir = await smallDisk(t, 32);
  const [path, reservePath] = [join(dir, 'journal.db'), join(dir, 'reserve')];
  const guard = await createDiskGuard({ reservePath, reserveBytes: 8 * mebibyte, minFreeBytes: 4 * mebibyte });
  await guard.close();
  const { journal } = await openTemporary(t, { path, reservePath });
  await journal.append([recordAt(1)]);
  await journal.close();
  // What is freed by writing it anew is not there at once on every file system.
  rmSync(`${path}.lock`);
  await fillAtOnce(dir);
  assert.equal(freeBytesOf(dir), 0);
  const again = await openTemporary(t, { path, reservePath });
  await again.journal.append([recordAt(2)]);
  assert.equal(again.journal.head().seq, 2);
  assert.throws(() => openJournal({ path }), { code: 'Locked' });
});

test('C7: a disk is full below the threshold and no earlier, also when it never had room for a reserve', async (t) => {
  const dir = await smallDisk(t, 12);
  const options = { reservePath: join(dir, 'reserve'), reserveBytes: 8 * mebibyte, minFreeBytes: 8 * mebibyte };
  const guard = await createDiskGuard(options);
  onCleanup(t, () => guard.close());
  assert.equal(await guard.look(), false);
  writeFileSync(join(dir, 'others'), Buffer.alloc(5 * mebibyte));
  assert.equal(await guard.look(), true);
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
