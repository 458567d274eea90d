/** Counting writable layers in the background, on real directories. */
import assert from 'node:assert/strict';
import { chmod, link, mkdir, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { createUsageCollector } from '../../../src/adapters/stats/usage-collector.ts';
import { measureTree } from '../../../src/adapters/stats/walk.ts';
import { onCleanup } from '../../support/cleanup.ts';
import { requireRoot } from '../../support/netns.ts';
import { eventually } from '../../support/pods.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { clock } from './support.ts';

const noPause = (): Promise<void> => Promise.resolve();

/** As du has it: bytes of allocated blocks, and inodes. */
const duOf = async (dir: string): Promise<{ readonly usedBytes: number; readonly inodesUsed: number }> => {
  const first = async (args: readonly string[]) =>
    Number((await runOk(['du', '-s', '-x', ...args, dir])).split('\t')[0]);
  return { usedBytes: await first(['--block-size=1']), inodesUsed: await first(['--inodes']) };
};

describe('counting a tree', () => {
  it('counts blocks and inodes as du does: links once, holes not, other file systems not', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    const tree = join(dir, 'tree');
    await mkdir(join(tree, 'a/b/c'), { recursive: true });
    for (let file = 0; file < 200; file += 1) await writeFile(join(tree, `a/file${file}`), 'x'.repeat(file * 100));
    await link(join(tree, 'a/file199'), join(tree, 'a/b/again'));
    await symlink('/', join(tree, 'a/root'));
    await runOk(['truncate', '--size=1G', join(tree, 'a/hole')]);
    await runOk(['mknod', join(tree, 'whiteout'), 'c', '0', '0']);
    await mkdir(join(tree, 'mounted'));
    await runOk(['mount', '-t', 'tmpfs', 'tmpfs', join(tree, 'mounted')]);
    onCleanup(t, async () => void (await runOk(['umount', join(tree, 'mounted')])));
    await writeFile(join(tree, 'mounted/file'), 'x'.repeat(100_000));
    assert.deepEqual(await measureTree(tree, noPause), { ...(await duOf(tree)), complete: true });
  });

  it('counts nothing where there is no directory', async (t) => {
    const dir = await tempDir(t);
    await symlink('/', join(dir, 'link'));
    await writeFile(join(dir, 'file'), '');
    for (const name of ['absent', 'link', 'file']) assert.equal(await measureTree(join(dir, name), noPause), null);
  });

  it('stays in the tree when directories are swapped for links while it walks', async (t) => {
    const dir = await tempDir(t);
    const outside = join(dir, 'outside');
    const tree = join(dir, 'tree');
    await mkdir(outside);
    for (let file = 0; file < 50; file += 1) await writeFile(join(outside, `file${file}`), '');
    for (let sub = 0; sub < 20; sub += 1) await mkdir(join(tree, `sub${sub}`), { recursive: true });
    let swapped = 0;
    const swap = async (): Promise<void> => {
      if (swapped >= 20) return;
      const path = join(tree, `sub${swapped}`);
      swapped += 1;
      await rename(path, `${path}-moved`);
      await symlink(outside, path);
    };
    const usage = await measureTree(tree, swap);
    assert.ok(swapped > 5);
    assert.equal(usage?.inodesUsed, 21);
    assert.equal(usage.complete, false);
  });

  it('holds little of a tree, however long its paths are', async (t) => {
    setFlagsFromString('--expose-gc');
    const collectGarbage = runInNewContext('gc') as () => void;
    const dir = await tempDir(t);
    const deep = join(dir, ...Array.from({ length: 15 }, () => 'x'.repeat(250)));
    await mkdir(deep, { recursive: true });
    await runOk(['sh', '-c', `cd ${deep} && seq 5000 | xargs mkdir`]);
    const heldBytes = (): number => {
      collectGarbage();
      return process.memoryUsage().heapUsed;
    };
    const before = heldBytes();
    let steps = 0;
    let mostBytes = 0;
    const usage = await measureTree(dir, async () => {
      steps += 1;
      // Nothing was entered yet of what the deepest directory holds.
      if (steps === 150) mostBytes = heldBytes();
    });
    assert.equal(usage?.inodesUsed, 5_016);
    assert.ok(mostBytes > 0 && mostBytes - before < 5_000_000, `${mostBytes - before} bytes are held`);
  });

  it('counts what lies deeper than a path can tell, and names of any bytes', async (t) => {
    const dir = await tempDir(t);
    onCleanup(t, async () => void (await runOk(['rm', '-rf', join(dir, 'x'.repeat(200))])));
    const script = `
      const { mkdirSync, writeFileSync } = require('node:fs');
      process.chdir(process.argv[1]);
      for (let depth = 0; depth < 60; depth += 1) {
        mkdirSync('x'.repeat(200));
        process.chdir('x'.repeat(200));
      }
      writeFileSync('hidden', Buffer.alloc(3 * 1024 * 1024));
      mkdirSync(Buffer.of(0xff, 0xfe));
      writeFileSync(Buffer.of(0xff, 0xfe, 0x2f, 0x61), Buffer.alloc(2 * 1024 * 1024));`;
    await runOk([process.execPath, '-e', script, dir]);
    assert.deepEqual(await measureTree(dir, noPause), { ...(await duOf(dir)), complete: true });
    assert.ok(((await measureTree(dir, noPause))?.usedBytes ?? 0) >= 5 * 1024 * 1024);
  });

  it('says when something cannot be read, and counts the rest', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    await chmod(dir, 0o755);
    await mkdir(join(dir, 'closed'), { mode: 0o700 });
    await mkdir(join(dir, 'listed'), { mode: 0o700 });
    await writeFile(join(dir, 'listed/file'), '');
    await chmod(join(dir, 'listed'), 0o744);
    await writeFile(join(dir, 'file'), 'x');
    process.seteuid?.(65534);
    try {
      // The directory, both in it and the file; not what is in the one that may be listed and not passed.
      const usage = await measureTree(dir, noPause);
      assert.deepEqual([usage?.inodesUsed, usage?.complete], [4, false]);
    } finally {
      process.seteuid?.(0);
    }
    assert.deepEqual((await measureTree(dir, noPause))?.complete, true);
  });

  it('waits after every step, and ends when told to', async (t) => {
    const dir = await tempDir(t);
    for (let file = 0; file < 100; file += 1) await writeFile(join(dir, `file${file}`), '');
    let steps = 0;
    const stop = (): Promise<void> => {
      steps += 1;
      return steps === 2 ? Promise.reject(new Error('enough')) : Promise.resolve();
    };
    await assert.rejects(measureTree(dir, stop), /enough/);
  });
});

describe('the usage collector', () => {
  it('counts nothing until it is asked, then what it was told of, and has a count for the first who asks', async (t) => {
    const dir = await tempDir(t);
    const reports: string[] = [];
    const collector = createUsageCollector({ clock, mountpoint: dir, report: (message) => reports.push(message) });
    onCleanup(t, collector.close);
    const upper = join(dir, 'upper');
    await mkdir(upper);
    await writeFile(join(upper, 'file'), 'x'.repeat(10_000));
    collector.watch('here', [upper]);
    collector.watch('absent', [join(dir, 'absent')]);
    await sleep(50);
    assert.equal(collector.usageOf('here'), undefined);
    await collector.counted();
    const usage = collector.usageOf('here') ?? assert.fail('there is a count');
    const { usedBytes, inodesUsed } = await duOf(upper);
    assert.deepEqual(usage, {
      timestamp: usage.timestamp,
      fsId: { mountpoint: dir },
      usedBytes: { value: String(usedBytes) },
      inodesUsed: { value: String(inodesUsed) },
    });
    assert.ok(Math.abs(Number(usage.timestamp) / 1e6 - Date.now()) < 5000);
    assert.equal(collector.usageOf('absent'), undefined);
    const total = { timestamp: usage.timestamp, usedBytes: BigInt(usedBytes), inodesUsed: BigInt(inodesUsed) };
    assert.deepEqual(collector.total(), total);
    collector.forget('here');
    assert.equal(collector.usageOf('here'), undefined);
    collector.watch('later', [upper]);
    await eventually('a count of one that comes while somebody asks', () =>
      Promise.resolve(collector.usageOf('later')),
    );
    collector.forget('later');
    assert.deepEqual([collector.total().usedBytes, collector.total().inodesUsed], [0n, 0n]);
    collector.forget('absent');
    const { timestamp } = collector.total();
    await sleep(5);
    assert.notEqual(collector.total().timestamp, timestamp, 'that there are none is as of now');
    await rm(upper, { recursive: true });
    assert.deepEqual(reports, []);
  });

  it('counts the volumes of an image with the layer, and says once that a count is not whole', async (t) => {
    requireRoot();
    const dir = await tempDir(t);
    await chmod(dir, 0o755);
    const [upper, volume] = [join(dir, 'upper'), join(dir, 'volumes/0')];
    await mkdir(upper);
    await mkdir(volume, { recursive: true });
    await writeFile(join(upper, 'file'), 'x'.repeat(10_000));
    await writeFile(join(volume, 'file'), 'x'.repeat(50_000));
    await mkdir(join(volume, 'closed'), { mode: 0o700 });
    const reports: string[] = [];
    const collector = createUsageCollector({ clock, mountpoint: dir, report: (message) => reports.push(message) });
    onCleanup(t, collector.close);
    collector.watch('c', [upper, volume]);
    await collector.counted();
    const usage = collector.usageOf('c') ?? assert.fail('there is a count');
    const [ofUpper, ofVolume] = await Promise.all([duOf(upper), duOf(volume)]);
    assert.equal(usage.usedBytes?.value, String(ofUpper.usedBytes + ofVolume.usedBytes));
    assert.equal(usage.inodesUsed?.value, String(ofUpper.inodesUsed + ofVolume.inodesUsed));
    assert.deepEqual(reports, []);
    process.seteuid?.(65534);
    try {
      collector.watch('unreadable', [volume]);
      await eventually('another count', () => Promise.resolve(collector.usageOf('unreadable')));
    } finally {
      process.seteuid?.(0);
    }
    assert.equal(reports.length, 1);
    assert.match(reports.join(), /volumes\/0 has too many files, or some that can't be read/);
  });
});
