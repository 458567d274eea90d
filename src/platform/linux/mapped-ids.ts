/**
 * Whether this machine can give pods users of their own, as far as its kernel's settings and its directories go: what an
 * OCI runtime and the kernel's version have to do with it is asked elsewhere. Reads only.
 */
import { readFile, stat, statfs } from 'node:fs/promises';
import { dirname } from 'node:path';
import { messageOf } from '../../domain/model/errors.ts';
import { errorCodeOf } from '../error-code.ts';
import { hiddenPartOfKernelFiles, REVEALING } from './hidden-parts.ts';
import { readMountsOn } from './mounts.ts';

/** statfs(2) types of file systems that the kernel mounts with mapped ids, and that image layers are put on. */
const MAPPABLE = new Set([
  0xef53, // ext4
  0x58465342, // xfs
  0x9123683e, // btrfs
  0xf2f52010, // f2fs
  0x2fc12fc1, // zfs
  0x01021994, // tmpfs
]);

const PASSABLE_BY_OTHERS = 0o001;

/** Looks at `path`, or where it is not there yet at what it will be made in. */
const atExisting = async <T>(path: string, look: (path: string) => Promise<T>): Promise<T> => {
  try {
    return await look(path);
  } catch (error) {
    if (errorCodeOf(error) !== 'ENOENT' || path === dirname(path)) throw error;
    return atExisting(dirname(path), look);
  }
};

const closedPart = async (path: string): Promise<string | null> => {
  const { mode } = await atExisting(path, (existing) => stat(existing));
  const above = path === dirname(path) ? null : await closedPart(dirname(path));
  return above ?? ((mode & PASSABLE_BY_OTHERS) === 0 ? path : null);
};

export interface UserNamespacePlaces {
  readonly rootDir: string;
  readonly stateDir: string;
}

export interface UserNamespaceObstacle {
  readonly what: string;
  readonly remedy: string;
}

const look = async ({ rootDir, stateDir }: UserNamespacePlaces): Promise<UserNamespaceObstacle | null> => {
  const most = await readFile('/proc/sys/user/max_user_namespaces', 'utf8').catch(() => '0');
  if (!(Number(most) > 0))
    return { what: 'the kernel makes no user namespaces', remedy: 'raise user.max_user_namespaces' };
  const hidden = hiddenPartOfKernelFiles(await readMountsOn(REVEALING));
  if (hidden !== null)
    return {
      what: `${hidden}, and then the kernel lets such a pod mount no /proc and /sys of its own`,
      remedy: 'start the daemon where /proc and /sys are whole and writable (in a container: a privileged one)',
    };
  const { type } = await atExisting(rootDir, (path) => statfs(path));
  if (!MAPPABLE.has(type))
    return { what: `${rootDir} is on a file system without id-mapped mounts`, remedy: 'put it on ext4, xfs or btrfs' };
  const closed = await closedPart(stateDir);
  if (closed === null) return null;
  return {
    what: `root of such a pod, who is somebody else here, cannot pass ${closed}`,
    remedy: `chmod o+x ${closed}`,
  };
};

/** What stands in the way; null when nothing does. Never rejects. */
export const obstacleToUserNamespaces = async (places: UserNamespacePlaces): Promise<UserNamespaceObstacle | null> => {
  try {
    return await look(places);
  } catch (error) {
    return { what: messageOf(error), remedy: 'check root and state of [serve]' };
  }
};
