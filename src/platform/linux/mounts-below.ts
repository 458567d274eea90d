/**
 * What is mounted in directory trees of the daemon's own, as the trees themselves show (statx(2)). The mount table knows it too,
 * but has seven lines for each pod of the node, and the kernel makes all of them for every reader: 34 ms with 1,000 pods.
 * Unmounts nothing.
 */
import { getSystemErrorName } from 'node:util';
import { errno } from 'koffi';
import { type CallsAt, type FileCalls, pooledEverywhere } from './file-calls.ts';
import { isAtOrBelow, readMountPoints } from './mounts.ts';
import { readSmallTree } from './small-tree.ts';
import { native } from './native.ts';
import { AT_FDCWD, AT_SYMLINK_NOFOLLOW } from './syscalls.ts';

const MISSING = ['ENOENT', 'ENOTDIR'];
const AT_NO_AUTOMOUNT = 0x800;
const STATX_BYTES = 256;
const ATTRIBUTES_AT = 8;
const ATTRIBUTES_MASK_AT = 56;
/** Since Linux 5.8. */
const STATX_ATTR_MOUNT_ROOT = 0x2000n;

const nativeStatx = native<[number, string, number, number, Uint8Array]>(
  'int statx(int directory, const char *path, int flags, unsigned int mask, void *result)',
);
const statx = Buffer.alloc(STATX_BYTES);

/** mount: what is at the path is the root of what is mounted there. unknown: an old kernel does not tell, or it can't be asked. */
export type Mounted = 'mount' | 'no mount' | 'missing' | 'unknown';

/** One system call on the calling thread: for paths that are known to be in memory, as those are that were just listed. */
export const mountedAt = (path: string): Mounted => {
  if (nativeStatx(AT_FDCWD, path, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT, 0, statx) !== 0)
    return MISSING.includes(getSystemErrorName(-errno())) ? 'missing' : 'unknown';
  if ((statx.readBigUInt64LE(ATTRIBUTES_MASK_AT) & STATX_ATTR_MOUNT_ROOT) === 0n) return 'unknown';
  return (statx.readBigUInt64LE(ATTRIBUTES_AT) & STATX_ATTR_MOUNT_ROOT) === 0n ? 'no mount' : 'mount';
};

/** Mounts at or in a small tree that are in no other of it; null when that can't be told from the tree. */
const outermostIn = async (root: string, calls: FileCalls): Promise<readonly string[] | null> => {
  const outermost: string[] = [];
  const untold: string[] = [];
  /** What is mounted there, or may be, is not entered: it may be slow to answer. */
  const isOther = (entry: Buffer): boolean => {
    const path = entry.toString();
    const mounted = mountedAt(path);
    const isUntold = mounted === 'unknown' || !Buffer.from(path).equals(entry);
    if (isUntold) untold.push(path);
    else if (mounted === 'mount') outermost.push(path);
    return isUntold || mounted === 'mount';
  };
  if (mountedAt(root) === 'missing') return [];
  if (isOther(Buffer.from(root))) return untold.length === 0 ? outermost : null;
  // What it holds may change while it is looked at.
  const tree = await readSmallTree(root, { isLeftOut: isOther, calls }).catch(() => null);
  return tree !== null && untold.length === 0 ? outermost : null;
};

/**
 * Mount points at or below the paths, in the order they are to be unmounted in. What is mounted in one of them, or was covered by
 * it, may be missing: it goes with it, or shows when it is gone.
 */
export const mountsBelow = async (
  paths: readonly string[],
  callsAt: CallsAt = pooledEverywhere,
): Promise<readonly string[]> => {
  const told = await Promise.all(paths.map((path) => outermostIn(path, callsAt(path))));
  if (!told.includes(null)) return told.flatMap((mounts) => mounts ?? []);
  const table = await readMountPoints();
  return table.filter((point) => paths.some((path) => isAtOrBelow(point, path))).toReversed();
};
