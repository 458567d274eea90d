/** Small file systems of a test's own: one that another process fills in one go, for what happens when a disk is full; one that is broken. */
import assert from 'node:assert/strict';
import { closeSync, openSync, statfsSync } from 'node:fs';
import { join } from 'node:path';
import koffi from 'koffi';
import { type Owner, onCleanup } from './cleanup.ts';
import { requireRoot } from './netns.ts';
import { run, runOk } from './process.ts';
import { tempDirInMemory } from './temp-dir.ts';

/** Mounts one of this size over a directory. */
export const mountSmallDisk = async (owner: Owner, dir: string, sizeMb: number): Promise<void> => {
  requireRoot();
  await runOk(['mount', '-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=0700`, 'scribe-test', dir]);
  onCleanup(owner, async () => {
    // Whoever wrote there may still be letting go of its files.
    await run(['umount', '--lazy', dir]);
  });
};

/** EXT4_IOC_SHUTDOWN, and that nothing is written any more, not even the file system's own journal. */
const SHUTDOWN_REQUEST = 0x80_04_58_7d;
const SHUTDOWN_AT_ONCE = 2;
const ioctl = koffi.load(null).func('int ioctl(int fd, unsigned long request, const uint32_t *argument)');

/** Mounts a copy of a directory over `dir`, on a file system that fails whatever is asked of it (EIO), as one does on a broken disk. */
export const mountBrokenDisk = async (owner: Owner, dir: string, copyOf: string): Promise<void> => {
  requireRoot();
  const image = join(await tempDirInMemory(owner), 'disk');
  await runOk(['truncate', '--size', '16M', image]);
  await runOk(['mkfs.ext4', '-q', '-d', copyOf, image]);
  await runOk(['mount', '-o', 'loop', image, dir]);
  onCleanup(owner, async () => void (await run(['umount', '--lazy', dir])));
  const fd = openSync(dir, 'r');
  try {
    assert.equal(ioctl(fd, SHUTDOWN_REQUEST, [SHUTDOWN_AT_ONCE]), 0, 'the file system goes on');
  } finally {
    closeSync(fd);
  }
};

export const freeBytesOf = (dir: string): number => {
  const { bavail, bsize } = statfsSync(dir);
  return bavail * bsize;
};

/** Makes it another size, whatever is on it: an image needs more room to be pulled than a test has memory to fill. */
export const resizeSmallDisk = async (dir: string, sizeMb: number): Promise<void> => {
  await runOk(['mount', '-o', `remount,size=${sizeMb}m`, dir]);
};

/** Another process takes all the room that is left, at once; the path of the file that holds it. */
export const fillAtOnce = async (dir: string): Promise<string> => {
  const path = join(dir, 'others');
  // Whoever writes beside it may take some of what was free.
  for (let tries = 0; tries < 50; tries += 1) {
    const { exitCode } = await run(['fallocate', '--length', String(freeBytesOf(dir)), path]);
    if (exitCode === 0) return path;
  }
  return assert.fail(`${dir} could not be filled`);
};
