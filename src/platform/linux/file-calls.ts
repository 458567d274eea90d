/**
 * The calls that files and small trees of the daemon's own are made of, in two kinds that do the same:
 *
 *   pooled    libuv's threads wait for the disk; each call is a turn of the loop and two changes of thread
 *   direct    on the calling thread, for places in memory alone, where there is nothing to wait for; but rmdir
 *
 * Which kind a place has is asked of its file system, once (docs/decisions/files-in-memory.md). Both fail as node:fs does.
 */
import {
  chmodSync,
  chownSync,
  closeSync,
  constants,
  fchmodSync,
  fstatSync,
  lstatSync,
  mkdirSync,
  open as openCallback,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  type Stats,
  statfsSync,
  statSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  open,
  readdir,
  rename,
  rmdir,
  stat,
  statfs,
  unlink,
  utimes,
} from 'node:fs/promises';
import { promisify } from 'node:util';
import { isAtOrBelow } from './mounts.ts';
import { makeNode, makeNodeHere } from './syscalls.ts';

export interface DirectoryEntry {
  readonly name: Buffer;
  readonly isDirectory: () => boolean;
}

export interface FileCalls {
  /** One directory, or with all that are missing above it. */
  readonly mkdir: (path: string, options: { readonly mode: number; readonly recursive?: boolean }) => Promise<unknown>;
  readonly chmod: (path: string, mode: number) => Promise<void>;
  /** Seconds since 1970: of the last access, of the last change. */
  readonly utimes: (path: string, accessed: number, changed: number) => Promise<void>;
  readonly chown: (path: string, uid: number, gid: number) => Promise<void>;
  readonly rename: (from: string, to: string) => Promise<void>;
  readonly unlink: (path: string | Buffer) => Promise<void>;
  readonly rmdir: (path: string | Buffer) => Promise<void>;
  readonly mknod: (path: string, mode: number) => Promise<void>;
  /** A descriptor, which the caller closes. Direct ones never wait for a FIFO's other side: the caller says O_NONBLOCK. */
  readonly open: (path: string, flags: number, mode?: number) => Promise<number>;
  /** Number of the kind of file system, as statfs(2) has it. */
  readonly fileSystem: (path: string) => Promise<number>;
  readonly stat: (path: string) => Promise<Stats>;
  readonly lstat: (path: string) => Promise<Stats>;
  readonly names: (directory: string) => Promise<readonly string[]>;
  readonly entries: (directory: Buffer) => Promise<readonly DirectoryEntry[]>;
  /** The whole of a file; null when it has more bytes than that. Follows no link in its place. */
  readonly content: (path: string, bytesMax: number) => Promise<Buffer | null>;
  /** Makes the file or empties it, fills it, and gives it the mode whatever the umask is. Follows no link in its place. */
  readonly fill: (path: string, content: string | Uint8Array, mode: number) => Promise<void>;
}

/** The calls for a path. */
export type CallsAt = (path: string) => FileCalls;

const WRITE_FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW;
const NAMES_AS_BYTES = { withFileTypes: true, encoding: 'buffer' } as const;

const fillPooled: FileCalls['fill'] = async (path, content, mode) => {
  const file = await open(path, WRITE_FLAGS, mode);
  try {
    await file.writeFile(content);
    await file.chmod(mode);
  } finally {
    await file.close();
  }
};

const fillDirect = (path: string, content: string | Uint8Array, mode: number): void => {
  const file = openSync(path, WRITE_FLAGS, mode);
  try {
    writeFileSync(file, content);
    fchmodSync(file, mode);
  } finally {
    closeSync(file);
  }
};

const READ_FLAGS = constants.O_RDONLY | constants.O_NOFOLLOW;

const contentPooled: FileCalls['content'] = async (path, bytesMax) => {
  const file = await open(path, READ_FLAGS);
  try {
    const { size } = await file.stat();
    return size > bytesMax ? null : await file.readFile();
  } finally {
    await file.close();
  }
};

const contentDirect = (path: string, bytesMax: number): Buffer | null => {
  const file = openSync(path, READ_FLAGS);
  try {
    return fstatSync(file).size > bytesMax ? null : readFileSync(file);
  } finally {
    closeSync(file);
  }
};

const openPooled = promisify(openCallback);

export const pooledCalls: FileCalls = {
  mkdir,
  chmod,
  utimes,
  chown,
  rename,
  unlink,
  rmdir,
  mknod: makeNode,
  open: (path, flags, mode = 0) => openPooled(path, flags, mode),
  fileSystem: async (path) => (await statfs(path)).type,
  stat,
  lstat,
  names: (directory) => readdir(directory),
  entries: (directory) => readdir(directory, NAMES_AS_BYTES),
  content: contentPooled,
  fill: fillPooled,
};

const directCalls: FileCalls = {
  mkdir: (path, options) => Promise.try(mkdirSync, path, options),
  chmod: (path, mode) => Promise.try(chmodSync, path, mode),
  utimes: (path, accessed, changed) => Promise.try(utimesSync, path, accessed, changed),
  chown: (path, uid, gid) => Promise.try(chownSync, path, uid, gid),
  rename: (from, to) => Promise.try(renameSync, from, to),
  unlink: (path) => Promise.try(unlinkSync, path),
  // Somewhere else it may still be a mount point, of which the kernel then waits until every processor has let go.
  rmdir,
  mknod: (path, mode) => Promise.try(makeNodeHere, path, mode),
  open: (path, flags, mode = 0) => Promise.try(openSync, path, flags, mode),
  fileSystem: (path) => Promise.try(() => statfsSync(path).type),
  stat: (path) => Promise.try(() => statSync(path)),
  lstat: (path) => Promise.try(() => lstatSync(path)),
  names: (directory) => Promise.try(() => readdirSync(directory)),
  entries: (directory) => Promise.try(() => readdirSync(directory, NAMES_AS_BYTES)),
  content: (path, bytesMax) => Promise.try(contentDirect, path, bytesMax),
  fill: (path, content, mode) => Promise.try(fillDirect, path, content, mode),
};

export const pooledEverywhere: CallsAt = () => pooledCalls;

/** tmpfs and ramfs, by statfs(2). Nothing of them is on a disk, unless the node swaps. */
const IN_MEMORY: ReadonlySet<number> = new Set([0x01021994, 0x858458f6]);

/** Direct ones at and below the directory if its file system is in memory now; pooled ones for all else. */
export const callsWithin = async (directory: string): Promise<CallsAt> =>
  IN_MEMORY.has(await pooledCalls.fileSystem(directory))
    ? (path) => (isAtOrBelow(path, directory) ? directCalls : pooledCalls)
    : pooledEverywhere;
