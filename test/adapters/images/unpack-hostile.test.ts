/** Unpacking layers that were made to do harm: they do none, and what can't be right is refused. Needs root. */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { constants } from 'node:fs';
import { type FileHandle, lstat, mkdir, open, readdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { chainIdsOf } from '../../../src/adapters/images/chain-ids.ts';
import { blobPath, layerDir } from '../../../src/adapters/images/layout.ts';
import type { ImageLimits } from '../../../src/adapters/images/types.ts';
import { type Failure, FailureError } from '../../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../../support/cleanup.ts';
import { sha256 } from '../../support/images/build.ts';
import { failureOf } from '../../support/images/store.ts';
import { type TarMember, tar, tarHeader } from '../../support/images/tar.ts';
import { startWorkshop, type Workshop } from '../../support/images/unpacking.ts';
import { eventually } from '../../support/pods.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** The pid of the other process that has the file open: what it is to unpack, it is told on its input. */
const whoHas = async (path: string): Promise<string> => {
  const { dev, ino } = await stat(path);
  const isThat = async (open: string): Promise<boolean> => {
    const found = await stat(open).catch(() => null);
    return found?.ino === ino && found.dev === dev;
  };
  for (const deadline = Date.now() + 30_000; Date.now() < deadline; await sleep(5))
    for (const pid of (await readdir('/proc')).filter((name) => /^\d+$/.test(name) && name !== `${process.pid}`)) {
      const fds = await readdir(`/proc/${pid}/fd`).catch(() => []);
      for (const fd of fds) if (await isThat(`/proc/${pid}/fd/${fd}`)) return pid;
    }
  return assert.fail(`no other process has ${path} open`);
};

/** A pipe that another process reads, or is about to: opening one that nobody reads would wait without an end. */
const openForReader = (path: string): Promise<FileHandle> => {
  const { O_WRONLY, O_NONBLOCK } = constants;
  return eventually(`${path} has a reader`, () => open(path, O_WRONLY | O_NONBLOCK).catch(() => false), 20_000);
};

const isLayerName = (name: string): boolean => /^[0-9a-f-]{36}$/.test(name);

describe('C17: hostile layers', { timeout: 60_000 }, () => {
  const owner = cleanupAfterAll();
  let workshop: Workshop;
  /** A directory beside the image store that no layer may touch. */
  let outside: string;
  let canary: string;

  before(async () => {
    assert.equal(process.getuid?.(), 0, 'unpacking needs root');
    workshop = await startWorkshop(owner);
    outside = await tempDir(owner);
    canary = join(outside, 'canary');
  });

  beforeEach(async () => {
    await writeFile(canary, 'untouched', { mode: 0o600 });
  });

  const checkOutside = async (): Promise<void> => {
    assert.deepEqual(await readdir(outside), ['canary']);
    assert.equal(await readFile(canary, 'utf8'), 'untouched');
    const { mode, uid, nlink } = await lstat(canary);
    assert.deepEqual([mode & 0o7777, uid, nlink], [0o600, 0, 1]);
  };

  const unpacked = async (members: readonly TarMember[]): Promise<string> => {
    const [layer = ''] = await workshop.unpack(tar(members));
    await checkOutside();
    return layer;
  };

  const refused = async (
    layer: readonly TarMember[] | Buffer,
    pattern: RegExp,
    limits?: Partial<ImageLimits>,
  ): Promise<Failure> => {
    const owned = limits === undefined ? workshop : await startWorkshop(owner, limits);
    const failure = await failureOf(owned.unpack(Buffer.isBuffer(layer) ? layer : tar(layer)));
    assert.match(failure.message, pattern);
    await checkOutside();
    // Nothing is taken for whole, and nothing is left behind.
    assert.deepEqual(await readdir(owned.layout.unpack), []);
    return failure;
  };

  it('refuses names that lead out', async () => {
    for (const path of ['../escape', 'a/../../escape', 'a/..', '..', '/../x', './../x']) {
      const failure = await refused([{ path, data: 'x' }], /leads out of the image/);
      assert.equal(failure.reason, 'ImageInvalid');
    }
    await refused([{ path: 'x', flag: '1', linkPath: '../../canary' }], /leads out of the image/);
    await refused([{ path: 'a/.wh...', data: '' }], /whiteout of no file/);
    await refused([{ path: 'a/.wh.', data: '' }], /whiteout of no file/);
  });

  it('takes absolute names from the root of the layer', async () => {
    const layer = await unpacked([{ path: join(outside, 'file'), data: 'x' }]);
    assert.equal(await readFile(join(layer, outside, 'file'), 'utf8'), 'x');
  });

  it('follows symbolic links inside the layer only', async () => {
    const layer = await unpacked([
      { path: 'absolute', flag: '2', linkPath: outside },
      { path: 'absolute/made', data: 'x' },
      { path: 'upwards', flag: '2', linkPath: `${'../'.repeat(9)}${outside.slice(1)}` },
      { path: 'upwards/made-too', data: 'x' },
      { path: 'one', flag: '2', linkPath: 'two' },
      { path: 'two', flag: '2', linkPath: outside },
      { path: 'one/canary', data: 'replaced', mode: 0o777 },
    ]);
    assert.deepEqual((await readdir(join(layer, outside))).toSorted(), ['canary', 'made', 'made-too']);
  });

  it('replaces links instead of writing through them', async () => {
    const layer = await unpacked([
      { path: 'link', flag: '2', linkPath: canary },
      { path: 'link', data: 'a file now', mode: 0o777, uid: 5 },
      { path: 'directory', flag: '2', linkPath: outside },
      { path: 'directory/', flag: '5', mode: 0o777, uid: 5 },
      { path: 'pipe', flag: '6' },
      { path: 'pipe', data: 'not waiting for a reader' },
      { path: 'zero', flag: '3', major: 1, minor: 5 },
      { path: 'zero', data: 'not written to the device' },
    ]);
    assert.equal(await readFile(join(layer, 'link'), 'utf8'), 'a file now');
    assert.ok((await lstat(join(layer, 'directory'))).isDirectory());
    assert.equal(await readFile(join(layer, 'zero'), 'utf8'), 'not written to the device');
  });

  it('links to files of the same layer only, and changes nothing through links', async () => {
    const notThere = /leads to no file of the same layer/;
    await refused([{ path: 'x', flag: '1', linkPath: '/etc/passwd' }], notThere);
    await refused(
      [
        { path: 'd', flag: '2', linkPath: '/etc' },
        { path: 'x', flag: '1', linkPath: 'd/passwd' },
      ],
      notThere,
    );
    await refused(
      [
        { path: 'd/', flag: '5' },
        { path: 'x', flag: '1', linkPath: 'd' },
      ],
      notThere,
    );
    await refused([{ path: '.wh.w' }, { path: 'x', flag: '1', linkPath: 'w' }], notThere);
    await refused([{ path: 'd/x' }, { path: 'd', flag: '1', linkPath: 'd/x' }], notThere);
    await refused([{ path: '.wh.w' }, { path: 'x', flag: '1', linkPath: '.wh.w' }], notThere);
    const layer = await unpacked([
      { path: 'link', flag: '2', linkPath: canary },
      { path: 'hard', flag: '1', linkPath: 'link', mode: 0o777, uid: 9, gid: 9, mtime: 1 },
    ]);
    assert.equal(await readlink(join(layer, 'hard')), canary);
  });

  it('makes devices and FIFOs without opening them', async () => {
    const layer = await unpacked([
      { path: 'disk', flag: '4', major: 8, minor: 0, mode: 0o666 },
      { path: 'kmem', flag: '3', major: 1, minor: 2, mode: 0o666 },
      { path: 'fifo', flag: '6', mode: 0o666 },
    ]);
    assert.ok((await lstat(join(layer, 'disk'))).isBlockDevice());
    assert.ok((await lstat(join(layer, 'fifo'))).isFIFO());
  });

  it('refuses loops, files used as directories and a root that is none', async () => {
    const loop = [{ path: 'a', flag: '2', linkPath: 'b' }, { path: 'b', flag: '2', linkPath: 'a' }, { path: 'a/x' }];
    await refused(loop, /too many symbolic links/);
    await refused([{ path: 'f' }, { path: 'f/x' }], /used as a directory and is none/);
    await refused([{ path: './', flag: '2', linkPath: '/etc' }], /root is not a directory/);
    await refused([{ path: `${'n'.repeat(256)}/x`, pax: { path: `${'n'.repeat(256)}/x` } }], /no file can be called/);
    await refused([{ path: 'l', flag: '2' }], /is empty/);
    const through = [
      { path: 'l', flag: '2', linkPath: 'n'.repeat(300), pax: { linkpath: 'n'.repeat(300) } },
      { path: 'l/x' },
    ];
    assert.equal((await refused(through, /./)).reason, 'ImageInvalid');
  });

  it('refuses owners beyond 32 bits', async () => {
    for (const owners of [{ uid: 4294967295 }, { gid: 4294967296 }, { uid: 2 ** 40 }]) {
      await refused([{ path: 'f', ...owners }], /beyond the range of user ids/);
    }
    await refused([{ path: 'f', pax: { uid: '4294967296' } }], /beyond the range of user ids/);
  });

  it('stops at the bounds on entries, bytes, memory, time and space', async () => {
    const many = Array.from({ length: 3000 }, (_, index) => ({ path: `f${index}` }));
    await refused(many, /more than 1000 files/, { layerEntriesMax: 1000 });
    await refused([{ path: 'big', data: Buffer.alloc(2_000_000) }], /more than 1000000 bytes/, {
      layerBytesMax: 1_000_000,
    });
    const lie = Buffer.concat([tarHeader({ path: 'big', size: 2 ** 40 }, 0), Buffer.alloc(4096)]);
    await refused(lie, /more than \d+ bytes/);
    await refused(many, /.*/, { unpackMemoryBytesMax: 1_000_000 });
    // Also where time is over before the process has been told what to do.
    for (const unpackTimeoutMs of [1, 3, 5, 10])
      await refused(many, /longer to unpack than is allowed/, { unpackTimeoutMs });
    const failure = await refused(many, /too full/, { reservedBytes: Number.MAX_SAFE_INTEGER });
    assert.equal(failure.reason, 'DiskFull');
  });

  it('has enough memory with the least that the configuration may leave it', async () => {
    const least = await startWorkshop(owner, { unpackMemoryBytesMax: 768 * 1024 ** 2 });
    const plain = tar([{ path: 'f', data: randomBytes(20_000_000) }]);
    for (const [index, blob] of [gzipSync(plain), zstdCompressSync(plain)].entries())
      assert.equal((await least.unpack(tar([{ path: `base-${index}` }]), { blob, tar: plain })).length, 2);
  });

  it('tells attributes that the file system has no room for from a full disk', async () => {
    const pax = { 'SCHILY.xattr.user.a': 'v'.repeat(60_000) };
    const outcome = await workshop.unpack(tar([{ path: 'f', pax }])).then(
      () => null,
      (error: unknown) => error,
    );
    // ext4 has some 4 KiB for all attributes of a file; others take as much.
    if (outcome !== null) {
      assert.ok(outcome instanceof FailureError);
      assert.equal(outcome.failure.reason, 'ImageInvalid');
      assert.match(
        outcome.failure.message,
        /"f" has an extended attribute \(user\.a, 60000 bytes\) that .* cannot hold/,
      );
    }
  });

  it('stops at what a small blob unpacks to', async () => {
    const bomb = Buffer.concat([tar([{ path: 'f' }]), Buffer.alloc(100 * 1024 * 1024)]);
    const own = await startWorkshop(owner, { layerBytesMax: 1_000_000, layerEntriesMax: 10 });
    const failure = await failureOf(own.unpack({ blob: gzipSync(bomb), tar: bomb }));
    assert.match(failure.message, /unpacks to more than 1000000 bytes/);
  });

  it('refuses a layer that is not the one the config names', async () => {
    const blob = tar([{ path: 'f', data: 'x' }]);
    const other = tar([{ path: 'g', data: 'x' }]);
    const failure = await failureOf(workshop.unpack({ blob, tar: other }));
    assert.match(failure.message, /config names/);
    assert.deepEqual(await readdir(workshop.layout.unpack), []);
    await refused(Buffer.from('no archive at all'), /ends in the middle/);
    await refused(Buffer.alloc(2000, 'x'), /checksum/);
  });

  it('fails for nobody else whose layer the config calls the same', async (t) => {
    const { layout, unpacker } = await startWorkshop(t);
    const [right, wrong] = [tar([{ path: 'f', data: 'right' }]), tar([{ path: 'f', data: 'wrong' }])];
    const diffId = sha256(right);
    const unpack = (blob: Buffer): Promise<void> => {
      const layer = { digest: sha256(blob), diffId, chainId: diffId, sizeBytes: blob.length };
      return unpacker.unpack({ layer, below: [], whole: null }, new AbortController().signal, () => undefined);
    };
    await mkdir(layout.blobs, { recursive: true });
    await writeFile(blobPath(layout, sha256(right)), right);
    await runOk(['mkfifo', '--mode=600', blobPath(layout, sha256(wrong))]);
    const refusedThere = failureOf(unpack(wrong));
    const pipe = await openForReader(blobPath(layout, sha256(wrong)));
    const unpacking = unpack(right);
    await pipe.write(wrong);
    await pipe.close();
    assert.match((await refusedThere).message, /config names/);
    await unpacking;
    assert.equal(await readFile(join(layerDir(layout, diffId), 'f'), 'utf8'), 'right');
  });

  it('runs in its own root and namespaces, each thread with few rights and no way to more', async (t) => {
    const own = await startWorkshop(t);
    const plain = tar([{ path: 'f', data: 'x' }]);
    const blob = blobPath(own.layout, sha256(plain));
    // A blob that is a pipe holds the child while it is looked at.
    await mkdir(own.layout.blobs, { recursive: true });
    await runOk(['mkfifo', blob]);
    const layer = { digest: sha256(plain), diffId: sha256(plain), chainId: sha256(plain), sizeBytes: plain.length };
    const unpacking = own.unpacker.unpack(
      { layer, below: [], whole: null },
      new AbortController().signal,
      () => undefined,
    );
    const pipe = await openForReader(blob);
    const pid = await whoHas(blob);
    const statusOf = (thread: string): Promise<string> => readFile(`/proc/${pid}/task/${thread}/status`, 'utf8');
    const fieldOf = (status: string, name: string): string =>
      new RegExp(`^${name}:\\s+(.*)$`, 'm').exec(status)?.[1] ?? '';
    const isLockedIn = async (): Promise<boolean> => fieldOf(await statusOf(pid), 'Seccomp') === '2';
    for (const deadline = Date.now() + 30_000; !(await isLockedIn()); await sleep(5))
      assert.ok(Date.now() < deadline, 'it is not jailed');
    // The threads that decompress begin with the first bytes.
    await pipe.write(plain.subarray(0, 512));

    assert.equal(await readFile(`/proc/${pid}/root/f`, 'utf8').catch(() => 'not yet'), 'not yet');
    const inRoot = await readdir(`/proc/${pid}/root`, { recursive: true });
    // The layer's file may be there by now.
    const ofLayer = inRoot.filter((name) => isLayerName(name.replace(/\/f$/, '')));
    assert.deepEqual(
      inRoot.filter((name) => !ofLayer.includes(name)),
      ['in', 'in/archive'],
    );
    assert.equal(ofLayer.filter(isLayerName).length, 1);
    const mounts = (await readFile(`/proc/${pid}/mountinfo`, 'utf8')).trim().split('\n');
    assert.equal(mounts.length, 2, 'nothing of the node is mounted there');
    assert.match(mounts[0] ?? '', / \/ rw,nosuid,nodev,noexec/);
    assert.match(mounts[1] ?? '', / \/in ro,nosuid,nodev,noexec/);
    for (const kind of ['mnt', 'net', 'pid']) {
      const [theirs, ours] = await Promise.all([
        readlink(`/proc/${pid}/ns/${kind}`),
        readlink(`/proc/self/ns/${kind}`),
      ]);
      assert.notEqual(theirs, ours, `it shares the ${kind} namespace`);
    }
    // chown, dac_override, fowner, fsetid, mknod, setfcap
    const kept = (1n << 0n) | (1n << 1n) | (1n << 3n) | (1n << 4n) | (1n << 27n) | (1n << 31n);
    const threads = await readdir(`/proc/${pid}/task`);
    assert.ok(threads.length > 1);
    for (const status of await Promise.all(threads.map(statusOf))) {
      const capabilities = ['CapEff', 'CapPrm', 'CapBnd', 'CapInh', 'CapAmb'].map((name) =>
        BigInt(`0x${fieldOf(status, name)}`),
      );
      assert.deepEqual(capabilities, [kept, kept, kept, 0n, 0n], fieldOf(status, 'Name'));
      assert.deepEqual([fieldOf(status, 'NoNewPrivs'), fieldOf(status, 'Seccomp')], ['1', '2']);
    }
    const limits = await readFile(`/proc/${pid}/limits`, 'utf8');
    assert.match(limits, /Max core file size\s+0\s+0/);
    assert.match(limits, /Max open files\s+64\s+64/);
    await pipe.write(plain.subarray(512));
    await pipe.close();
    await unpacking;
  });

  it('reaches nothing of the layer below that its process has unpacked, and cannot change what it reads', async (t) => {
    const { layout, unpacker } = await startWorkshop(t, {}, 1);
    const [lower, upper] = [tar([{ path: 'below', data: 'x' }]), tar([{ path: 'above', data: 'x' }])];
    const chainIds = chainIdsOf([sha256(lower), sha256(upper)]);
    await mkdir(layout.blobs, { recursive: true });
    const pipes = [lower, upper].map((plain) => blobPath(layout, sha256(plain)));
    for (const path of pipes) await runOk(['mkfifo', '--mode=600', path]);
    const unpack = (plain: Buffer, index: number): Promise<void> => {
      const digest = sha256(plain);
      const layer = { digest, diffId: digest, chainId: chainIds[index] ?? '', sizeBytes: plain.length };
      const wanted = { layer, below: chainIds.slice(0, index), whole: null };
      return unpacker.unpack(wanted, new AbortController().signal, () => undefined);
    };
    const pids: string[] = [];
    // Of two that ask at once either may be first: the one above is asked for when the one below is being read.
    const unpacking = [unpack(lower, 0)];
    for (const [index, path] of pipes.entries()) {
      const pipe = await openForReader(path);
      if (index === 0) unpacking.push(unpack(upper, 1));
      pids.push(await whoHas(path));
      const fds = await readdir(`/proc/${pids[0]}/fd`);
      const open = await Promise.all(fds.map((fd) => readlink(`/proc/${pids[0]}/fd/${fd}`)));
      assert.deepEqual(
        open.filter((target) => target.startsWith('/') && target !== '/null'),
        ['/in/archive'],
        'it reads what it could change, or more than it should',
      );
      if (index === 1) {
        const root = `/proc/${pids[0]}/root`;
        const inRoot = await readdir(root, { recursive: true });
        assert.deepEqual(new Set(inRoot.filter((name) => !isLayerName(name))), new Set(['in', 'in/archive']));
        assert.equal(inRoot.length, 3, 'the layer below is still there');
        const place = `/${inRoot.find(isLayerName)}`;
        const cwd = `/proc/${pids[0]}/cwd`;
        await eventually('it has left the layer below', async () => (await readlink(cwd)) === place);
        const mounts = await readFile(`/proc/${pids[0]}/mountinfo`, 'utf8');
        assert.match(mounts, / \/in ro,nosuid,nodev,noexec/);
      }
      await pipe.write(index === 0 ? lower : upper);
      await pipe.close();
    }
    await Promise.all(unpacking);
    assert.equal(pids[0], pids[1], 'the layer above had a process of its own');
    assert.deepEqual(await Promise.all(chainIds.map((chainId) => readdir(layerDir(layout, chainId)))), [
      ['below'],
      ['above'],
    ]);
    assert.deepEqual(await readdir(layout.unpack), []);
  });
});
