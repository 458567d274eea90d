/**
 * Tells the file system that the directories in a directory have nothing to do with each other (chattr +T), so that each
 * gets a place of its own on the disk. ext4 knows the mark; where a file system does not, nothing is lost.
 */
import { constants } from 'node:fs';
import { open } from 'node:fs/promises';
import { native } from './native.ts';
import { inPool } from './syscalls.ts';

const nativeIoctl = native<[number, number, Int32Array]>('int ioctl(int fd, unsigned long request, void *flags)');

/** linux/fs.h; the same on x86-64 and arm64. */
const FS_IOC_GETFLAGS = 0x8008_6601;
const FS_IOC_SETFLAGS = 0x4008_6602;
const FS_TOPDIR_FL = 0x0002_0000;

/** Marks the directory. Resolves with whether it is marked; rejects only when it can't be opened. */
export const spreadDirectoriesIn = async (path: string): Promise<boolean> => {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    // The kernel reads and writes an int, whatever the request's name says.
    const flags = new Int32Array(2);
    await inPool('ioctl', `FS_IOC_GETFLAGS of '${path}'`, nativeIoctl, directory.fd, FS_IOC_GETFLAGS, flags);
    if (((flags[0] ?? 0) & FS_TOPDIR_FL) !== 0) return true;
    flags[0] = (flags[0] ?? 0) | FS_TOPDIR_FL;
    await inPool('ioctl', `FS_IOC_SETFLAGS of '${path}'`, nativeIoctl, directory.fd, FS_IOC_SETFLAGS, flags);
    return true;
  } catch {
    return false;
  } finally {
    await directory.close();
  }
};
