/** Names of block devices, as the kernel tells them of their numbers. */
import { readlink } from 'node:fs/promises';
import { basename } from 'node:path';
import type { DeviceNumbers } from './types.ts';

/** As cAdvisor has it, whose dashboards choose by it. A file system over several devices, or over none, has numbers and no name. */
export const deviceName = async ({ major, minor }: DeviceNumbers): Promise<string> => {
  const numbers = `${major}:${minor}`;
  try {
    // The kernel has "!" there for a slash.
    return `/dev/${basename(await readlink(`/sys/dev/block/${numbers}`)).replaceAll('!', '/')}`;
  } catch {
    return numbers;
  }
};
