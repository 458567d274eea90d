/**
 * Mounts that the spawner makes for the daemon, any file system or bind mount, and trees whose owners are seen through a
 * user namespace; and those that it takes away again. Each call does all of it in one synchronous turn, where it may stall without stalling the daemon.
 */
import { closeSync, constants, mkdirSync, openSync, rmSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { FailureError } from '../../domain/model/errors.ts';
import { mountCalls } from '../linux/mounts.ts';
import { errorCodeOf } from '../error-code.ts';
import { detachMount, mount, mountMapped } from '../linux/syscalls.ts';
import { openNamespaceOf } from './holder.ts';
import type { MappedMountsRequest, Spawner } from './types.ts';

/** mount(2) with options in the words of mount(8). */
export const mountAs = (source: string, target: string, type: string, options: readonly string[]): void => {
  for (const call of mountCalls(options)) mount(source, target, type, call.flags, call.data);
};

/** As mountAs, with paths in the options relative to a directory. */
export const mountFrom = ({ source, target, type, options, from }: Parameters<Spawner['mount']>[0]): void => {
  if (from === undefined) return mountAs(source, target, type, options);
  const home = process.cwd();
  process.chdir(from);
  try {
    mountAs(source, target, type, options);
  } finally {
    process.chdir(home);
  }
};

/** Of directories that are made on the way to a target. */
export const DIRECTORY_MODE = 0o711;
const FILE_MODE = 0o600;

/** What is mounted has to be mounted over something like it. */
const makeTarget = (source: string, target: string): void => {
  if (statSync(source).isDirectory()) return void mkdirSync(target, { recursive: true, mode: DIRECTORY_MODE });
  mkdirSync(dirname(target), { recursive: true, mode: DIRECTORY_MODE });
  closeSync(openSync(target, constants.O_RDONLY | constants.O_CREAT | constants.O_NOFOLLOW, FILE_MODE));
};

/** Throws FailureError HostLacks for a tree on a file system without id-mapped mounts; those before it stay mounted. */
export const mountAllMapped = ({ holder, mounts }: MappedMountsRequest): void => {
  const userns = openNamespaceOf(holder, 'user');
  try {
    for (const { source, target } of mounts) {
      makeTarget(source, target);
      try {
        mountMapped(source, target, userns);
      } catch (cause) {
        if (errorCodeOf(cause) !== 'EINVAL') throw cause;
        const message = `${source} is on a file system that cannot be mounted with mapped ids: put it on another (ext4, xfs, tmpfs), or set hostUsers: true.`;
        throw new FailureError('HostLacks', message, { cause });
      }
    }
  } finally {
    closeSync(userns);
  }
};

/** More mounts on one spot than anything of ours stacks: a bound for a loop that the mount table would end. */
const STACKED_MOUNTS_MAX = 64;

/** Everything that is mounted on one spot. */
export const unmountAll = (target: string): void => {
  for (let left = STACKED_MOUNTS_MAX; left > 0 && detachMount(target); ) left -= 1;
};

/** Takes away what namespaces are pinned at. */
export const unpin = (paths: readonly string[]): void => {
  for (const path of paths) {
    unmountAll(path);
    rmSync(path, { force: true });
  }
};
