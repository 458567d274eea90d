/**
 * Marks directories of an unpacked archive so that overlayfs shows nothing of what is below them. The paths come from the
 * unpacking child, which has not the right to do it: nothing is marked that does not prove to be a directory reached
 * through directories. Runs in the thread for trees.
 */
import { hasXattrNow, writeXattrNow } from '../../../platform/linux/jail.ts';
import { provenDirectories } from './directories-by-path.ts';

export interface OpaqueRequest {
  /** Of the unpacked archive. */
  readonly root: string;
  /** latin1 paths in it; "" is the root itself. */
  readonly opaque: readonly string[];
}

const OPAQUE_XATTR = 'trusted.overlay.opaque';
const OPAQUE_VALUE = Buffer.from('y');

/** As a system call takes it. */
export const callPath = (path: Buffer): Buffer => Buffer.concat([path, Buffer.of(0)]);

export const isOpaque = (path: Buffer): boolean => hasXattrNow(callPath(path), OPAQUE_XATTR);

/** Throws when a path is no directory of the archive, reached through directories. */
export const markOpaque = ({ root, opaque }: OpaqueRequest): void => {
  const find = provenDirectories(root);
  for (const path of opaque) writeXattrNow(callPath(find(path)), OPAQUE_XATTR, OPAQUE_VALUE);
};
