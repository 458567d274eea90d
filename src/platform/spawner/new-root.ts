/**
 * Gives a running program another root directory, in the spawner's process: its thread moves into the program's mount
 * namespace, where pivot_root(2) moves every process that had the old root, and back within one synchronous turn. So the
 * program itself needs no right to do it. Must only be used where that thread starts all programs, as namespaces.ts.
 */
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { detachMount, enterNamespace, Namespace, pivotRoot, returnToRoot, unshare } from '../linux/syscalls.ts';
import { mountAs } from './mounts.ts';
import type { NewRoot } from './types.ts';

/** unshare(2): root and working directory are this thread's own from then on, as setns(2) wants them to be. */
const CLONE_FS = 0x200;
const HARMLESS = ['nosuid', 'nodev', 'noexec'] as const;

/**
 * Makes `directory` the root of the processes in the mount namespace of process `pid`, and leaves them no way to what
 * was outside of it. Devices and set-user-ID programs are of no effect there. What is read-only is a mount of its own: a
 * file that has another name elsewhere can't be changed by the one that it has there.
 */
export const giveNewRoot = (pid: number, { directory, readOnly }: NewRoot): void => {
  const cwd = process.cwd();
  const [root, home, theirs] = ['/', '/proc/thread-self/ns/mnt', `/proc/${pid}/ns/mnt`].map((path) =>
    openSync(path, 'r'),
  ) as [number, number, number];
  try {
    unshare(CLONE_FS);
    enterNamespace(theirs, Namespace.mount);
    try {
      mountAs(directory, directory, 'none', ['bind', ...HARMLESS]);
      if (readOnly !== undefined) {
        const path = join(directory, readOnly);
        mountAs(path, path, 'none', ['bind', 'ro', ...HARMLESS]);
      }
      process.chdir(directory);
      pivotRoot('.', '.');
      // Both are at "." now, the old root on top.
      detachMount('.');
    } finally {
      try {
        enterNamespace(home, Namespace.mount);
        returnToRoot(root);
        process.chdir(cwd);
      } catch (error) {
        process.stderr.write(`The spawner cannot return to its mount namespace and ends: ${String(error)}\n`);
        process.exit(1);
      }
    }
  } finally {
    for (const fd of [root, home, theirs]) closeSync(fd);
  }
};
