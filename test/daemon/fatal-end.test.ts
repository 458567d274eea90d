/** How the daemon ends when it can't go on: which ends are its own end, and what it leaves for the next start. */
import assert from 'node:assert/strict';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { readCrashFile, removeCrashFile, writeCrashFile } from '../../src/daemon/crash-file.ts';
import { dieWith, type VitalParts } from '../../src/daemon/fatal-end.ts';
import { KnownError } from '../../src/domain/model/errors.ts';
import { tempDir } from '../support/temp-dir.ts';

const never = new Promise<never>(() => undefined);
const living: VitalParts = {
  journal: { failed: never },
  cni: { failed: never },
  cri: { ended: never },
  shim: { ended: never },
  spawner: { ended: never },
};

const ENDS: readonly (readonly [string, Partial<VitalParts>])[] = [
  ['the journal failed', { journal: { failed: Promise.resolve(new Error('a reason')) } }],
  ['the watch of the CNI configuration ended', { cni: { failed: Promise.resolve(new Error('a reason')) } }],
  ['the CRI socket ended', { cri: { ended: Promise.resolve(new Error('a reason')) } }],
  ['the events server ended', { shim: { ended: Promise.reject(new Error('a reason')) } }],
  ['the spawner ended', { spawner: { ended: Promise.resolve() } }],
];

for (const [what, part] of ENDS)
  test(`C20: ${what}, and so does the daemon`, async () => {
    const deaths: string[] = [];
    const died = Promise.withResolvers<unknown>();
    dieWith(
      { ...living, ...part },
      (words) => (error) => {
        deaths.push(words);
        died.resolve(error);
      },
      () => false,
    );
    assert.ok((await died.promise) instanceof Error);
    assert.deepEqual(deaths, [what]);
  });

const ENDS_IN_ORDER: readonly (readonly [string, Partial<VitalParts>])[] = [
  ['a spawner that ends', { spawner: { ended: Promise.resolve() } }],
  ['a CNI configuration that changes', { cni: { failed: Promise.resolve(new Error('The daemon is ending.')) } }],
];

for (const [what, part] of ENDS_IN_ORDER)
  test(`${what} with its daemon, in order, is no reason to die`, async () => {
    const deaths: string[] = [];
    dieWith(
      { ...living, ...part },
      (words) => () => deaths.push(words),
      () => true,
    );
    await new Promise((resolve) => setImmediate(resolve));
    assert.deepEqual(deaths, []);
  });

test('C7: the crash file has all that led to the end, stays until it is recorded, and is bounded', async (t) => {
  const dir = await tempDir(t);
  const full = Object.assign(new Error('disk I/O error'), { name: 'SqliteError', code: 'SQLITE_IOERR' });
  const error = new KnownError('the journal cannot be written', { cause: full });
  writeCrashFile(dir, error);
  const words = readCrashFile(dir) ?? '';
  assert.match(words, /^Error: the journal cannot be written\n/);
  assert.match(words, /^Caused by: SqliteError \[SQLITE_IOERR\]: disk I\/O error$/m);
  // A start that is killed before its record is durable leaves it to the next one.
  assert.equal(readCrashFile(dir), words);
  removeCrashFile(dir, words);
  assert.equal(readCrashFile(dir), null);
  writeCrashFile(dir, new KnownError('x'.repeat(1_000_000)));
  // What this life has left meanwhile nobody has recorded.
  removeCrashFile(dir, words);
  assert.equal(readCrashFile(dir)?.length, 16_384);
  removeCrashFile(dir, null);
  assert.equal(readCrashFile(dir)?.length, 16_384);
  // Nowhere to write to: there is nobody left to tell.
  const gone = join(dir, 'gone');
  writeCrashFile(gone, error);
  await mkdir(gone);
  assert.deepEqual(await readdir(gone), []);
});
