/** Reading compressed layers: by their first bytes, of any number of frames, whole or not at all. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { constants, gunzipSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { createFastestInflater } from '../../../src/platform/linux/inflate/fastest.ts';
import { readPlain } from '../../../src/adapters/images/compression.ts';
import { failureOf } from '../../support/images/store.ts';
import { tempDir } from '../../support/temp-dir.ts';

const plainOf = async (t: TestContext, compressed: Buffer): Promise<Buffer> => {
  const path = join(await tempDir(t), 'blob');
  await writeFile(path, compressed);
  const handle = await open(path);
  try {
    let read = 0;
    const pieces = await Array.fromAsync(
      await readPlain(handle.fd, createFastestInflater, (bytes) => {
        read += bytes;
      }),
      // It is valid until the next is asked for.
      (piece) => Buffer.from(piece),
    );
    assert.equal(read, compressed.length);
    return Buffer.concat(pieces);
  } finally {
    await handle.close();
  }
};

const text = (length: number, seed = 1): Buffer => {
  const bytes = Buffer.alloc(length);
  let state = seed;
  for (let index = 0; index < length; index += 1) {
    state = (state * 1103515245 + 12345) & 0x7fffffff;
    bytes[index] = (state >> 16) & 0x3f;
  }
  return bytes;
};

const skippable = (length: number): Buffer => {
  const head = Buffer.alloc(8);
  head.writeUInt32LE(0x184d2a53);
  head.writeUInt32LE(length, 4);
  return Buffer.concat([head, text(length)]);
};

const checksummed = { params: { [constants.ZSTD_c_checksumFlag]: 1 } };

describe('compressed layers', () => {
  it('reads plain, gzip and zstd by their first bytes', async (t) => {
    const bytes = text(3_000_000);
    for (const compressed of [bytes, gzipSync(bytes), zstdCompressSync(bytes), zstdCompressSync(bytes, checksummed)]) {
      assert.ok((await plainOf(t, compressed)).equals(bytes));
    }
    for (const tiny of ['', 'a', 'abc', 'abcdef']) assert.equal((await plainOf(t, Buffer.from(tiny))).toString(), tiny);
  });

  it('reads every member of a gzip file', async (t) => {
    const parts = [text(1000), text(400_000, 2), text(5, 3)];
    assert.ok((await plainOf(t, Buffer.concat(parts.map((part) => gzipSync(part))))).equals(Buffer.concat(parts)));
  });

  it('gives the bytes that node:zlib gives, wherever members, reads and buffers end', async (t) => {
    // 256 KiB is as much as is read, and written, at once.
    const step = 262_144;
    for (const length of [0, 1, step - 1, step, step + 1, 2 * step, 3 * step + 7]) {
      const alike = Buffer.alloc(length, 'again and again ');
      const stored = gzipSync(text(length), { level: 0 });
      for (const packed of [gzipSync(alike), gzipSync(text(length)), stored])
        for (const many of [1, 2, 3]) {
          const file = Buffer.concat(Array.from({ length: many }, () => packed));
          assert.ok((await plainOf(t, file)).equals(gunzipSync(file)), `${many} members of ${length} bytes`);
        }
    }
    // The header of the second member lies on both sides of where a read ends.
    for (const before of [1, 5, 9, 11]) {
      const first = gzipSync(randomBytes(step - 200), { level: 0 });
      const name = Buffer.alloc(step - before - first.length, 'n');
      name[name.length - 1] = 0;
      const named = Buffer.concat([
        first.subarray(0, 3),
        Buffer.from([8]),
        first.subarray(4, 10),
        name,
        first.subarray(10),
      ]);
      assert.equal(named.length, step - before);
      const file = Buffer.concat([named, gzipSync(text(1000))]);
      assert.ok((await plainOf(t, file)).equals(gunzipSync(file)), `${before} bytes before the end of a read`);
    }
  });

  it('leaves zero bytes after the last member of a gzip file, and what is behind them', async (t) => {
    const gz = gzipSync(text(1000));
    for (const after of [Buffer.alloc(1), Buffer.alloc(1024), Buffer.from([0, 1, 2])])
      assert.ok((await plainOf(t, Buffer.concat([gz, after]))).equals(text(1000)));
  });

  it('refuses a gzip file that is cut off anywhere', async (t) => {
    const gz = gzipSync(text(300));
    for (let length = 2; length < gz.length; length += 1)
      assert.equal((await failureOf(plainOf(t, gz.subarray(0, length)))).reason, 'ImageInvalid', `${length} bytes`);
    const two = Buffer.concat([gz, gz]);
    for (const length of [gz.length + 1, gz.length + 9, gz.length + 10, two.length - 1])
      assert.equal((await failureOf(plainOf(t, two.subarray(0, length)))).reason, 'ImageInvalid', `${length} bytes`);
  });

  it('can be left in the middle', async (t) => {
    const bytes = text(3_000_000);
    const path = join(await tempDir(t), 'blob');
    await writeFile(path, gzipSync(bytes));
    const handle = await open(path);
    t.after(() => handle.close());
    const pieces = (await readPlain(handle.fd, createFastestInflater, () => undefined))[Symbol.asyncIterator]();
    const first = (await pieces.next()).value as Buffer;
    assert.ok(first.length < bytes.length && first.equals(bytes.subarray(0, first.length)));
    await pieces.return?.();
    assert.equal((await pieces.next()).done, true);
  });

  it('reads every frame of a zstd file, and past those to be skipped', async (t) => {
    const parts = [text(10), text(700_000, 2), Buffer.alloc(0), text(131_072, 3), Buffer.alloc(900_000, 7), text(1, 4)];
    const frames = parts.flatMap((part, index) => [
      zstdCompressSync(part, index % 2 === 0 ? checksummed : {}),
      skippable(index * 100_000),
    ]);
    assert.ok((await plainOf(t, Buffer.concat([skippable(3), ...frames]))).equals(Buffer.concat(parts)));
  });

  it('refuses what is broken, cut off or followed by something else', async (t) => {
    const gz = gzipSync(text(100_000));
    const zst = zstdCompressSync(text(100_000), checksummed);
    const changed = (bytes: Buffer, at: number): Buffer => {
      const copy = Buffer.from(bytes);
      copy[at] = (copy[at] ?? 0) ^ 0xff;
      return copy;
    };
    const damaged = (bytes: Buffer): Buffer => changed(bytes, 5000);
    const bad = {
      'gzip cut off': gz.subarray(0, gz.length - 20),
      'gzip damaged': damaged(gz),
      'gzip with another checksum': changed(gz, gz.length - 8),
      'gzip with another length': changed(gz, gz.length - 4),
      'gzip and more': Buffer.concat([gz, Buffer.from('more')]),
      'zstd cut off': zst.subarray(0, zst.length - 20),
      'zstd cut off in its checksum': zst.subarray(0, zst.length - 2),
      'zstd damaged': damaged(zst),
      'zstd and more': Buffer.concat([zst, Buffer.from('more')]),
      'zstd skippable cut off': skippable(100).subarray(0, 50),
    };
    for (const [what, bytes] of Object.entries(bad)) {
      const failure = await failureOf(plainOf(t, bytes));
      assert.equal(failure.reason, 'ImageInvalid', what);
      assert.match(failure.message, /^The compressed data is malformed: /);
    }
  });
});
