/**
 * Reads blobs again to see whether they still are what their digests say, in the pulling thread and no faster than
 * it is told, so that a disk that also serves containers hardly notices. Says which are damaged; removes nothing.
 */
import { createHash } from 'node:crypto';
import { open, readdir } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { isDigest } from '../../../domain/image/reference.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';
import { blobPath, digestOfHex, type ImageLayout } from '../layout.ts';

const READ_BYTES = 256 * 1024;
const MS_PER_S = 1000;

/** True also for one that can't be read to its end; false for one that is gone meanwhile. */
const isDamaged = async (
  path: string,
  digest: string,
  bytesPerSecond: number,
  signal: AbortSignal,
): Promise<boolean> => {
  const hash = createHash('sha256');
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  const handle = await open(path, 'r').catch((error: unknown) => {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  });
  if (handle === null) return false;
  try {
    for (;;) {
      const { bytesRead } = await handle.read(buffer, 0, READ_BYTES);
      if (bytesRead === 0) return digestOfHex(hash.digest('hex')) !== digest;
      hash.update(buffer.subarray(0, bytesRead));
      await delay((bytesRead / bytesPerSecond) * MS_PER_S, undefined, { signal });
    }
  } catch (error) {
    signal.throwIfAborted();
    if (errorCodeOf(error) === 'EIO') return true;
    throw error;
  } finally {
    await handle.close();
  }
};

const allDigests = async (layout: ImageLayout): Promise<readonly string[]> => {
  const names = await readdir(layout.blobs).catch((error: unknown) => {
    if (errorCodeOf(error) === 'ENOENT') return [];
    throw error;
  });
  return names.map(digestOfHex).filter(isDigest);
};

/** Digests of the damaged ones of these blobs, or of all. Rejects with the signal's reason. */
export const findDamagedBlobs = async (
  layout: ImageLayout,
  digests: readonly string[] | null,
  bytesPerSecond: number,
  signal: AbortSignal,
): Promise<readonly string[]> => {
  const damaged: string[] = [];
  for (const digest of digests ?? (await allDigests(layout))) {
    if (await isDamaged(blobPath(layout, digest), digest, bytesPerSecond, signal)) damaged.push(digest);
  }
  return damaged;
};
