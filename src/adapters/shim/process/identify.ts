/**
 * Finds shims among the processes of the host. A shim's word about itself is checked against /proc before anything is
 * done to a process: a confused shim must not get another process killed.
 */
import { readFile, readlink, realpath } from 'node:fs/promises';
import { FailureError } from '../../../domain/model/errors.ts';
import { type HeldProcess, holdProcess, readPids, readProcessStat } from '../../../platform/linux/processes.ts';
import { errorCodeOf } from '../../../platform/error-code.ts';

/** Command lines are read in batches, so that a host with many processes does not flood libuv's pool. */
const batchSize = 32;
const idFlag = '-id';

/** Only one that is gone has none: a shim that could not be looked at (no descriptors, say) must not count as gone. */
const commandLineOf = async (pid: number): Promise<readonly string[]> => {
  try {
    return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
  } catch (error) {
    const code = errorCodeOf(error);
    if (code === 'ENOENT' || code === 'ESRCH') return [];
    throw error;
  }
};

/** All shims carry on their command line what they were started under: the id of their pod, or of a shim that pods share. */
const isStartedAs = (id: string, commandLine: readonly string[]): boolean =>
  commandLine.some((argument, index) => argument === idFlag && commandLine[index + 1] === id);

const isStartedIn = async (dir: string, pid: number): Promise<boolean> => {
  const [directory, origin] = await Promise.all([readlink(`/proc/${pid}/cwd`).catch(() => null), realpath(dir)]);
  return directory === origin;
};

/**
 * Field 22 of the shim's /proc/<pid>/stat, for the pid that a shim told. Throws ShimFailed when that process does not
 * look like the shim: started under that id, or in that directory.
 */
export const identifyShim = async (pid: number, id: string, dir: string): Promise<string> => {
  const [stat, commandLine] = await Promise.all([readProcessStat(pid), commandLineOf(pid)]);
  const isShim = pid > 1 && pid !== process.pid && (isStartedAs(id, commandLine) || (await isStartedIn(dir, pid)));
  if (stat !== null && isShim) return stat.startTicks;
  throw new FailureError('ShimFailed', `The shim says that its pid is ${pid}, which is no shim ${id}.`);
};

const otherPids = async (): Promise<readonly number[]> => (await readPids()).filter((pid) => pid !== process.pid);

/** Whether it is so of any process of the host but this one. */
const isSoOfAny = async (isSo: (pid: number) => Promise<boolean>): Promise<boolean> => {
  const pids = await otherPids();
  for (let at = 0; at < pids.length; at += batchSize) {
    if ((await Promise.all(pids.slice(at, at + batchSize).map(isSo))).includes(true)) return true;
  }
  return false;
};

/** Whether a process has processes of its own: a shim's containers and commands are that, to the last. */
export const hasChildren = (pid: number): Promise<boolean> =>
  isSoOfAny(async (one) => (await readProcessStat(one))?.parentPid === pid);

/** A word of its command line has the id in it. One that is the id and no more may be of anybody who asks about it. */
const isStartedFor = (id: string, commandLine: readonly string[]): boolean =>
  !isStartedAs(id, commandLine) && commandLine.some((argument) => argument !== id && argument.includes(id));

/**
 * Whether anything but shims runs that was started for a task of that id: what a shim starts to hold one, such as a sandbox or a
 * machine, bears its id or the path of its bundle.
 */
export const hasProcessesFor = (id: string): Promise<boolean> =>
  isSoOfAny(async (pid) => isStartedFor(id, await commandLineOf(pid)));

export interface FoundShim extends HeldProcess {
  readonly pid: number;
}

/** Adds to `found`, which it is the caller's to release. */
const findAmong = async (pids: readonly number[], id: string, found: FoundShim[]): Promise<void> => {
  for (let at = 0; at < pids.length; at += batchSize) {
    const batch = pids.slice(at, at + batchSize);
    const commandLines = await Promise.all(batch.map(commandLineOf));
    for (const [index, commandLine] of commandLines.entries()) {
      const pid = batch[index];
      if (pid === undefined || !isStartedAs(id, commandLine)) continue;
      const stat = await readProcessStat(pid);
      const held = stat === null ? null : await holdProcess(stat);
      if (held !== null) found.push({ ...held, pid });
    }
  }
};

/** Takes hold of all processes that were started as shims under that id, whoever started them. Release them. */
export const findShims = async (id: string): Promise<readonly FoundShim[]> => {
  const found: FoundShim[] = [];
  try {
    await findAmong(await otherPids(), id, found);
    return found;
  } catch (error) {
    for (const held of found) held.release();
    throw error;
  }
};
