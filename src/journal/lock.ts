/**
 * Locks of the one process that may be somewhere: an exclusive flock on a file of its own, held until it is given back or
 * the process ends, so that no two daemons ever write one journal. The descriptor is close-on-exec (Node opens all of them so): no child inherits it.
 * Lives here and not with the other system calls because the journal imports nothing of the rest of the project.
 */
import { closeSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs';
import koffi from 'koffi';
import { JournalError } from './errors.ts';

const LOCK_EX = 2;
const LOCK_NB = 4;
const fileMode = 0o600;

const flock = koffi.load(null).func('int flock(int fd, int operation)');

const holderOf = (path: string): string => {
  const pid = readFileSync(path, 'utf8').trim();
  return /^\d+$/.test(pid) ? `process ${pid}` : 'another process';
};

/** For whoever comes later. A full disk, for which a start gives its reserve up only behind the lock, has no room for it. */
const leavePid = (fd: number): void => {
  try {
    ftruncateSync(fd);
    writeSync(fd, `${process.pid}\n`);
  } catch {
    // The lock is held all the same, by a process without a name.
  }
};

/** Takes the lock or throws Locked, naming `what` is taken, who holds it, and the remedy. The returned function gives it back. */
export const takeLock = (path: string, what: string, remedy = 'Stop it first.'): (() => void) => {
  const fd = openSync(path, 'a+', fileMode);
  if (flock(fd, LOCK_EX | LOCK_NB) !== 0) {
    const errno = koffi.errno();
    closeSync(fd);
    if (errno !== koffi.os.errno.EWOULDBLOCK && errno !== koffi.os.errno.EAGAIN) {
      throw new JournalError('Unsafe', `Locking ${path} failed with errno ${errno}.`);
    }
    throw new JournalError('Locked', `${what} is in use: ${holderOf(path)} holds ${path}. ${remedy}`);
  }
  leavePid(fd);
  return () => closeSync(fd);
};
