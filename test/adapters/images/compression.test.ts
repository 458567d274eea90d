/** Reading compressed layers: by their first bytes, of any number of frames, whole or not at all. */
import assert from 'node:assert/strict';
import { open, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { constants, gzipSync, zstdCompressSync } from 'node:zlib';
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
      await readPlain(handle.fd, (bytes) => {
        read += bytes;
      }),
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
    const damaged = (bytes: Buffer): Buffer => {
      const copy = Buffer.from(bytes);
      copy[5000] = (copy[5000] ?? 0) ^ 0xff;
      return copy;
    };
    const bad = {
      'gzip cut off': gz.subarray(0, gz.length - 20),
      'gzip damaged': damaged(gz),
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
