/**
 * Root and state directory: made where they are missing, and narrowed where others than the daemon's user may do more
 * in them than they should, whoever made them. A directory that was too open is a finding: somebody may have used it.
 * Must not touch what lies deeper: behind these directories nobody else gets.
 */
import { chmodSync, chownSync, realpathSync, type Stats, statSync } from 'node:fs';
import { join } from 'node:path';
import { errorCodeOf } from '../platform/error-code.ts';
import { FailureError, messageOf } from '../domain/model/errors.ts';
import type { Config } from '../config/config.ts';
import { DIRECTORIES_OF_NODE } from '../domain/oci/directories-of-node.ts';
import { makeDirectoriesSync } from '../platform/linux/make-directories.ts';

const ROOT_MODE = 0o700;
/** Root of a pod with users of its own goes through it to what is the pod's. */
const PASSABLE_MODE = 0o711;
const KEY_MODE = 0o600;
const PERMISSIONS = 0o7777;

/** Those of the state directory that hold a directory or a file for each pod. */
const STATE_DIRECTORIES = ['bundles', 'sandboxes', 'netns', 'ipcns', 'utsns'];

const octal = (mode: number): string => (mode & PERMISSIONS).toString(8).padStart(4, '0');

function statsOf(path: string): Stats | null {
  try {
    return statSync(path);
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

function narrow(path: string, mode: number, report: (message: string) => void): void {
  const stats = statsOf(path);
  if (stats === null) return;
  if (DIRECTORIES_OF_NODE.includes(realpathSync(path))) {
    report(`${path} is a directory that others on this node need as it is, and was left so: give scribe one below it.`);
    return;
  }
  const owner = process.geteuid?.() ?? 0;
  if (stats.uid !== owner) {
    chownSync(path, owner, process.getegid?.() ?? 0);
    report(`${path} belonged to user ${stats.uid}, who may have changed what is in it; it is the daemon's now.`);
  }
  if ((stats.mode & PERMISSIONS & ~mode) !== 0) {
    chmodSync(path, stats.mode & mode);
    report(
      `${path} had mode ${octal(stats.mode)}, so that others could reach into it; it has ${octal(stats.mode & mode)} now.`,
    );
  }
}

/** Throws FailureError that says which directory it was, and how to name another one. */
function make(option: 'root' | 'state', path: string, mode: number): void {
  try {
    makeDirectoriesSync(path, mode);
  } catch (error) {
    const remedy = `Take away what is in the way, or name another directory (--${option}, or ${option} of [serve]).`;
    throw new FailureError('HostFailed', `There can be no directory ${path}: ${messageOf(error)}. ${remedy}`, {
      cause: error,
    });
  }
}

/** Throws FailureError where a directory can't be made. */
export function makePlaces({ rootDir, stateDir }: Config['serve'], report: (message: string) => void): void {
  make('root', rootDir, ROOT_MODE);
  make('state', stateDir, PASSABLE_MODE);
  narrow(rootDir, ROOT_MODE, report);
  narrow(stateDir, PASSABLE_MODE, report);
  narrow(join(rootDir, 'secrets.key'), KEY_MODE, report);
  for (const name of STATE_DIRECTORIES) narrow(join(stateDir, name), PASSABLE_MODE, report);
}
