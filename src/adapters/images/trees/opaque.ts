/**
 * Marks directories of an unpacked archive so that overlayfs shows nothing of what is below them. The paths come from the
 * unpacking child, which has not the right to do it: nothing is marked that does not prove to be a directory reached
 * through directories.
 */
import { OPAQUE_XATTR } from '../../../platform/linux/overlay-marks.ts';
import { provenDirectories } from './directories-by-path.ts';
import type { LayerCalls } from './layer-calls.ts';

export interface OpaqueRequest {
  /** Of the unpacked archive. */
  readonly root: string;
  /** latin1 paths in it; "" is the root itself. */
  readonly opaque: readonly string[];
}

const OPAQUE_VALUE = Buffer.from('y');

/** Rejects when a path is no directory of the archive, reached through directories. */
export const markOpaque = async ({ root, opaque }: OpaqueRequest, calls: LayerCalls): Promise<void> => {
  const find = provenDirectories(root, calls);
  for (const path of opaque) await calls.writeXattr(await find(path), OPAQUE_XATTR, OPAQUE_VALUE);
};
