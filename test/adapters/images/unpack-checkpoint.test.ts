/** Unpacking checkpoints: a container's changes come back as overlayfs has them, and archives do no harm. Needs root. */
import assert from 'node:assert/strict';
import { lstat, mkdir, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, it } from 'node:test';
import { sha256Of } from '../../../src/adapters/images/chain-ids.ts';
import { imageLayout } from '../../../src/adapters/images/layout.ts';
import { createTrees } from '../../../src/adapters/images/trees/trees.ts';
import { defaultImageLimits } from '../../../src/adapters/images/types.ts';
import { createHomes } from '../../../src/adapters/images/unpack/home.ts';
import { createUnpackerProcesses } from '../../../src/adapters/images/unpack/processes.ts';
import { createTurns } from '../../../src/adapters/images/unpack/turns.ts';
import { createCheckpointArchives } from '../../../src/adapters/images/unpack/checkpoint.ts';
import { readXattr, writeXattr } from '../../../src/platform/linux/syscalls.ts';
import { startSpawner } from '../../../src/platform/spawner/client.ts';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { failureOf } from '../../support/images/store.ts';
import { tar, type TarMember } from '../../support/images/tar.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

const containerId = 'c';
const images = { path: 'checkpoint/pages-1.img', data: 'pages' };

describe('C17: checkpoints', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  const trees = createTrees();
  onCleanup(owner, () => trees.close());
  let spawner: Awaited<ReturnType<typeof startSpawner>>;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    spawner = await startSpawner({ lockPath: join(await tempDir(owner), 'lock'), startTimeoutMs: 10_000 });
    onCleanup(owner, () => spawner.close());
  });

  interface Place {
    readonly archive: string;
    readonly dir: string;
    /** The container's writable layer. */
    readonly layer: string;
    readonly unpack: () => Promise<void>;
    readonly readImage: () => Promise<unknown>;
  }

  const placeOf = async (entriesMax = 100): Promise<Place> => {
    const root = await tempDir(owner);
    const layout = imageLayout(root);
    const layer = join(layout.containers, containerId, 'fs');
    await mkdir(layer, { recursive: true });
    const limits = { ...defaultImageLimits, reservedBytes: 0, layerEntriesMax: entriesMax };
    const { unpack: unpackCheckpoint, readImage } = createCheckpointArchives({
      layout,
      processes: createUnpackerProcesses(spawner, limits, createHomes(layout, trees.remove)),
      limits,
      turns: createTurns(2),
      trees,
      trustedKeyPaths: [],
    });
    const archive = join(root, 'archive.tar');
    const dir = join(layout.containers, containerId, 'restore');
    /** The node has written whatever lies there. */
    const given = async () => {
      const isFile = (await lstat(archive)).isFile();
      return { path: archive, knownDigests: isFile ? [sha256Of(await readFile(archive))] : [] };
    };
    const { signal } = new AbortController();
    return {
      archive,
      dir,
      layer,
      unpack: async () => unpackCheckpoint(containerId, { ...(await given()), dir }, signal),
      readImage: async () => readImage(await given(), signal),
    };
  };

  const unpacked = async (members: readonly TarMember[]): Promise<Place> => {
    const place = await placeOf();
    await writeFile(place.archive, tar(members));
    await place.unpack();
    return place;
  };

  const refused = async (members: readonly TarMember[], message: RegExp): Promise<void> => {
    const place = await placeOf();
    await writeFile(place.archive, tar(members));
    const failure = await failureOf(place.unpack());
    assert.equal(failure.reason, 'InvalidField');
    assert.match(failure.message, message);
    assert.ok(failure.message.includes(place.archive), failure.message);
    assert.deepEqual(await readdir(join(place.dir, '..')), ['fs']);
  };

  it('keeps what overlayfs has written down of a container: what it hid, what it emptied, whose files they are', async () => {
    const upper = await tempDir(owner);
    const script = `
cd "$1" && echo new > new && chown 1000:2000 new && chmod 4750 new
mknod gone c 0 0 && ln gone gone-too && mkdir emptied
echo kept > .wh.kept && echo x > emptied/x && ln new emptied/linked`;
    await runOk(['sh', '-ec', script, 'sh', upper]);
    await writeXattr(join(upper, 'emptied'), 'trusted.overlay.opaque', Buffer.from('y'));
    const changesPath = join(await tempDir(owner), 'changes.tar');
    const options = ['--create', '--numeric-owner', '--xattrs', '--xattrs-include=*'];
    await runOk(['tar', ...options, '--file', changesPath, '--directory', upper, '.']);
    const place = await placeOf();
    const changes = await readFile(changesPath);
    await writeFile(place.archive, tar([images, { path: 'rootfs-diff.tar', data: changes }]));
    await place.unpack();
    const names = ['.wh.kept', 'emptied', 'gone', 'gone-too', 'new'];
    assert.deepEqual((await readdir(place.layer)).toSorted(), names);
    for (const name of ['gone', 'gone-too']) {
      const stats = await lstat(join(place.layer, name));
      assert.ok(stats.isCharacterDevice() && stats.rdev === 0, name);
    }
    const { uid, gid, mode, ino } = await lstat(join(place.layer, 'new'));
    assert.deepEqual([uid, gid, mode & 0o7777], [1000, 2000, 0o4750]);
    assert.equal((await lstat(join(place.layer, 'emptied/linked'))).ino, ino);
    const opaque = await readXattr(join(place.layer, 'emptied'), 'trusted.overlay.opaque');
    assert.equal(Buffer.from(opaque ?? []).toString(), 'y');
    assert.deepEqual(await readdir(place.dir), ['checkpoint']);
    // Once more, as after a crash.
    await place.unpack();
    assert.deepEqual((await readdir(place.layer)).toSorted(), names);
  });

  it('keeps holes', async () => {
    const upper = await tempDir(owner);
    const script = `
cd "$1" && truncate -s 1G hole && : > empty && truncate -s 5000 tail && printf start | dd of=tail conv=notrunc status=none
for i in $(seq 0 3 900); do printf "part $i" | dd of=parts bs=65536 seek=$i conv=notrunc status=none; done
truncate -s 60M parts && head -c 100000 /dev/urandom > dense`;
    await runOk(['sh', '-ec', script, 'sh', upper]);
    const changesPath = join(await tempDir(owner), 'changes.tar');
    const options = ['--create', '--numeric-owner', '--xattrs', '--sparse'];
    await runOk(['tar', ...options, '--file', changesPath, '--directory', upper, '.']);
    const changes = await readFile(changesPath);
    assert.ok(changes.length < 5_000_000);
    const { layer } = await unpacked([images, { path: 'rootfs-diff.tar', data: changes }]);
    await runOk(['diff', '-r', upper, layer]);
    assert.equal((await lstat(join(layer, 'hole'))).blocks, 0);
    assert.ok((await lstat(join(layer, 'parts'))).blocks * 512 < 5_000_000);
  });

  it("keeps CRIU's images for root alone, whatever the archive says of them", async () => {
    const odd = { ...images, mode: 0o6777, uid: 1000, gid: 1000, pax: { 'SCHILY.xattr.user.a': 'b' } };
    const { dir } = await unpacked([odd]);
    const { mode, uid, gid } = await lstat(join(dir, images.path));
    assert.deepEqual([mode & 0o7777, uid, gid], [0o600, 0, 0]);
    assert.equal((await lstat(join(dir, 'checkpoint'))).mode & 0o022, 0);
    assert.equal((await lstat(dir)).mode & 0o077, 0);
  });

  it('refuses what is no checkpoint, or is one that was made to do harm', async () => {
    const changes = (...members: readonly TarMember[]): TarMember[] => [
      images,
      { path: 'rootfs-diff.tar', data: tar(members) },
    ];
    await refused([{ path: 'config.dump', data: '{}' }], /holds no processes/);
    await refused([images, { path: 'checkpoint/l', flag: '2', linkPath: '/etc/passwd' }], /neither a file nor a dir/);
    await refused([images, { path: 'checkpoint/l', flag: '1', linkPath: images.path }], /neither a file nor a dir/);
    await refused([images, { path: 'checkpoint/d', flag: '4', major: 8 }], /neither a file nor a directory/);
    await refused([images, { path: 'checkpoint/p', flag: '6' }], /neither a file nor a directory/);
    await refused([images, { path: 'checkpoint/../../x' }], /leads out of/);
    await refused(changes({ path: '../x' }), /leads out of/);
    const renamed = { path: 'd/', flag: '5', pax: { 'SCHILY.xattr.trusted.overlay.redirect': '/etc' } };
    await refused(changes(renamed), /renamed in a way/);
    const sparse = (map: string, sizeBytes = 10, version = '1'): TarMember[] =>
      changes({
        path: 'x',
        data: Buffer.concat([Buffer.alloc(512, `${map}\n`, 'latin1').fill(0, map.length + 1), Buffer.from('data')]),
        pax: {
          ...{ 'GNU.sparse.major': version, 'GNU.sparse.minor': '0', 'GNU.sparse.name': '../escaped' },
          'GNU.sparse.realsize': String(sizeBytes),
        },
      });
    await refused(sparse('1\n0\n4'), /leads out of/);
    await refused(sparse('1\n0\n4', 2 ** 40), /more than .* bytes/);
    await refused(sparse('1\n0\n4', 10, '0'), /sparse/);
    const many = Array.from({ length: 200 }, (_, index) => ({ path: `checkpoint/${index}`, data: '' }));
    await refused(many, /more than 100 files/);
  });

  it('says what image an archive is of, having unpacked nothing else', async () => {
    const imageId = `sha256:${'a'.repeat(64)}`;
    const description = { rootfsImageName: 'app:1', rootfsImageRef: imageId };
    const wellSaid = { path: './config.dump', data: JSON.stringify(description) };
    const place = await placeOf();
    const unpackRoot = join(place.archive, '../images/unpack');
    await writeFile(place.archive, tar([images, { path: 'l', data: 'x' }, wellSaid]));
    assert.deepEqual(await place.readImage(), { imageName: 'app:1', imageId });
    assert.deepEqual(await readdir(unpackRoot), []);
    const bad: readonly (readonly [readonly TarMember[], RegExp])[] = [
      [[images], /does not say what it is of/],
      [[{ path: 'config.dump', data: ' '.repeat(70_000) }], /does not say what it is of/],
      [[{ path: 'config.dump', flag: '2', linkPath: '/etc/passwd' }], /neither a file nor a directory/],
      [[{ path: 'config.dump', data: '{' }], /not JSON/],
      [[{ path: 'config.dump', data: JSON.stringify({ ...description, more: 1 }) }], /"more" that is not known/],
      [[{ path: 'config.dump', data: JSON.stringify({ ...description, rootfsImageRef: '../x' }) }], /the id of an/],
    ];
    for (const [members, message] of bad) {
      await writeFile(place.archive, tar(members));
      const failure = await failureOf(place.readImage());
      assert.equal(failure.reason, 'InvalidField');
      assert.match(failure.message, message);
      assert.deepEqual(await readdir(unpackRoot), []);
    }
  });

  it('follows no link that stands where the archive should be', async () => {
    const place = await placeOf();
    await writeFile(`${place.archive}.real`, tar([images]));
    await symlink(`${place.archive}.real`, place.archive);
    assert.match((await failureOf(place.unpack())).message, /cannot be opened/);
    assert.deepEqual(await readdir(join(place.dir, '..')), ['fs']);
    const pipe = await placeOf();
    await runOk(['mkfifo', pipe.archive]);
    assert.match((await failureOf(pipe.unpack())).message, /not a regular file/);
  });
});
