/**
 * What the daemon and an unpacking child say to each other: a request is a line of JSON on the child's stdin, its answers
 * are such lines on stdout, which reports.ts reads. The child loads this file: it must stay small.
 */
import type { FailureReason } from '../../../domain/model/errors.ts';

/**
 * What an archive holds. layer: a layer of an image, as registries have it. changes: a container's writable layer, in
 * overlayfs' own form. files: regular files and directories, and nothing else. description: of those the one that
 * describes a checkpoint, which is all that is unpacked.
 */
export type ArchiveForm = 'layer' | 'changes' | 'files' | 'description';

/** For messages: what the archive is, and what to do once there is room. */
export const wordsOfForm: Readonly<Record<ArchiveForm, { readonly what: string; readonly again: string }>> = {
  layer: { what: 'A layer of the image', again: 'pull it again' },
  changes: { what: 'The changed files of the checkpoint', again: 'restore it again' },
  files: { what: 'The archive of the checkpoint', again: 'restore it again' },
  description: { what: 'The archive of the checkpoint', again: 'restore it again' },
};

export interface UnpackRequest {
  readonly archivePath: string;
  /** The archive is not in the child's root: it is opened before. */
  readonly isOutside: boolean;
  /** The archive is a layer that is still being downloaded, and this is what tells how far that has come. */
  readonly arriving?: { readonly arrivalsPath: string; readonly sizeBytes: number };
  readonly form: ArchiveForm;
  /** The child's root; the spawner sees to that, the first time. */
  readonly root: string;
  /** Where in it the archive is unpacked; "" is the root itself. */
  readonly within: string;
  /** Digest of the archive as it is when it is decompressed; null where nobody knows it. */
  readonly diffId: string | null;
  readonly entriesMax: number;
  readonly bytesMax: number;
  readonly memoryBytesMax: number;
  readonly reservedBytes: number;
}

export type UnpackReport =
  /** All is loaded and open: it waits for its root. Always the first word, and said once. */
  | { readonly kind: 'loaded' }
  /** Compressed bytes read so far. */
  | { readonly kind: 'progress'; readonly bytesDone: number }
  /** A directory the archive has files in but does not describe: it takes after the one in the layers below. */
  | { readonly kind: 'implied'; readonly path: string }
  /** A directory that hides those of the layers below. The child has not the right to mark it. */
  | { readonly kind: 'opaque'; readonly path: string }
  /** Everything is unpacked and verified, but not on the disk yet: it waits for the next request. */
  | { readonly kind: 'done'; readonly usedBytes: number; readonly inodesUsed: number }
  | { readonly kind: 'failed'; readonly reason: FailureReason; readonly message: string };

/** What a child may say altogether; its other reports are a small part of that. */
export const REPORT_BYTES_MAX = 8 * 1024 * 1024;
export const DIRECTORIES_BYTES_MAX = REPORT_BYTES_MAX / 2;
