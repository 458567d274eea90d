/**
 * Takes away a container's cgroup when nobody else will: an OCI runtime that was killed while it made a container leaves
 * the cgroup behind, and no record of it that a later `delete` could go by. Must touch nothing but the named cgroup and
 * what is below it.
 */
import { readdir, readFile, rmdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { FailureError } from '../../domain/model/errors.ts';
import { SIGKILL } from '../../domain/values/signals.ts';
import { cgroupDirectory } from './cgroup-path.ts';
import { readMountInfo } from './mounts.ts';
import { holdProcess, readProcessStat } from './processes.ts';
import { errorCodeOf } from '../error-code.ts';

/** A killed process leaves its cgroup a moment after it counts as ended, which nothing tells in version 1. */
const AGAIN_MS = 10;

const unlessGone = async <T>(work: Promise<T>, gone: T): Promise<T> => {
  try {
    return await work;
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ENODEV') return gone;
    throw error;
  }
};

/** The cgroup and all below it, deepest first; nothing when it is not there. */
const treeOf = async (directory: string): Promise<string[]> => {
  const entries = await unlessGone(readdir(directory, { withFileTypes: true }), null);
  if (entries === null) return [];
  const below = entries.filter((entry) => entry.isDirectory()).map(({ name }) => treeOf(join(directory, name)));
  return [...(await Promise.all(below)).flat(), directory];
};

/** Ends every process in the cgroup; those that fork meanwhile are found the next time. */
const killAll = async (directory: string): Promise<void> => {
  const pids = (await unlessGone(readFile(join(directory, 'cgroup.procs'), 'utf8'), '')).split('\n').filter(Boolean);
  for (const pid of pids) {
    const stat = await readProcessStat(Number(pid));
    const held = stat === null ? null : await holdProcess(stat);
    held?.kill(SIGKILL);
    held?.release();
  }
};

/** False while something is still in it. */
const removeOnce = async (directory: string): Promise<boolean> => {
  let isEmpty = true;
  for (const cgroup of await treeOf(directory)) {
    try {
      await unlessGone(rmdir(cgroup), undefined);
    } catch (error) {
      if (errorCodeOf(error) !== 'EBUSY') throw error;
      isEmpty = false;
      await killAll(cgroup);
    }
  }
  return isEmpty;
};

/**
 * Removes the cgroup that linux.cgroupsPath of a spec names (either form) from every hierarchy, with all below it, and
 * kills what is in them. One that is not there is success. Rejects with HostFailed when `timeoutMs` do not suffice.
 */
export const removeCgroup = async (cgroupsPath: string, timeoutMs: number): Promise<void> => {
  const path = cgroupDirectory(cgroupsPath);
  if (path === null) return;
  const mounts = await readMountInfo(({ line }) => / - cgroup2? /.test(line));
  const directories = [...new Set(mounts.map(({ mountPoint }) => join(mountPoint, path)))];
  const giveUpAtMs = performance.now() + timeoutMs;
  while (!(await Promise.all(directories.map(removeOnce))).every(Boolean)) {
    if (performance.now() > giveUpAtMs) {
      throw new FailureError('HostFailed', `The cgroup ${path} cannot be removed: a process in it does not end.`);
    }
    await sleep(AGAIN_MS);
  }
};
