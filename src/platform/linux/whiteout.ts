/** What hides a name of lower layers in an overlay file system (Documentation/filesystems/overlayfs of Linux). Pure. */
import type { Stats } from 'node:fs';

/** A character device 0:0 stands for a name that the layers below are to be without. */
export const isWhiteout = (stats: Stats): boolean => stats.isCharacterDevice() && stats.rdev === 0;
