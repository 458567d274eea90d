/** Reading the kernel's files once: as much as the buffer holds, so that no container decides how much is read. */
import { type FileHandle, open } from 'node:fs/promises';
import { errorCodeOf } from '../../platform/error-code.ts';

/** ENODEV is a removed cgroup's, ESRCH a process's; EOPNOTSUPP and EINVAL say that the kernel keeps no such account. */
const GONE: readonly (string | undefined)[] = ['ENOENT', 'ENODEV', 'ESRCH', 'EOPNOTSUPP', 'EINVAL', 'EACCES'];

/** In whole lines, where there are more than the buffer holds. */
const fill = async (file: FileHandle, buffer: Buffer): Promise<string> => {
  let length = 0;
  while (length < buffer.length) {
    // Lists come a page at a time, however much is asked for.
    const { bytesRead } = await file.read(buffer, length, buffer.length - length, null);
    if (bytesRead === 0) return buffer.toString('latin1', 0, length);
    length += bytesRead;
  }
  return buffer.toString('latin1', 0, buffer.lastIndexOf('\n') + 1);
};

/** undefined when what the file tells of is not there, or never was. */
export const readStart = async (path: string, buffer: Buffer): Promise<string | undefined> => {
  try {
    const file = await open(path, 'r');
    try {
      return await fill(file, buffer);
    } finally {
      await file.close();
    }
  } catch (error) {
    if (GONE.includes(errorCodeOf(error))) return undefined;
    throw error;
  }
};
