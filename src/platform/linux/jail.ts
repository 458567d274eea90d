/**
 * What a child process does that unpacks files of strangers: it was started with few rights (jailed-command.ts), gives up
 * what it no longer needs once all is loaded, and makes nodes, attributes and times. All calls wait, on the calling
 * thread: such a child has nothing else to do. Paths are bytes, because names in archives need not be UTF-8. Never for
 * the daemon's own loop.
 */
import { filterCalls } from './jail-filter.ts';
import { native } from './native.ts';
import { AT_FDCWD, AT_SYMLINK_NOFOLLOW, checked } from './syscalls.ts';

const nativeSetrlimit = native<[number, BigUint64Array]>('int setrlimit(int resource, const void *limit)');
const nativeMknod = native<[Uint8Array, number, number]>(
  'int mknod(const void *path, unsigned int mode, unsigned long device)',
);
const nativeLsetxattr = native<[Uint8Array, string, Uint8Array, number, number]>(
  'int lsetxattr(const void *path, const char *name, const void *value, size_t size, int flags)',
);
const nativeLgetxattr = native<[Uint8Array, string, Uint8Array | null, number]>(
  'long lgetxattr(const void *path, const char *name, void *value, size_t size)',
);
const nativeLlistxattr = native<[Uint8Array, Uint8Array, number]>(
  'long llistxattr(const void *path, void *list, size_t size)',
);
const nativeUtimensat = native<[number, Uint8Array, BigInt64Array, number]>(
  'int utimensat(int fd, const void *path, const void *times, int flags)',
);
const nativeFutimens = native<[number, BigInt64Array]>('int futimens(int fd, const void *times)');
const nativeSyncfs = native<[number]>('int syncfs(int fd)');

const RLIMIT_FSIZE = 1;
const RLIMIT_DATA = 2;
const RLIMIT_CORE = 4;
const RLIMIT_NOFILE = 7;
const OPEN_FILES_MAX = 64;

const limit = (resource: number, value: number): void => {
  checked(
    'setrlimit',
    `resource ${resource}`,
    nativeSetrlimit(resource, BigUint64Array.of(BigInt(value), BigInt(value))),
  );
};

export interface JailLimits {
  /** Of private writable memory, all of it together. */
  readonly memoryBytesMax: number;
  readonly fileBytesMax: number;
}

/**
 * Gives up core dumps, memory and file sizes beyond the limits, and most system calls, in all threads and for ever. All
 * modules and files that are needed later have to be loaded and open already.
 */
export const enterJail = (limits: JailLimits): void => {
  limit(RLIMIT_CORE, 0);
  limit(RLIMIT_NOFILE, OPEN_FILES_MAX);
  limit(RLIMIT_FSIZE, limits.fileBytesMax);
  limit(RLIMIT_DATA, limits.memoryBytesMax);
  filterCalls();
};

/** `path` is bytes with a NUL at the end. mknod(2) follows no symbolic link in its last component. */
export const makeNodeNow = (path: Uint8Array, mode: number, device: number): void => {
  checked('mknod', 'a node', nativeMknod(path, mode, device));
};

/** Sets an extended attribute of `path` (NUL-terminated) itself, never of what it links to. */
export const writeXattrNow = (path: Uint8Array, name: string, value: Uint8Array): void => {
  checked('lsetxattr', name, nativeLsetxattr(path, name, value, value.length, 0));
};

const times = new BigInt64Array(4);

const fillTimes = (seconds: number, nanoseconds: number): BigInt64Array => {
  times[0] = times[2] = BigInt(seconds);
  times[1] = times[3] = BigInt(nanoseconds);
  return times;
};

/** Whether `path` (NUL-terminated) itself has the extended attribute, whatever its value. */
export const hasXattrNow = (path: Uint8Array, name: string): boolean => nativeLgetxattr(path, name, null, 0) >= 0;

/** As much as the kernel takes, of names and of a value. */
const XATTR_BYTES_MAX = 65_536;

/** The extended attributes of `path` (NUL-terminated) itself that `isWanted`; none where they are unsupported. */
export const readXattrsNow = (
  path: Uint8Array,
  isWanted: (name: string) => boolean,
): readonly (readonly [string, Buffer])[] => {
  const found = Buffer.alloc(XATTR_BYTES_MAX);
  const names = found.toString('utf8', 0, Math.max(0, nativeLlistxattr(path, found, found.length)));
  return names
    .split('\0')
    .filter((name) => name !== '' && isWanted(name))
    .map((name) => {
      const length = checked('lgetxattr', name, nativeLgetxattr(path, name, found, found.length));
      return [name, Buffer.from(found.subarray(0, length))] as const;
    });
};

/** Sets access and modification time of `path` (NUL-terminated) itself, never of what it links to. */
export const setTimesNow = (path: Uint8Array, seconds: number, nanoseconds: number): void => {
  const filled = fillTimes(seconds, nanoseconds);
  checked('utimensat', 'a file', nativeUtimensat(AT_FDCWD, path, filled, AT_SYMLINK_NOFOLLOW));
};

/** As setTimesNow, of an open file. */
export const setTimesOfOpenNow = (fd: number, seconds: number, nanoseconds: number): void => {
  checked('futimens', `fd ${fd}`, nativeFutimens(fd, fillTimes(seconds, nanoseconds)));
};

/** Writes all of the file system that holds `fd` to its disk, and waits for it. */
export const syncFileSystemNow = (fd: number): void => {
  checked('syncfs', `fd ${fd}`, nativeSyncfs(fd));
};
