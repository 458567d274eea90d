/** The file system that writable layers are on: how much it holds, and the device that it is on. */
import { stat, statfs } from 'node:fs/promises';
import { deviceName } from './device-name.ts';
import type { DeviceNumbers, FileSystemFigures } from './types.ts';

/** As glibc puts a device number together (makedev(3)). */
const numbersOf = (device: bigint): DeviceNumbers => ({
  major: String(((device >> 8n) & 0xfffn) | ((device >> 32n) & ~0xfffn)),
  minor: String((device & 0xffn) | ((device >> 12n) & ~0xffn & 0xffffffffn)),
});

export const readFileSystem = async (path: string): Promise<FileSystemFigures> => {
  const [{ blocks, bsize, files, ffree }, { dev }] = await Promise.all([
    statfs(path, { bigint: true }),
    stat(path, { bigint: true }),
  ]);
  const numbers = numbersOf(dev);
  return {
    ...numbers,
    device: await deviceName(numbers),
    limitBytes: blocks * bsize,
    inodes: files,
    inodesFree: ffree,
  };
};
