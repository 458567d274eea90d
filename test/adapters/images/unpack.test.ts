/** Unpacking ordinary layers: the same tree as GNU tar makes of them, in overlayfs' form. Needs root. */
import assert from 'node:assert/strict';
import { lstat, mkdir, readdir, readFile, readlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { constants, createZstdCompress, gzipSync, zstdCompressSync } from 'node:zlib';
import { chainIdsOf } from '../../../src/adapters/images/chain-ids.ts';
import { listXattrs, readXattr, writeXattr } from '../../../src/platform/linux/syscalls.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { sha256 } from '../../support/images/build.ts';
import { tar } from '../../support/images/tar.ts';
import { startWorkshop, type Workshop } from '../../support/images/unpacking.ts';
import { withReason } from '../../support/failures.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const tree = `
set -e
umask 022
mkdir -p plain/deep/deeper sticky setgid secret empty
chmod 1777 sticky; chmod 2755 setgid; chmod 0 secret
echo hello > plain/file; head -c 300000 /dev/urandom > plain/big; : > plain/nothing
echo suid > plain/suid; chmod 4755 plain/suid
echo unreadable > secret/inner; chmod 0 secret/inner
ln plain/file plain/deep/hard; ln plain/file hard2
ln -s file plain/relative; ln -s /etc/passwd absolute; ln -s ../../../../outside plain/deep/out; ln -s nowhere dangling
ln -s plain linked-dir
mkfifo pipe; mknod null c 1 3; mknod disk b 259 300; chmod 666 null
chown 1000:2000 plain/file pipe null plain/deep; chown -h 33:44 dangling; chown 4294967294:7 empty
echo x > "$(printf 'bytes-\\377\\376')"; echo x > 'with space
and newline'
n=$(printf 'n%.0s' $(seq 1 120)); mkdir -p "$n/$n"; echo long > "$n/$n/$n"
c=$(printf 'c%.0s' $(seq 1 97)); mkdir "$c"; echo cut > "$c/after-100-bytes"
ln -s "$n/$n/$n" long-link
touch -d '2001-02-03 04:05:06.123456789' plain/file plain/deep; touch -h -d '1999-01-01 00:00:00.5' dangling
touch -d '1960-01-01' plain/nothing; touch -d '2040-06-07 08:09:10' setgid .
`;

/** One line for each file with all that has to be the same; links to one file are told by the first name of it. */
const describeTree = async (root: string, withNanoseconds: boolean): Promise<string> => {
  const format = `%P|%y|%m|%U|%G|%l|%${withNanoseconds ? 'T@' : 'Ts'}|%n|\\n`;
  const list = await runOk(['sh', '-c', `cd "$1" && find . -printf '${format}' | LC_ALL=C sort`, 'sh', root]);
  const sums = await runOk([
    'sh',
    '-c',
    'cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum',
    'sh',
    root,
  ]);
  const devices = await runOk([
    'sh',
    '-c',
    'cd "$1" && find . \\( -type b -o -type c \\) -exec stat -c "%n %t:%T" {} + | LC_ALL=C sort',
    'sh',
    root,
  ]);
  const attributes = await Promise.all(
    ['plain/file', 'plain/deep', 'plain/relative'].map(async (path) => {
      const names = await listXattrs(join(root, path));
      const values = await Promise.all(names.map(async (name) => [name, await readXattr(join(root, path), name)]));
      return JSON.stringify([path, values]);
    }),
  );
  return [list, sums, devices, ...attributes].join('\n');
};

describe('C17: unpacking in a locked-up child', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let workshop: Workshop;
  let source: string;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    workshop = await startWorkshop(owner);
    source = join(await tempDir(owner), 'source');
    await mkdir(source);
    await runOk(['sh', '-c', tree], { cwd: source });
    await writeXattr(join(source, 'plain/file'), 'user.note', Buffer.from('value'));
    await writeXattr(join(source, 'plain/deep'), 'user.dir', Buffer.from([0, 1, 2, 0xff]));
  });

  for (const format of ['posix', 'gnu']) {
    it(`makes the tree that GNU tar makes of the ${format} format`, async (t) => {
      const archive = join(await tempDir(t), 'layer.tar');
      const attributes = format === 'posix' ? ['--xattrs', '--xattrs-include=*'] : [];
      await runOk(['tar', '-C', source, `--format=${format}`, ...attributes, '--numeric-owner', '-cf', archive, '.']);
      const expected = await tempDir(t);
      await runOk(['tar', '-C', expected, ...attributes, '--numeric-owner', '-xpf', archive]);
      const [actual] = await workshop.unpack(await readFile(archive));
      assert.ok(actual);
      assert.equal(await describeTree(actual, format === 'posix'), await describeTree(expected, format === 'posix'));
    });
  }

  it('makes files with holes of all forms that GNU tar has for them', async (t) => {
    const holes = join(await tempDir(t), 'holes');
    await mkdir(holes);
    const script = `
truncate -s 100M hole; : > empty; truncate -s 5000 tail; printf start | dd of=tail conv=notrunc status=none
for i in $(seq 0 3 900); do printf "part $i" | dd of=parts bs=65536 seek=$i conv=notrunc status=none; done
n=$(printf 'n%.0s' $(seq 1 120)); cp --sparse=always parts "$n"; head -c 100000 /dev/urandom > dense`;
    await runOk(['sh', '-ec', script], { cwd: holes });
    const forms = ['gnu', 'posix --sparse-version=0.0', 'posix --sparse-version=0.1', 'posix --sparse-version=1.0'];
    for (const form of forms) {
      const archive = join(await tempDir(t), 'layer.tar');
      await runOk(['tar', '-C', holes, ...`--format=${form}`.split(' '), '--sparse', '-cf', archive, '.']);
      const [layer = ''] = await workshop.unpack(await readFile(archive));
      await runOk(['diff', '-r', holes, layer]);
      assert.equal((await lstat(join(layer, 'hole'))).blocks, 0, form);
      assert.ok((await lstat(join(layer, 'parts'))).blocks * 512 < 5_000_000, form);
    }
  });

  it('unpacks gzip and zstd, of one part or several, to the same', async () => {
    const plain = tar([{ path: 'f', data: 'x'.repeat(200_000) }]);
    const half = Math.floor(plain.length / 2);
    const parts = [plain.subarray(0, half), plain.subarray(half)];
    for (const [index, blob] of [
      gzipSync(plain),
      zstdCompressSync(plain),
      Buffer.concat(parts.map((part) => gzipSync(part))),
      Buffer.concat(parts.map((part) => zstdCompressSync(part))),
    ].entries()) {
      // A base of its own makes another chain of it, which is unpacked anew.
      const base = tar([{ path: `base-${index}` }]);
      const [, top] = await workshop.unpack(base, { blob, tar: plain });
      assert.equal((await readFile(join(top ?? '', 'f'))).length, 200_000);
    }
  });

  it('unpacks zstd of windows up to 512 MiB, as containerd does', async () => {
    const plain = tar([{ path: 'f', data: 'x'.repeat(200_000) }]);
    const packed = async (windowLog: number): Promise<Buffer> => {
      const encoder = createZstdCompress({ params: { [constants.ZSTD_c_windowLog]: windowLog } });
      // Of a stream whose length is not known the window is as large as it is said to be.
      encoder.write(plain.subarray(0, 1024));
      encoder.end(plain.subarray(1024));
      return Buffer.concat(await Array.fromAsync(encoder as AsyncIterable<Buffer>));
    };
    const roomy = await startWorkshop(owner, { unpackMemoryBytesMax: 2 * 1024 ** 3 });
    for (const [place, windowLog] of [
      [workshop, 28],
      [roomy, 29],
    ] as const) {
      const [layer = ''] = await place.unpack({ blob: await packed(windowLog), tar: plain });
      assert.equal((await readFile(join(layer, 'f'))).length, 200_000);
    }
    const base = tar([{ path: 'base' }]);
    const refused = async (place: Workshop, windowLog: number, message: RegExp): Promise<void> =>
      await assert.rejects(
        place.unpack(base, { blob: await packed(windowLog), tar: plain }),
        withReason('ImageInvalid', message),
      );
    await refused(workshop, 29, /unpack_memory_max/);
    await refused(roomy, 30, /too much memory/);
  });

  it('turns whiteouts and opaque directories into overlayfs’ own', async () => {
    const [layer = ''] = await workshop.unpack(
      tar([
        { path: 'etc/', flag: '5' },
        { path: 'etc/.wh.gone' },
        { path: 'opaque/', flag: '5' },
        { path: 'opaque/.wh..wh..opq' },
        { path: 'opaque/own', data: 'own' },
        { path: 'undescribed/.wh..wh..opq' },
        { path: 'both/', flag: '5' },
        { path: 'both/kept', data: 'new' },
        { path: 'both/.wh.kept' },
        { path: 'both/.wh.later' },
        { path: 'both/later', data: 'new' },
        { path: 'both/dir/', flag: '5' },
        { path: 'both/.wh.dir' },
        { path: 'both/.wh.later-dir' },
        { path: 'both/later-dir/', flag: '5' },
        { path: 'both/.wh.through' },
        { path: 'both/through/file', data: 'new' },
        { path: '.wh..wh.plnk', data: 'aufs' },
        { path: '.wh..wh.aufs', data: 'aufs' },
      ]),
    );
    const isWhiteout = async (path: string): Promise<boolean> => {
      const stats = await lstat(join(layer, path));
      return stats.isCharacterDevice() && stats.rdev === 0;
    };
    const isOpaque = async (path: string): Promise<boolean> =>
      Buffer.from((await readXattr(join(layer, path), 'trusted.overlay.opaque')) ?? []).toString() === 'y';
    assert.equal(await isWhiteout('etc/gone'), true);
    assert.equal(await isOpaque('etc'), false);
    assert.equal(await isOpaque('opaque'), true);
    assert.equal(await isOpaque('undescribed'), true);
    assert.deepEqual((await readdir(join(layer, 'opaque'))).toSorted(), ['own']);
    // What the layer itself has stays, and still hides what lower layers have under its name.
    assert.equal(await readFile(join(layer, 'both/kept'), 'utf8'), 'new');
    assert.equal(await readFile(join(layer, 'both/later'), 'utf8'), 'new');
    assert.equal(await isOpaque('both/dir'), true);
    assert.equal(await isOpaque('both/later-dir'), true);
    assert.equal(await isOpaque('both/through'), true);
    assert.equal(await readFile(join(layer, 'both/through/file'), 'utf8'), 'new');
    assert.deepEqual((await readdir(layer)).toSorted(), ['both', 'etc', 'opaque', 'undescribed']);
  });

  it('takes layers away, but those that somebody counts on', async () => {
    const { unpacker, unpack } = workshop;
    const layers = ['lower', 'upper', 'top'].map((data) => tar([{ path: 'held', data }]));
    const digests = layers.map(sha256);
    const chainIds = chainIdsOf(digests);
    const directories = await unpack(...layers);
    const [, digest = ''] = digests;
    const [lowest = '', chainId = '', top = ''] = chainIds;
    const release = unpacker.hold([{ digest, diffId: digest, chainId, sizeBytes: 1 }]);
    const take = async (kept?: string): Promise<readonly string[]> =>
      (await unpacker.takeAway(chainIds, (id) => id === kept)).map((taken) => taken.chainId);
    assert.deepEqual(await take(top), [lowest]);
    assert.deepEqual(await take(), [top]);
    release();
    assert.deepEqual(await take(), [chainId]);
    for (const path of directories) await assert.rejects(lstat(path), { code: 'ENOENT' });
  });

  it('takes a file for the directory with all in it that the layer had under its name before', async () => {
    const deep = 'd/'.repeat(2_000);
    const [layer = ''] = await workshop.unpack(
      tar([
        { path: 'd/', flag: '5', mode: 0o700 },
        { path: 'd/\xff\xfe/', flag: '5', mode: 0 },
        { path: 'd/\xff\xfe/f', data: 'x' },
        { path: 'd/.wh.w' },
        { path: 'd/out', flag: '2', linkPath: '/kept' },
        { path: 'd/implied/.wh..wh..opq' },
        { path: 'x', pax: { path: `${deep}f` } },
        { path: 'kept/', flag: '5' },
        { path: 'kept/f', data: 'kept' },
        { path: 'kept/hard', flag: '1', linkPath: 'd/\xff\xfe/f' },
        { path: 'way', flag: '2', linkPath: 'd' },
        { path: 'way/f', data: 'x' },
        { path: 'd', data: 'file' },
        { path: 'e/inner', data: 'x' },
        { path: 'e', flag: '2', linkPath: 'kept' },
        { path: 'e/more', data: 'through' },
        { path: 'f/inner', data: 'x' },
        { path: 'f', data: 'x' },
        { path: 'f/', flag: '5', mode: 0o750 },
        { path: 'f/again', data: 'again' },
      ]),
    );
    assert.equal(await readFile(join(layer, 'd'), 'utf8'), 'file');
    assert.equal(await readFile(join(layer, 'kept/f'), 'utf8'), 'kept');
    assert.equal(await readFile(join(layer, 'kept/hard'), 'utf8'), 'x');
    assert.equal(await readlink(join(layer, 'e')), 'kept');
    assert.equal(await readFile(join(layer, 'kept/more'), 'utf8'), 'through');
    assert.deepEqual(await readdir(join(layer, 'f')), ['again']);
    assert.equal((await lstat(join(layer, 'f'))).mode & 0o7777, 0o750);
    assert.deepEqual((await readdir(layer)).toSorted(), ['d', 'e', 'f', 'kept', 'way']);
  });

  it('takes the last of several members of one name', async () => {
    const [layer = ''] = await workshop.unpack(
      tar([
        { path: 'a', data: 'first', mode: 0o600 },
        { path: './a', data: 'second', mode: 0o640 },
        { path: 'd/', flag: '5', mode: 0o700 },
        { path: 'd/', flag: '5', mode: 0o711 },
        { path: 'e/', flag: '5' },
        { path: 'e', flag: '2', linkPath: 'd' },
        { path: 'f', flag: '2', linkPath: 'd' },
        { path: 'f/', flag: '5', mode: 0o701 },
        { path: 'f/inner', data: 'x' },
        { path: 'g', data: 'x' },
        { path: 'g', flag: '1', linkPath: 'a' },
      ]),
    );
    assert.equal(await readFile(join(layer, 'a'), 'utf8'), 'second');
    assert.equal((await lstat(join(layer, 'd'))).mode & 0o7777, 0o711);
    assert.equal(await readlink(join(layer, 'e')), 'd');
    assert.ok((await lstat(join(layer, 'f'))).isDirectory());
    assert.deepEqual(await readdir(join(layer, 'd')), []);
    assert.equal((await lstat(join(layer, 'g'))).ino, (await lstat(join(layer, 'a'))).ino);
  });

  it('keeps of the attributes those an image may have', async () => {
    const capability = Buffer.from('0100000200040000000000000000000000000000', 'hex');
    const [layer = ''] = await workshop.unpack(
      tar([
        {
          path: 'ping',
          mode: 0o755,
          uid: 7,
          pax: {
            'SCHILY.xattr.security.capability': capability,
            'SCHILY.xattr.user.mine': 'yes',
            'SCHILY.xattr.trusted.overlay.redirect': '/etc',
            'SCHILY.xattr.trusted.overlay.opaque': 'y',
            'SCHILY.xattr.user.overlay.opaque': 'y',
            'SCHILY.xattr.security.selinux': 'x',
          },
        },
        { path: 'link', flag: '2', linkPath: 'ping', pax: { 'SCHILY.xattr.user.mine': 'yes' } },
      ]),
    );
    const path = join(layer, 'ping');
    assert.deepEqual(Buffer.from((await readXattr(path, 'security.capability')) ?? []), capability);
    assert.equal(Buffer.from((await readXattr(path, 'user.mine')) ?? []).toString(), 'yes');
    for (const name of [
      'trusted.overlay.redirect',
      'trusted.overlay.opaque',
      'user.overlay.opaque',
      'security.selinux',
    ]) {
      assert.equal(await readXattr(path, name), null, name);
    }
  });

  it('unpacks a layer once, whoever asks', async (t) => {
    const own = await startWorkshop(t);
    const layer = tar([{ path: 'f', data: 'x'.repeat(100_000) }]);
    const [first, second] = await Promise.all([own.unpack(layer), own.unpack(layer)]);
    assert.deepEqual(first, second);
    await own.unpack(layer);
    assert.equal(own.snapshots.length, 1);
    assert.deepEqual([own.snapshots[0]?.inodesUsed, own.snapshots[0]?.usedBytes], [1, 102_400]);
    assert.deepEqual(await readdir(own.layout.unpack), []);
  });

  it('replaces a layer whose note a crash has damaged', async (t) => {
    const own = await startWorkshop(t);
    const layer = tar([{ path: 'f', data: 'x' }]);
    const [path = ''] = await own.unpack(layer);
    await writeFile(join(path, '..', 'info.json'), '');
    await own.unpack(layer);
    assert.equal(own.snapshots.length, 2);
    assert.equal(await readFile(join(path, 'f'), 'utf8'), 'x');
  });
});
