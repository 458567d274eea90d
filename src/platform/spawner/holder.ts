/**
 * Processes of others and their namespaces, in the spawner's process: found by pid, and known by the time they started, so
 * that a process that has a pid later is never taken for the one that was meant.
 */
import { closeSync, openSync, readFileSync } from 'node:fs';
import { FailureError } from '../../domain/model/errors.ts';
import { type ProcessStat, parseProcessStat } from '../linux/processes.ts';
import { errorCodeOf } from '../error-code.ts';
import type { ProcessName } from './types.ts';

/** null: there is no such process. */
export const statOf = (pid: string | number): ProcessStat | null => {
  try {
    return parseProcessStat(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return null;
  }
};

const gone = ({ pid }: ProcessName): FailureError =>
  new FailureError(
    'WrongState',
    `Process ${pid}, which holds the namespaces of the pod, has ended: make the pod anew.`,
  );

/** A descriptor of a namespace of the process. Throws FailureError WrongState when it has ended. */
export const openNamespaceOf = (holder: ProcessName, kind: 'net' | 'user'): number => {
  let fd: number;
  try {
    fd = openSync(`/proc/${holder.pid}/ns/${kind}`, 'r');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT' || errorCodeOf(error) === 'ESRCH') throw gone(holder);
    throw error;
  }
  // Looked at after: what was opened was that of the process that is there now.
  if (statOf(holder.pid)?.startTicks === holder.startTicks) return fd;
  closeSync(fd);
  throw gone(holder);
};
