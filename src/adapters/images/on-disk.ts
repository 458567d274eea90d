/**
 * What of the store is on the disk for good, and not in the kernel's memory alone: files that are read-only. A blob is marked
 * so itself, an unpacked layer by its note. The mark is set once everything it stands for has been synced, so that whatever
 * the end of the node takes, what is marked is whole; new-boot.ts doubts the rest.
 */
import { open, stat } from 'node:fs/promises';
import { join } from 'node:path';
import type { ImageContent } from '../../domain/model/image-content.ts';
import { errorCodeOf } from '../../platform/error-code.ts';
import { blobPath, type ImageLayout, INFO_FILE, snapshotDir } from './layout.ts';

const WRITABLE = 0o222;
/** Of what is marked. */
export const ON_DISK_MODE = 0o400;

export const isMarked = ({ mode }: { readonly mode: number }): boolean => (mode & WRITABLE) === 0;

/** A file as it was when it was looked at. */
interface Unmarked {
  readonly path: string;
  readonly ino: number;
  readonly ctimeMs: number;
}

export interface ContentOnDisk {
  /** Some of it is not there at all. */
  readonly isMissing: boolean;
  readonly unmarked: readonly Unmarked[];
}

const pathsOf = (layout: ImageLayout, { blobs, layers }: Pick<ImageContent, 'blobs' | 'layers'>): string[] => [
  ...new Set([
    ...blobs.map((digest) => blobPath(layout, digest)),
    ...layers.map(({ chainId }) => join(snapshotDir(layout, chainId), INFO_FILE)),
  ]),
];

export const lookAtContent = async (
  layout: ImageLayout,
  content: Pick<ImageContent, 'blobs' | 'layers'>,
): Promise<ContentOnDisk> => {
  const found = await Promise.all(
    pathsOf(layout, content).map(async (path) => {
      try {
        return { path, stats: await stat(path) };
      } catch (error) {
        if (errorCodeOf(error) === 'ENOENT') return { path, stats: null };
        throw error;
      }
    }),
  );
  return {
    isMissing: found.some(({ stats }) => stats === null),
    unmarked: found.flatMap(({ path, stats }) =>
      stats === null || isMarked(stats) ? [] : [{ path, ino: stats.ino, ctimeMs: stats.ctimeMs }],
    ),
  };
};

/** After a sync that began when they had been looked at. One that is another file by now waits for another sync. */
export const markOnDisk = async (files: readonly Unmarked[]): Promise<void> => {
  for (const { path, ino, ctimeMs } of files) {
    const file = await open(path, 'r').catch((error: unknown) => {
      if (errorCodeOf(error) === 'ENOENT') return null;
      throw error;
    });
    if (file === null) continue;
    try {
      const now = await file.stat();
      if (now.ino === ino && now.ctimeMs === ctimeMs) await file.chmod(ON_DISK_MODE);
    } finally {
      await file.close();
    }
  }
};
