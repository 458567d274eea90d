/**
 * Checks of the file systems that scribe writes to: free space, and whether overlayfs works there, which is really
 * tried in a directory that is removed afterwards.
 */
import { access, mkdir, mkdtemp, rm, statfs, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { detachMount, mount } from '../../platform/linux/syscalls.ts';
import { type DoctorResult, ok, problem, warning } from './result.ts';

const OVERLAYFS = 'overlayfs';
const MIB = 1024 * 1024;
/** Below this part free, kubelet starts to throw images and pods out (its default is 15 % and 10 %). */
const FREE_PART_MIN = 0.1;
const FREE_INODES_PART_MIN = 0.05;
/** What a pod writes into the state directory is far less; where that is, the daemon keeps no reserve. */
const STATE_FREE_BYTES_MIN = 4 * MIB;

/** What helps where nothing can be written below the root directory, whoever finds that. */
export const UNWRITABLE_REMEDY = 'Mount it for writing and see that there is room, or put root of [serve] elsewhere.';

/** `directory`, or the nearest one above it that exists. */
const existingPart = async (directory: string): Promise<string> => {
  try {
    await access(directory);
    return directory;
  } catch {
    return dirname(directory) === directory ? directory : existingPart(dirname(directory));
  }
};

/** Mounts an overlay below `rootDir`, writes through it, and unmounts it. */
export const checkOverlayfs = async (rootDir: string): Promise<DoctorResult> => {
  const remedy = 'Load the module (modprobe overlay), or put root of [serve] on ext4 or xfs (with ftype=1).';
  let dir: string;
  try {
    dir = await mkdtemp(join(await existingPart(rootDir), '.scribe-doctor-'));
  } catch (error) {
    return problem(
      OVERLAYFS,
      `Nothing can be written below ${rootDir}: ${(error as Error).message}`,
      UNWRITABLE_REMEDY,
    );
  }
  const [lower, upper, work, merged] = ['lower', 'upper', 'work', 'merged'].map((name) => join(dir, name)) as [
    string,
    string,
    string,
    string,
  ];
  try {
    for (const directory of [lower, upper, work, merged]) await mkdir(directory);
    mount(OVERLAYFS, merged, 'overlay', 0, `lowerdir=${lower},upperdir=${upper},workdir=${work}`);
    try {
      await writeFile(join(merged, 'probe'), '');
      await access(join(upper, 'probe'));
    } finally {
      detachMount(merged);
    }
    return ok(OVERLAYFS, `works below ${rootDir}`);
  } catch (error) {
    return problem(OVERLAYFS, `can't be used below ${rootDir}: ${(error as Error).message}`, remedy);
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
};

/** What statfs(2) says, as far as it matters. */
export interface Space {
  readonly freeBytes: number;
  readonly totalBytes: number;
  readonly freeInodes: number;
  /** 0 where inodes are not counted. */
  readonly totalInodes: number;
}

const spaceCheck = (directory: string): string => `space in ${directory}`;

/** `reserveBytes`: the daemon keeps that in the root directory, and nothing (null) in the state directory. */
export const judgeSpace = (directory: string, space: Space, reserveBytes: number | null): DoctorResult => {
  const check = spaceCheck(directory);
  const part = (free: number, total: number): string => `${Math.floor((100 * free) / total)} %`;
  const free = `${Math.floor(space.freeBytes / MIB)} MiB free (${part(space.freeBytes, space.totalBytes)})`;
  if (reserveBytes !== null && space.freeBytes < reserveBytes) {
    const detail = `${free}, less than the reserve of ${Math.floor(reserveBytes / MIB)} MiB: nothing new is taken on`;
    return problem(check, detail, 'Free some space: remove unused images and pods, or other files.');
  }
  if (space.totalInodes > 0 && space.freeInodes < space.totalInodes * FREE_INODES_PART_MIN) {
    const detail = `${space.freeInodes} inodes free (${part(space.freeInodes, space.totalInodes)})`;
    return warning(check, detail, 'Remove unused images, or make the file system with more inodes.');
  }
  if (reserveBytes === null) {
    if (space.freeBytes >= STATE_FREE_BYTES_MIN) return ok(check, free);
    return problem(check, `${free}: new pods and containers fail`, 'Remove other files there, or make it larger.');
  }
  if (space.freeBytes < space.totalBytes * FREE_PART_MIN) {
    return warning(check, free, 'Free some space: kubelet will start to evict pods.');
  }
  return ok(check, free);
};

export const checkSpace = async (directory: string, reserveBytes: number | null): Promise<DoctorResult> => {
  try {
    const { bavail, bsize, blocks, ffree, files } = await statfs(await existingPart(directory));
    const space = { freeBytes: bavail * bsize, totalBytes: blocks * bsize, freeInodes: ffree, totalInodes: files };
    return judgeSpace(directory, space, reserveBytes);
  } catch (error) {
    const detail = `could not be looked at: ${(error as Error).message}`;
    return problem(spaceCheck(directory), detail, 'Check the file system it is on.');
  }
};
