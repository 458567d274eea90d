/**
 * The one way to the kernel for what Node does not offer: system calls through FFI. Every function here is one call
 * (or the few that only make sense together) and throws an error with `code`, `errno` and `syscall`, as Node's own do.
 * Must decide nothing and keep no state. Functions that return promises run in libuv's pool, a bounded number at once,
 * and stall nobody; the others run on the calling thread and are quick, unless their comment says that they wait.
 */
import type { Socket } from 'node:net';
import { getSystemErrorMessage, getSystemErrorName } from 'node:util';
import { errno } from 'koffi';
import { errorCodeOf } from '../error-code.ts';
import { callInPool, native, type NativeFunction } from './native.ts';
import { createSemaphore } from './semaphore.ts';

const nativeFlock = native<[number, number]>('int flock(int fd, int operation)');
const nativeMount = native<[string, string, string, number, string | null]>(
  'int mount(const char *source, const char *target, const char *type, unsigned long flags, const char *data)',
);
const nativeUmount = native<[string, number]>('int umount2(const char *target, int flags)');
const nativeUnshare = native<[number]>('int unshare(int flags)');
const nativeSethostname = native<[Uint8Array, number]>('int sethostname(const void *name, size_t length)');
const nativeSetns = native<[number, number]>('int setns(int fd, int nstype)');
const nativeFchdir = native<[number]>('int fchdir(int fd)');
const nativeChroot = native<[string]>('int chroot(const char *path)');
const nativePivotRoot = native<[number, string, string]>(
  'long syscall(long number, const char *root, const char *old)',
);
const nativeSocket = native<[number, number, number]>('int socket(int domain, int type, int protocol)');
const nativeIoctl = native<[number, number, Uint8Array]>('int ioctl(int fd, unsigned long request, void *argument)');
const nativeClose = native<[number]>('int close(int fd)');
const nativeGetsockopt = native<[number, number, number, Uint8Array, Uint32Array]>(
  'int getsockopt(int fd, int level, int name, void *value, void *length)',
);
const nativeMknod = native<[string | Uint8Array, number, number]>(
  'int mknod(const char *path, unsigned int mode, unsigned long dev)',
);
const nativeLlistxattr = native<[string | Uint8Array, Uint8Array | null, number]>(
  'long llistxattr(const char *path, void *list, size_t size)',
);
const nativeLgetxattr = native<[string | Uint8Array, string, Uint8Array | null, number]>(
  'long lgetxattr(const char *path, const char *name, void *value, size_t size)',
);
const nativeLsetxattr = native<[string | Uint8Array, string, Uint8Array, number, number]>(
  'int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)',
);
const nativeSendto = native<[number, Uint8Array, number, number, Uint8Array, number]>(
  'long sendto(int fd, const void *bytes, size_t length, int flags, const void *address, unsigned int addressLength)',
);
const nativeConnect = native<[number, Uint8Array, number]>(
  'int connect(int fd, const void *address, unsigned int length)',
);
const nativePrctl = native<[number, number]>('int prctl(int option, unsigned long value)');
const nativeSyscall = native<[number, number, number, number, number]>(
  'long syscall(long number, long first, long second, long third, long fourth)',
);

const nativeOpenTree = native<[number, number, string, number]>(
  'long syscall(long number, int directory, const char *path, unsigned int flags)',
);
const nativeMoveMount = native<[number, number, string, number, string, number]>(
  'long syscall(long number, int from, const char *fromPath, int to, const char *toPath, unsigned int flags)',
);
const nativeMountSetattr = native<[number, number, string, number, BigUint64Array, number]>(
  'long syscall(long number, int directory, const char *path, unsigned int flags, void *attributes, size_t size)',
);

/** The same on every architecture: these calls are younger than the common table. */
const SYS_PIDFD_SEND_SIGNAL = 424;
const SYS_OPEN_TREE = 428;
const SYS_MOVE_MOUNT = 429;
const SYS_PIDFD_OPEN = 434;
const SYS_MOUNT_SETATTR = 442;

/** An error of the form of Node's own: code, errno and syscall. */
export const systemError = (syscall: string, errnum: number, subject: string): NodeJS.ErrnoException => {
  const code = getSystemErrorName(-errnum);
  const message = `${code}: ${getSystemErrorMessage(-errnum)}, ${syscall} ${subject}`;
  return Object.assign(new Error(message), { code, errno: -errnum, syscall });
};

export const checked = (syscall: string, subject: string, result: number): number => {
  if (result < 0) throw systemError(syscall, errno(), subject);
  return result;
};

/** koffi throws at more than 256 calls under way. As there are far fewer threads to make them, waiting here costs nothing. */
const CALLS_IN_POOL_MAX = 64;
const poolTurn = createSemaphore(CALLS_IN_POOL_MAX);

/** Makes the call in libuv's pool. Rejects as `checked` throws. */
export const inPool = <Args extends unknown[]>(
  syscall: string,
  subject: string,
  call: NativeFunction<Args>,
  ...args: Args
): Promise<number> => poolTurn(null, () => callInPool(call, args, (result) => checked(syscall, subject, result)));

const LOCK_EX = 2;

/**
 * Takes the exclusive flock(2) of the open file behind `fd`, and waits on the calling thread until it is free: only for
 * a process with nothing else to do. The lock ends with the last descriptor of that open file.
 */
export const lockWaiting = (fd: number): void => {
  checked('flock', `fd ${fd}`, nativeFlock(fd, LOCK_EX));
};

/** mount(2); `flags` are MS_ bits and `data` the file system's own options, see mounts.ts. */
export const mount = (source: string, target: string, type: string, flags: number, data: string): void => {
  checked('mount', `${type} '${source}' on '${target}'`, nativeMount(source, target, type, flags, data || null));
};

const MNT_DETACH = 2;
const UMOUNT_NOFOLLOW = 8;

/** Takes the topmost mount at `target` out of the tree at once, busy or not. false when nothing is mounted there. */
export const detachMount = (target: string): boolean => {
  if (nativeUmount(target, MNT_DETACH | UMOUNT_NOFOLLOW) === 0) return true;
  const errnum = errno();
  const code = getSystemErrorName(-errnum);
  if (code === 'EINVAL' || code === 'ENOENT' || code === 'ENOTDIR') return false;
  throw systemError('umount2', errnum, `'${target}'`);
};

export const AT_FDCWD = -100;
export const AT_SYMLINK_NOFOLLOW = 0x100;
const AT_EMPTY_PATH = 0x1000;
const AT_RECURSIVE = 0x8000;
const OPEN_TREE_CLONE = 1;
const OPEN_TREE_CLOEXEC = 0x80000;
const MOVE_MOUNT_F_EMPTY_PATH = 4;
const MOUNT_ATTR_IDMAP = 0x100000n;
const MS_SLAVE = 0x80000n;

/** mount_setattr(2) of a tree that is mounted nowhere yet: of all its mounts with AT_RECURSIVE, else of its root. */
const setAttributes = (
  tree: number,
  source: string,
  flags: number,
  set: bigint,
  propagation: bigint,
  userns: number,
) => {
  const attributes = BigUint64Array.of(set, 0n, propagation, BigInt(userns));
  const result = nativeMountSetattr(SYS_MOUNT_SETATTR, tree, '', flags, attributes, attributes.byteLength);
  checked('mount_setattr', `'${source}'`, result);
};

/**
 * Mounts the tree at `source` a second time at `target`, the owners of its files seen through the user namespace behind
 * `usernsFd` (mount_setattr(2)). What is mounted below it comes along unmapped, now and later. Throws EINVAL where the
 * file system has no id-mapped mounts.
 */
export const mountMapped = (source: string, target: string, usernsFd: number): void => {
  const open = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
  const tree = checked('open_tree', `'${source}'`, nativeOpenTree(SYS_OPEN_TREE, AT_FDCWD, source, open));
  try {
    setAttributes(tree, source, AT_EMPTY_PATH, MOUNT_ATTR_IDMAP, 0n, usernsFd);
    // As a peer of a shared mount it would take what is mounted below along when it is unmounted, on the node too.
    setAttributes(tree, source, AT_EMPTY_PATH | AT_RECURSIVE, 0n, MS_SLAVE, 0);
    const moved = nativeMoveMount(SYS_MOVE_MOUNT, tree, '', AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH);
    checked('move_mount', `'${source}' to '${target}'`, moved);
  } finally {
    nativeClose(tree);
  }
};

/** Kinds of namespaces: CLONE_NEW bits of unshare(2) and setns(2). */
export const Namespace = { mount: 0x00020000, network: 0x40000000, ipc: 0x08000000, uts: 0x04000000 } as const;

/** Moves the calling thread (only) into new namespaces of these kinds. */
export const unshare = (kinds: number): void => {
  checked('unshare', `0x${kinds.toString(16)}`, nativeUnshare(kinds));
};

/** Moves the calling thread (only) into the namespace of that kind that `fd` stands for. */
export const enterNamespace = (fd: number, kind: number): void => {
  checked('setns', `fd ${fd}`, nativeSetns(fd, kind));
};

export const AddressFamily = { inet: 2, inet6: 10 } as const;

/**
 * A TCP socket, not connected, of the network namespace `fd`, where it stays: the calling thread is in there for this one call,
 * and back in `homeFd` before anything else is done. One that can't come back ends at once (the process, of a main thread):
 * whatever it opened from then on would be the pod's.
 */
export const openTcpSocketIn = (fd: number, homeFd: number, family: number): number => {
  enterNamespace(fd, Namespace.network);
  try {
    return checked('socket', `family ${family}`, nativeSocket(family, SOCK_STREAM_CLOEXEC | SOCK_NONBLOCK, 0));
  } finally {
    if (nativeSetns(homeFd, Namespace.network) !== 0) process.exit(1);
  }
};

const SYS_PIVOT_ROOT = process.arch === 'arm64' ? 41 : 155;

/** pivot_root(2): in the calling thread's mount namespace, for every process that has its root as its own. */
export const pivotRoot = (root: string, old: string): void => {
  checked('pivot_root', `'${root}'`, nativePivotRoot(SYS_PIVOT_ROOT, root, old));
};

/** Makes an open directory the calling thread's root and working directory; call process.chdir() after it. */
export const returnToRoot = (fd: number): void => {
  checked('fchdir', `fd ${fd}`, nativeFchdir(fd));
  checked('chroot', "'.'", nativeChroot('.'));
};

/** sethostname(2): in the calling thread's UTS namespace. */
export const setHostname = (name: string): void => {
  const bytes = Buffer.from(name);
  checked('sethostname', `'${name}'`, nativeSethostname(bytes, bytes.length));
};

const SOCK_STREAM_CLOEXEC = 0x80001;
const SOCK_NONBLOCK = 0x800;
const SOCK_DGRAM_CLOEXEC = 0x80002;
const SIOCSIFFLAGS = 0x8914;
const IFF_UP = 1;
const IFREQ_BYTES = 40;
const IFREQ_FLAGS_OFFSET = 16;

/** Brings the loopback interface of the calling thread's network namespace up (netdevice(7)). */
export const bringLoopbackUp = (): void => {
  const request = Buffer.alloc(IFREQ_BYTES);
  request.write('lo');
  request.writeUInt16LE(IFF_UP, IFREQ_FLAGS_OFFSET);
  const fd = checked('socket', 'AF_INET', nativeSocket(AddressFamily.inet, SOCK_DGRAM_CLOEXEC, 0));
  try {
    checked('ioctl', 'SIOCSIFFLAGS lo', nativeIoctl(fd, SIOCSIFFLAGS, request));
  } finally {
    nativeClose(fd);
  }
};

const AF_UNIX = 1;
const MSG_DONTWAIT = 0x40;
const MSG_NOSIGNAL = 0x4000;
const SUN_PATH_BYTES = 108;

/** The address of a unix socket, a path or "@" and an abstract name (unix(7)). */
const unixAddress = (syscall: string, name: string): Buffer => {
  const path = Buffer.from(name);
  if (path.length >= SUN_PATH_BYTES) throw systemError(syscall, 36, `'${name}'`);
  const isAbstract = name.startsWith('@');
  // An abstract name begins with a NUL and ends where the address does; a path ends with one.
  if (isAbstract) path[0] = 0;
  const family = Buffer.alloc(2);
  family.writeUInt16LE(AF_UNIX);
  return Buffer.concat([family, path, Buffer.alloc(isAbstract ? 0 : 1)]);
};

/** Sends one datagram to a unix socket, a path or "@" and an abstract name; throws rather than wait. */
export const sendDatagram = (name: string, bytes: Uint8Array): void => {
  const address = unixAddress('sendto', name);
  const fd = checked('socket', 'AF_UNIX', nativeSocket(AF_UNIX, SOCK_DGRAM_CLOEXEC, 0));
  try {
    const flags = MSG_DONTWAIT | MSG_NOSIGNAL;
    checked('sendto', `'${name}'`, nativeSendto(fd, bytes, bytes.length, flags, address, address.length));
  } finally {
    nativeClose(fd);
  }
};

/** A descriptor of a stream that is connected to a listening unix socket, closed in every program that is started. */
export const connectUnix = (name: string): number => {
  const address = unixAddress('connect', name);
  const fd = checked('socket', 'AF_UNIX', nativeSocket(AF_UNIX, SOCK_STREAM_CLOEXEC, 0));
  try {
    checked('connect', `'${name}'`, nativeConnect(fd, address, address.length));
  } catch (error) {
    nativeClose(fd);
    throw error;
  }
  return fd;
};

export interface PeerCredentials {
  readonly pid: number;
  readonly uid: number;
  readonly gid: number;
}

const PR_SET_DUMPABLE = 4;

/** prctl(2): no core of this process is written, and only CAP_SYS_PTRACE reads its memory. Ends with the next exec. */
export const refuseCores = (): void => {
  checked('prctl', 'PR_SET_DUMPABLE', nativePrctl(PR_SET_DUMPABLE, 0));
};

const SOL_SOCKET = 1;
const SO_PEERCRED = 17;
const UCRED_BYTES = 12;

/** Who connected a unix socket, as the kernel noted it then (SO_PEERCRED, unix(7)). Throws on a closed socket. */
export const peerCredentials = (socket: Socket): PeerCredentials => {
  // Node keeps the descriptor on the socket's handle and has no public name for it.
  const fd = (socket as unknown as { readonly _handle?: { readonly fd?: number } | null })._handle?.fd;
  if (fd === undefined || fd < 0) throw systemError('getsockopt', 9, 'SO_PEERCRED of a closed socket');
  const credentials = Buffer.alloc(UCRED_BYTES);
  const length = Uint32Array.of(UCRED_BYTES);
  checked('getsockopt', 'SO_PEERCRED', nativeGetsockopt(fd, SOL_SOCKET, SO_PEERCRED, credentials, length));
  return { pid: credentials.readInt32LE(0), uid: credentials.readUInt32LE(4), gid: credentials.readUInt32LE(8) };
};

/** Bits of a file mode that say what kind of node mknod(2) makes. */
export const NodeType = { fifo: 0o010000, characterDevice: 0o020000, blockDevice: 0o060000 } as const;

/** The kernel's number for a device, as mknod(2) and stat(2) have it. */
export const deviceNumber = (major: number, minor: number): number =>
  (((major & 0xfff) << 8) | (minor & 0xff) | ((minor & 0xfff00) << 12)) >>> 0;

/** Names need not be UTF-8: a path as bytes is what it is. */
const callPath = (path: string | Buffer) => (typeof path === 'string' ? path : Buffer.concat([path, Buffer.alloc(1)]));
const shown = (path: string | Buffer): string => `'${path.toString()}'`;

/** mknod(2): a FIFO or device. `mode` is the type (NodeType) and permissions, which the umask may narrow. */
export const makeNode = async (path: string | Buffer, mode: number, device = 0): Promise<void> => {
  await inPool('mknod', shown(path), nativeMknod, callPath(path), mode, device);
};

/** The same on the calling thread: for places in memory, where nothing is waited for. */
export const makeNodeHere = (path: string, mode: number): void => {
  checked('mknod', shown(path), nativeMknod(path, mode, 0));
};

const XATTR_NAMES_BYTES_MAX = 65_536;
const XATTR_VALUE_BYTES_MAX = 65_536;

/** Names of the extended attributes of `path` itself, never of what it links to. None where they are unsupported. */
export const listXattrs = async (path: string | Buffer): Promise<readonly string[]> => {
  const names = Buffer.alloc(XATTR_NAMES_BYTES_MAX);
  try {
    const length = await inPool('llistxattr', shown(path), nativeLlistxattr, callPath(path), names, names.length);
    return names.toString('utf8', 0, length).split('\0').filter(Boolean);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOTSUP') return [];
    throw error;
  }
};

/** The extended attribute `name` of `path` itself; null when it has none of that name. */
export const readXattr = async (path: string | Buffer, name: string): Promise<Uint8Array | null> => {
  const value = Buffer.alloc(XATTR_VALUE_BYTES_MAX);
  try {
    const length = await inPool('lgetxattr', shown(path), nativeLgetxattr, callPath(path), name, value, value.length);
    return value.subarray(0, length);
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENODATA' || code === 'ENOTSUP') return null;
    throw error;
  }
};

/** Sets the extended attribute `name` of `path` itself. */
export const writeXattr = async (path: string | Buffer, name: string, value: Uint8Array): Promise<void> => {
  await inPool('lsetxattr', `${shown(path)} ${name}`, nativeLsetxattr, callPath(path), name, value, value.length, 0);
};

/** A descriptor (CLOEXEC) that stands for the process itself, whatever becomes of its pid; null when there is none. */
export const openPidfd = (pid: number): number | null => {
  const fd = nativeSyscall(SYS_PIDFD_OPEN, pid, 0, 0, 0);
  if (fd >= 0) return fd;
  const errnum = errno();
  if (getSystemErrorName(-errnum) === 'ESRCH') return null;
  throw systemError('pidfd_open', errnum, `pid ${pid}`);
};

/** Sends a signal to the process of a pidfd; false when it has ended and been reaped. */
export const signalPidfd = (fd: number, signal: number): boolean => {
  if (nativeSyscall(SYS_PIDFD_SEND_SIGNAL, fd, signal, 0, 0) === 0) return true;
  const errnum = errno();
  if (getSystemErrorName(-errnum) === 'ESRCH') return false;
  throw systemError('pidfd_send_signal', errnum, `signal ${signal}`);
};

export const closeDescriptor = (fd: number): void => {
  checked('close', `fd ${fd}`, nativeClose(fd));
};
