/** What tells one state of a file from another without reading it. */
import type { BigIntStats } from 'node:fs';

/** Changes whenever the file does, or another takes its place: with its device and inode, the times say when. */
export const signatureOf = ({ dev, ino, size, mtimeNs, ctimeNs }: BigIntStats): string =>
  [dev, ino, size, mtimeNs, ctimeNs].join(':');
