/**
 * Blobs, by digest. A file under a digest's name is whole and verified: a blob gets its name by a rename as the last step,
 * and until then is a file beside the others that a later attempt goes on with. Syncing them is SyncImage's. Runs in the
 * pulling thread, where hashing and writing stall nobody else; it alone writes and removes blobs.
 */
import { randomUUID } from 'node:crypto';
import { mkdirSync, renameSync, statSync } from 'node:fs';
import { mkdir, readFile, rename, rm, stat, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { sha256Of } from './chain-ids.ts';
import { asDiskFull, diskFull } from './disk-full.ts';
import { invalidImage } from './invalid-image.ts';
import { blobPath, type ImageLayout, partialPath, WRITING_SUFFIX } from './layout.ts';
import { openPartialBlob, type PartialBlob } from './partial-blob.ts';

export interface BlobStore {
  readonly has: (digest: string) => Promise<boolean>;
  /** Throws FailureError HostFailed when it is not there or larger than `bytesMax`. */
  readonly read: (digest: string, bytesMax: number) => Promise<Buffer>;
  readonly put: (bytes: Buffer) => Promise<string>;
  readonly openPartial: (digest: string, sizeBytes: number) => Promise<PartialBlob>;
  /** Takes a file whose content has been hashed already. */
  readonly adopt: (path: string, digest: string) => Promise<void>;
  /**
   * Makes a blob of what is kept of it, when that is all of it. Throws FailureError ImageInvalid when it is not; what is left
   * is gone on with by the next download.
   */
  readonly restore: (digest: string) => Promise<void>;
  /** The bytes freed; a blob that is not there is success. Done when it returns: no pull can look in between. */
  readonly remove: (digest: string) => number;
}

const FILE_MODE = 0o600;
const DIRECTORY_MODE = 0o700;

const hasBlob = async (layout: ImageLayout, digest: string): Promise<boolean> => {
  try {
    return (await stat(blobPath(layout, digest))).isFile();
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return false;
    throw error;
  }
};

/** Moves it to the trash: on some disks a large file takes long to go. */
const removeBlob = (layout: ImageLayout, digest: string): number => {
  const path = blobPath(layout, digest);
  try {
    const { size } = statSync(path);
    mkdirSync(layout.trash, { recursive: true, mode: DIRECTORY_MODE });
    renameSync(path, join(layout.trash, randomUUID()));
    return size;
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return 0;
    throw error;
  }
};

const finishKept = async (
  layout: ImageLayout,
  digest: string,
  openPartial: BlobStore['openPartial'],
): Promise<void> => {
  const kept = await stat(partialPath(layout, digest)).catch(() => null);
  if (kept === null)
    throw new FailureError('ImageInvalid', `${digest} was lost when the node ended: pull the image again.`);
  const partial = await openPartial(digest, kept.size);
  try {
    await partial.finish();
  } finally {
    partial.close();
  }
};

export const createBlobStore = (layout: ImageLayout, reservedBytes: number): BlobStore => {
  const name = async (from: string, digest: string): Promise<void> => {
    await mkdir(layout.blobs, { recursive: true, mode: DIRECTORY_MODE });
    await rename(from, blobPath(layout, digest));
  };

  const checkSpace = async (neededBytes: number): Promise<void> => {
    const { bavail, bsize } = await statfs(layout.ingest);
    if (bavail * bsize - neededBytes < reservedBytes) throw diskFull();
  };

  const openPartial = async (digest: string, sizeBytes: number): Promise<PartialBlob> => {
    await mkdir(layout.ingest, { recursive: true, mode: DIRECTORY_MODE });
    return await openPartialBlob({ layout, digest, sizeBytes, checkSpace, takeWhole: (path) => name(path, digest) });
  };

  return {
    has: (digest) => hasBlob(layout, digest),
    remove: (digest) => removeBlob(layout, digest),
    openPartial,
    restore: async (digest) => {
      if (!(await hasBlob(layout, digest))) await finishKept(layout, digest, openPartial);
    },
    read: async (digest, bytesMax) => {
      const { size } = await stat(blobPath(layout, digest));
      if (size > bytesMax) throw invalidImage(`${digest} is larger than ${bytesMax} bytes`);
      return await readFile(blobPath(layout, digest));
    },
    put: async (bytes) => {
      const digest = sha256Of(bytes);
      if (await hasBlob(layout, digest)) return digest;
      await mkdir(layout.ingest, { recursive: true, mode: DIRECTORY_MODE });
      // A name of its own: two pulls may come by the same manifest at once.
      const path = join(layout.ingest, `${randomUUID()}${WRITING_SUFFIX}`);
      try {
        await checkSpace(bytes.length);
        await writeFile(path, bytes, { mode: FILE_MODE, flag: 'wx' });
        await name(path, digest);
      } catch (error) {
        await rm(path, { force: true });
        throw asDiskFull(error);
      }
      return digest;
    },
    adopt: async (path, digest) => {
      if (await hasBlob(layout, digest)) return await rm(path, { force: true });
      await name(path, digest);
    },
  };
};
