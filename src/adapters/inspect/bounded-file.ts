/**
 * Reading a whole file that somebody else controls: only a regular one, only up to a size, without ever waiting for
 * a writer (a FIFO) or reading from a device. Must not resolve paths: callers say what a link at the end means.
 */
import { constants, open } from 'node:fs/promises';

export type BoundedRead =
  | { readonly kind: 'content'; readonly content: Buffer }
  | { readonly kind: 'notRegular' }
  | { readonly kind: 'tooLarge'; readonly sizeBytes: number };

/** Rejects with the system's error (ENOENT; ELOOP for a link at the end that is not to be followed). */
export async function readBounded(path: string | Buffer, maxBytes: number, followLink: boolean): Promise<BoundedRead> {
  const { O_RDONLY, O_NONBLOCK, O_NOCTTY, O_NOFOLLOW } = constants;
  const file = await open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | (followLink ? 0 : O_NOFOLLOW));
  try {
    const stats = await file.stat();
    if (!stats.isFile()) return { kind: 'notRegular' };
    const { size } = stats;
    if (size > maxBytes) return { kind: 'tooLarge', sizeBytes: size };
    // No further than stat said: a file that grows meanwhile is not run after.
    const buffer = Buffer.alloc(size);
    let filled = 0;
    while (filled < size) {
      const { bytesRead } = await file.read(buffer, filled, size - filled, filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return { kind: 'content', content: buffer.subarray(0, filled) };
  } finally {
    await file.close();
  }
}
