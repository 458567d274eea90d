/** Keeps room on a file system while something of unknown size is written to it. Knows nothing of what that is. */
import { statfs } from 'node:fs/promises';
import { FailureError } from '../../domain/model/errors.ts';

export interface FreeSpace {
  /** On the file system to be written to. */
  readonly directory: string;
  /** As much must stay free. */
  readonly reservedBytes: number;
  /** How much is written between two looks; as much must be free beside what is reserved, or the whole of a larger piece. */
  readonly everyBytes: number;
  /** For whoever has to make room. */
  readonly message: string;
}

/** To be told of each piece before it is written; the first one has it look. Throws FailureError DiskFull. */
export const keepFreeSpace = ({
  directory,
  reservedBytes,
  everyBytes,
  message,
}: FreeSpace): ((sizeBytes: number) => Promise<void>) => {
  let uncheckedBytes = everyBytes;
  return async (sizeBytes) => {
    uncheckedBytes += sizeBytes;
    if (uncheckedBytes < everyBytes) return;
    uncheckedBytes = 0;
    const { bavail, bsize } = await statfs(directory);
    if (bavail * bsize < reservedBytes + Math.max(everyBytes, sizeBytes)) throw new FailureError('DiskFull', message);
  };
};
