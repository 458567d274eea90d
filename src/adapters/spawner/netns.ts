/**
 * Makes network namespaces, in the spawner's process: a thread moves into a new one, pins it by a bind mount and moves
 * back within one synchronous turn. Must only be used where that thread starts all programs: were it left in the wrong
 * namespace, everything after would be too, so a failed way back ends the process.
 */
import { closeSync, constants, openSync, statfsSync } from 'node:fs';
import { mountCalls } from '../linux/mounts.ts';
import { bringLoopbackUp, enterNetwork, mount, unshareNetwork } from '../linux/syscalls.ts';

const OWN_NETNS = '/proc/thread-self/ns/net';
/** statfs(2) type of the file system that namespaces are seen through. */
const NSFS_MAGIC = 0x6e736673;

/** mount(2) with options in the words of mount(8). */
export const mountAs = (source: string, target: string, type: string, options: readonly string[]): void => {
  for (const call of mountCalls(options)) mount(source, target, type, call.flags, call.data);
};

const returnTo = (home: number): void => {
  try {
    enterNetwork(home);
  } catch (error) {
    process.stderr.write(`The spawner can not return to its network namespace and ends: ${String(error)}\n`);
    process.exit(1);
  }
};

/** Makes a namespace with loopback up and mounts it at `path`; the file is made if missing. Done already is success. */
export const createNetns = (path: string): void => {
  closeSync(openSync(path, constants.O_RDONLY | constants.O_CREAT | constants.O_NOFOLLOW, 0o444));
  if (statfsSync(path).type === NSFS_MAGIC) return;
  const home = openSync(OWN_NETNS, 'r');
  try {
    unshareNetwork();
    try {
      bringLoopbackUp();
      mountAs(OWN_NETNS, path, 'none', ['bind']);
    } finally {
      returnTo(home);
    }
  } finally {
    closeSync(home);
  }
};
