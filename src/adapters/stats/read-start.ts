/** Reading the kernel's files once: as much as the buffer holds, so that no container decides how much is read. */
import { open } from 'node:fs/promises';
import { errorCodeOf } from '../linux/syscalls.ts';

/** ENODEV is a removed cgroup's, ESRCH a process's; EOPNOTSUPP and EINVAL say that the kernel keeps no such account. */
const GONE: readonly (string | undefined)[] = ['ENOENT', 'ENODEV', 'ESRCH', 'EOPNOTSUPP', 'EINVAL', 'EACCES'];

/** undefined when what the file tells of is not there, or never was. */
export const readStart = async (path: string, buffer: Buffer): Promise<string | undefined> => {
  try {
    const file = await open(path, 'r');
    try {
      const { bytesRead } = await file.read(buffer, 0, buffer.length, 0);
      return buffer.toString('latin1', 0, bytesRead);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (GONE.includes(errorCodeOf(error))) return undefined;
    throw error;
  }
};
