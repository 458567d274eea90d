/** The tar reader: every form a name, number or attribute can have, in pieces of any size, and archives that lie. */
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { createTarReader, type TarEntry } from '../../../src/adapters/images/tar/reader.ts';
import { FailureError } from '../../../src/domain/model/errors.ts';
import { paxRecord, tar, tarHeader } from '../../support/images/tar.ts';

interface Read {
  readonly entries: TarEntry[];
  readonly data: Map<string, string>;
}

const read = (archive: Buffer, pieceBytes = archive.length): Read => {
  const entries: TarEntry[] = [];
  const data = new Map<string, string>();
  let path = '';
  const reader = createTarReader({
    entry: (entry) => {
      entries.push(entry);
      path = entry.path;
      data.set(path, '');
    },
    data: (chunk) => data.set(path, (data.get(path) ?? '') + Buffer.from(chunk).toString('latin1')),
    endEntry: () => undefined,
  });
  for (let offset = 0; offset < archive.length; offset += pieceBytes) {
    reader.push(archive.subarray(offset, offset + pieceBytes));
  }
  reader.end();
  return { entries, data };
};

const refused = (archive: Buffer, pattern: RegExp): void => {
  assert.throws(
    () => read(archive),
    (error: unknown) => {
      assert.ok(error instanceof FailureError, String(error));
      assert.equal(error.failure.reason, 'ImageInvalid');
      assert.match(error.failure.message, pattern);
      return true;
    },
  );
};

const only = (archive: Buffer): TarEntry => {
  const [entry] = read(archive).entries;
  assert.ok(entry);
  return entry;
};

describe('tar reader', () => {
  it('reads members of every kind, in pieces of any size', () => {
    const archive = tar([
      { path: 'dir/', flag: '5', mode: 0o1777 },
      { path: 'dir/file', data: 'x'.repeat(1500), mode: 0o4755, uid: 1000, gid: 50 },
      { path: 'dir/link', flag: '2', linkPath: '../elsewhere' },
      { path: 'dir/hard', flag: '1', linkPath: 'dir/file' },
      { path: 'dev', flag: '3', major: 5, minor: 300 },
      { path: 'pipe', flag: '6' },
      { path: 'empty' },
    ]);
    const whole = read(archive);
    for (const pieceBytes of [1, 7, 512, 513, 4096]) assert.deepEqual(read(archive, pieceBytes), whole);
    assert.deepEqual(
      whole.entries.map(({ type, path }) => `${type} ${path}`),
      [
        'directory dir/',
        'file dir/file',
        'symbolicLink dir/link',
        'hardLink dir/hard',
        'character dev',
        'fifo pipe',
        'file empty',
      ],
    );
    assert.equal(whole.data.get('dir/file')?.length, 1500);
    const [directory, file, link, , device] = whole.entries;
    assert.equal(directory?.mode, 0o1777);
    assert.deepEqual([file?.mode, file?.uid, file?.gid, file?.sizeBytes], [0o4755, 1000, 50, 1500]);
    assert.equal(link?.linkPath, '../elsewhere');
    assert.deepEqual([device?.major, device?.minor], [5, 300]);
  });

  it('takes names, ids and times from PAX headers, once', () => {
    const path = `deep/${'d'.repeat(300)}/ünï`;
    const archive = tar([
      {
        path: 'short',
        pax: { path, uid: '3000000', gid: '4', mtime: '1700000001.123456789', 'SCHILY.xattr.user.a': 'v' },
      },
      { path: 'next' },
    ]);
    const [entry, next] = read(archive).entries;
    assert.equal(Buffer.from(entry?.path ?? '', 'latin1').toString(), path);
    assert.deepEqual([entry?.uid, entry?.gid], [3_000_000, 4]);
    assert.deepEqual(entry?.mtime, { seconds: 1_700_000_001, nanoseconds: 123_456_789 });
    assert.equal(entry.xattrs.get('user.a')?.toString(), 'v');
    assert.equal(next?.path, 'next');
    assert.equal(next.xattrs.size, 0);
  });

  it('keeps bytes of names and attributes as they are', () => {
    const binary = Buffer.from([0, 1, 0x0a, 0x3d, 0xff]);
    const entry = only(
      tar([{ path: 'f', pax: { 'SCHILY.xattr.security.capability': binary, path: Buffer.from([0xff, 0xfe]) } }]),
    );
    assert.deepEqual(entry.xattrs.get('security.capability'), binary);
    assert.deepEqual(Buffer.from(entry.path, 'latin1'), Buffer.from([0xff, 0xfe]));
  });

  it('understands times before 1970 and fractions of any length', () => {
    const timeOf = (mtime: string) => only(tar([{ path: 'f', pax: { mtime } }])).mtime;
    assert.deepEqual(timeOf('-1.25'), { seconds: -2, nanoseconds: 750_000_000 });
    assert.deepEqual(timeOf('-3'), { seconds: -3, nanoseconds: 0 });
    assert.deepEqual(timeOf('0.1234567891234'), { seconds: 0, nanoseconds: 123_456_789 });
    assert.deepEqual(timeOf('7.'), { seconds: 7, nanoseconds: 0 });
  });

  it("reads GNU's long names and large numbers", () => {
    const name = Buffer.from(`${'n'.repeat(200)}\0`);
    const padding = Buffer.alloc(512 - name.length);
    const longName = Buffer.concat([tarHeader({ path: '././@LongLink', flag: 'L' }, name.length), name, padding]);
    const longLink = Buffer.concat([tarHeader({ path: '././@LongLink', flag: 'K' }, name.length), name, padding]);
    const member = tar([{ path: 'short', flag: '2', linkPath: 'short', uid: 5_000_000 }]);
    const entry = only(Buffer.concat([longLink, longName, member]));
    assert.deepEqual([entry.path, entry.linkPath], ['n'.repeat(200), 'n'.repeat(200)]);
    assert.equal(entry.uid, 5_000_000);
  });

  it('tells directories of old archives by their whole name', () => {
    const name = `${'d'.repeat(99)}/${'f'.repeat(20)}`;
    // The header has the first 100 bytes, which end in a slash: it is a file all the same.
    for (const flag of ['0', '\0']) {
      const cut = read(tar([{ path: name, flag, data: 'x', pax: { path: name } }, { path: 'next' }]));
      assert.deepEqual(
        cut.entries.map(({ type, path }) => [type, path]),
        [
          ['file', name],
          ['file', 'next'],
        ],
      );
      assert.equal(cut.data.get(name), 'x');
    }
    assert.equal(only(tar([{ path: 'old/', flag: '\0' }])).type, 'directory');
    assert.equal(only(tar([{ path: 'short', flag: '\0', pax: { path: `${name}/` } }])).type, 'directory');
  });

  it('ends where the archive says, or where its bytes do between members', () => {
    const archive = tar([{ path: 'a' }]);
    assert.equal(read(Buffer.concat([archive, Buffer.from('anything after the end')])).entries.length, 1);
    assert.equal(read(archive.subarray(0, archive.length - 1024)).entries.length, 1);
    assert.equal(read(archive.subarray(0, archive.length - 512)).entries.length, 1);
    assert.equal(read(Buffer.alloc(0)).entries.length, 0);
  });

  it('ignores global PAX headers as image tools do', () => {
    const record = paxRecord('path', 'elsewhere');
    const global = Buffer.concat([
      tarHeader({ path: 'g', flag: 'g' }, record.length),
      record,
      Buffer.alloc(512 - record.length),
    ]);
    assert.equal(only(Buffer.concat([global, tar([{ path: 'a' }])])).path, 'a');
  });

  it('refuses what is cut off, out of range, ambiguous or unknown', () => {
    const archive = tar([{ path: 'a', data: 'x'.repeat(1000) }]);
    refused(archive.subarray(0, 700), /middle of a member/);
    refused(archive.subarray(0, 100), /middle of a member/);
    const flipped = Buffer.from(archive);
    flipped[0] = 0x62;
    refused(flipped, /checksum/);
    refused(tar([{ path: 'a', flag: 'S' }]), /sparse/);
    refused(tar([{ path: 'a', flag: 'V' }]), /unknown type/);
    refused(tar([{ path: 'a', pax: { 'GNU.sparse.major': '1' } }]), /sparse/);
    refused(tar([{ path: 'a', pax: { path: 'x\0y' } }]), /NUL/);
    refused(tar([{ path: 'a', pax: { uid: '-5' } }]), /uid/);
    refused(tar([{ path: 'a', pax: { size: '99999999999999999999' } }]), /size/);
    refused(tar([{ path: 'a', pax: { mtime: 'yesterday' } }]), /time/);
    refused(tar([{ path: 'a', pax: { path: 'p'.repeat(5000) } }]), /longer than 4096/);
    refused(Buffer.concat([Buffer.alloc(512), tar([{ path: 'a' }])]), /follows an empty block/);
    refused(
      Buffer.concat([tarHeader({ path: 'p', flag: 'x', size: 2 * 1024 * 1024 }, 0), Buffer.alloc(1024)]),
      /larger than 1 MiB/,
    );
    const bad = Buffer.from('99 path=x\n');
    refused(
      Buffer.concat([tarHeader({ path: 'p', flag: 'x' }, bad.length), bad, Buffer.alloc(512 - bad.length)]),
      /wrong length/,
    );
  });

  it('fails in one way only, whatever the bytes', () => {
    const archive = tar([
      { path: 'a/b', data: 'hello', pax: { mtime: '1.5', 'SCHILY.xattr.user.x': 'y' } },
      { path: 'c', flag: '2', linkPath: 'a' },
    ]);
    const change = fc.tuple(fc.nat(archive.length - 1), fc.nat(255));
    fc.assert(
      fc.property(
        fc.array(change, { minLength: 1, maxLength: 6 }),
        fc.integer({ min: 1, max: 900 }),
        (changes, piece) => {
          const damaged = Buffer.from(archive);
          for (const [offset, byte] of changes) damaged[offset] = byte;
          try {
            read(damaged, piece);
          } catch (error) {
            assert.ok(error instanceof FailureError && error.failure.reason === 'ImageInvalid', String(error));
          }
        },
      ),
      { numRuns: 500 },
    );
  });
});
