/**
 * The marks by which an overlay file system hides what lower layers hold (Documentation/filesystems/overlayfs of Linux).
 * Pure.
 */
import type { Stats } from 'node:fs';

export const OVERLAY_XATTR_PREFIX = 'trusted.overlay.';
/** Of a directory that shows nothing of what is below it. */
export const OPAQUE_XATTR = `${OVERLAY_XATTR_PREFIX}opaque`;

/** A character device 0:0 stands for a name that the layers below are to be without. */
export const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;
