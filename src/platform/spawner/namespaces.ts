/**
 * Makes namespaces of pods, in the spawner's process, and looks into them: a thread moves into new ones, sets in them what is asked
 * for, pins them by bind mounts and moves back within one synchronous turn. Must only be used where that thread starts all
 * programs: were it left in the wrong namespace, everything after would be too, so a failed way back ends the process.
 */
import { closeSync, constants, mkdirSync, openSync, readSync, statfsSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { errorCodeOf } from '../error-code.ts';
import { bringLoopbackUp, detachMount, enterNamespace, Namespace, setHostname, unshare } from '../linux/syscalls.ts';
import { openNamespaceOf } from './holder.ts';
import { DIRECTORY_MODE, mountAs } from './mounts.ts';
import type { NamespacesRequest, ProcessName } from './types.ts';

/** statfs(2) type of the file system that namespaces are seen through. */
const NSFS_MAGIC = 0x6e736673;

interface Kind {
  readonly name: 'network' | 'ipc' | 'uts';
  readonly flag: number;
  readonly file: string;
}

const KINDS: readonly Kind[] = [
  { name: 'network', flag: Namespace.network, file: '/proc/thread-self/ns/net' },
  { name: 'ipc', flag: Namespace.ipc, file: '/proc/thread-self/ns/ipc' },
  { name: 'uts', flag: Namespace.uts, file: '/proc/thread-self/ns/uts' },
];

const returnTo = (flag: number, home: number): void => {
  try {
    enterNamespace(home, flag);
  } catch (error) {
    process.stderr.write(`The spawner cannot return to its namespaces and ends: ${String(error)}\n`);
    process.exit(1);
  }
};

/** A dot parts a name; a slash stands for a dot within a part, as in the names of some network interfaces. */
const sysctlFile = (name: string): string =>
  `/proc/sys/${name.replace(/[./]/g, (separator) => (separator === '.' ? '/' : '.'))}`;

/** What the kernel says of a parameter that there is none of, that cannot be changed, or that takes no such value. */
const IMPOSSIBLE: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'EACCES', 'EPERM', 'EINVAL', 'ERANGE']);

const setSysctl = (name: string, value: string): void => {
  try {
    writeFileSync(sysctlFile(name), value);
  } catch (error) {
    const code = errorCodeOf(error) ?? '';
    if (!IMPOSSIBLE.has(code)) throw error;
    const problem = `cannot be set to ${JSON.stringify(value)} in a pod (${code}): leave it out, or give a value that it takes`;
    throw new FailureError('InvalidField', `linux.sysctls[${name}] ${problem}.`);
  }
};

/** What a namespace is mounted over, and the directory it is in; what is there is left as it is. */
const makeFile = (path: string): void => {
  try {
    mkdirSync(dirname(path), DIRECTORY_MODE);
  } catch (error) {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
  }
  closeSync(openSync(path, constants.O_RDONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o444));
};

const isPinned = (path: string): boolean => statfsSync(path).type === NSFS_MAGIC;

/**
 * Makes a namespace of each kind that has a path and mounts it there; the file is made if missing. All of them being
 * there already is success; what an earlier try made a part of is made anew.
 */
export const pinNamespaces = ({ pins, hostname, sysctls }: NamespacesRequest): void => {
  const wanted = KINDS.flatMap((kind) => {
    const path = pins[kind.name];
    return path === null ? [] : [{ ...kind, path }];
  });
  for (const { path } of wanted) makeFile(path);
  if (wanted.every(({ path }) => isPinned(path))) return;
  for (const { path } of wanted) if (isPinned(path)) detachMount(path);
  const homes = wanted.map(({ flag, file }) => ({ flag, fd: openSync(file, 'r') }));
  try {
    unshare(wanted.reduce((flags, { flag }) => flags | flag, 0));
    try {
      if (pins.network !== null) bringLoopbackUp();
      if (pins.uts !== null && hostname !== null) setHostname(hostname);
      for (const [name, value] of Object.entries(sysctls)) setSysctl(name, value);
      for (const { file, path } of wanted) mountAs(file, path, 'none', ['bind']);
    } finally {
      for (const { flag, fd } of homes) returnTo(flag, fd);
    }
  } finally {
    for (const { fd } of homes) closeSync(fd);
  }
};

/** Does something in the network namespace that an open file stands for. */
const inNetns = <T>(fd: number, work: () => T): T => {
  const home = openSync('/proc/thread-self/ns/net', 'r');
  try {
    enterNamespace(fd, Namespace.network);
    try {
      return work();
    } finally {
      returnTo(Namespace.network, home);
    }
  } finally {
    closeSync(home);
  }
};

/** The network namespace of a process that made it itself, pinned at `path`. Already being there is success. */
export const pinNetnsOf = (holder: ProcessName, path: string): void => {
  makeFile(path);
  if (isPinned(path)) return;
  const fd = openNamespaceOf(holder, 'net');
  try {
    inNetns(fd, bringLoopbackUp);
    mountAs(`/proc/self/fd/${fd}`, path, 'none', ['bind']);
  } finally {
    closeSync(fd);
  }
};

/** Some five hundred interfaces. */
const netDev = Buffer.alloc(64 * 1024);

/** As much of a file as there is room for: the kernel gives it a page at a time. */
const readInto = (buffer: Buffer, path: string): string => {
  const fd = openSync(path, 'r');
  try {
    let length = 0;
    for (let read = -1; read !== 0 && length < buffer.length; length += read)
      read = readSync(fd, buffer, length, buffer.length - length, null);
    return buffer.toString('latin1', 0, length);
  } finally {
    closeSync(fd);
  }
};

/** What the kernel tells of the interfaces in the namespace that is pinned at a path; null where none is. */
export const readNetDev = (path: string): string | null => {
  let fd: number;
  try {
    fd = openSync(path, 'r');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
  try {
    return isPinned(path) ? inNetns(fd, () => readInto(netDev, '/proc/thread-self/net/dev')) : null;
  } finally {
    closeSync(fd);
  }
};
