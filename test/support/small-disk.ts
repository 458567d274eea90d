/** A small file system of a test's own, and how another process fills it in one go: for what happens when a disk is full. */
import assert from 'node:assert/strict';
import { statfsSync } from 'node:fs';
import { join } from 'node:path';
import { type Owner, onCleanup } from './cleanup.ts';
import { requireRoot } from './netns.ts';
import { run, runOk } from './process.ts';

/** Mounts one of this size over a directory. */
export const mountSmallDisk = async (owner: Owner, dir: string, sizeMb: number): Promise<void> => {
  requireRoot();
  await runOk(['mount', '-t', 'tmpfs', '-o', `size=${sizeMb}m,mode=0700`, 'scribe-test', dir]);
  onCleanup(owner, async () => {
    // Whoever wrote there may still be letting go of its files.
    await run(['umount', '--lazy', dir]);
  });
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
