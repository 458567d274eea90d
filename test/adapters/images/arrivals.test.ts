/** How far a download has come, as its file tells it and as it is followed. */
import assert from 'node:assert/strict';
import { open, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { createArrivals, followArrivals, readArriving } from '../../../src/adapters/images/arrivals.ts';
import { failureOf } from '../../support/images/store.ts';
import { tempDir } from '../../support/temp-dir.ts';

const KIB = 1024;
const MIB = 1024 * KIB;
const PIECE = 64 * KIB;

const begin = async (t: TestContext, sizeBytes: number) => {
  const path = join(await tempDir(t), 'blob.arrivals');
  const arrivals = createArrivals(path, sizeBytes);
  t.after(arrivals.remove);
  return { path, arrivals };
};

describe('what tells how far a download has come', () => {
  it('tells of the first bytes at once, and seldom of those that follow', async (t) => {
    const sizeBytes = 4 * MIB + 1;
    const { path, arrivals } = await begin(t, sizeBytes);
    for (let there = PIECE; there < sizeBytes; there += PIECE) arrivals.tell(there);
    arrivals.tell(sizeBytes);
    const told = (await readFile(path, 'utf8')).trim().split('\n').map(Number);
    assert.deepEqual(told, [64, 128, 256, 512, 1024, 2048, 3072, 4096].map((kib) => kib * KIB).concat(sizeBytes));
  });

  it('is followed by who reads what is there, to the end and not beyond', async (t) => {
    const sizeBytes = 3 * PIECE;
    const { path, arrivals } = await begin(t, sizeBytes);
    const blob = join(path, '../blob');
    const bytes = Buffer.alloc(sizeBytes, 'what is downloaded ');
    await writeFile(blob, Buffer.concat([bytes, Buffer.from('more')]));
    const handle = await open(blob);
    t.after(() => handle.close());
    const read = readArriving(handle.fd, sizeBytes, followArrivals(path));
    const into = Buffer.alloc(MIB);
    arrivals.tell(PIECE);
    assert.equal(await read(into), PIECE);
    const waiting = read(into.subarray(PIECE));
    arrivals.tell(sizeBytes);
    assert.equal(await waiting, 2 * PIECE);
    assert.equal(await read(into.subarray(sizeBytes)), 0);
    assert.ok(into.subarray(0, sizeBytes).equals(bytes));
  });

  it('says when a download begins anew, and goes once', async (t) => {
    const { path, arrivals } = await begin(t, MIB);
    const { beyond } = followArrivals(path);
    arrivals.tell(PIECE);
    assert.equal(await beyond(0), PIECE);
    arrivals.restart();
    assert.equal((await failureOf(beyond(0))).reason, 'Interrupted');
    arrivals.tell(PIECE);
    assert.match(await readFile(path, 'utf8'), /restart\n65536\n$/);
    arrivals.remove();
    arrivals.remove();
    assert.equal(await stat(path).catch(() => null), null);
  });
});
