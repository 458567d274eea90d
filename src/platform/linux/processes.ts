/**
 * Reads what /proc knows of processes, and holds on to a process by more than its pid: pid and start ticks name a
 * process for as long as the machine is up, and with the boot id for ever. A zombie counts as dead: its parent being
 * slow to reap it changes nothing. Must not signal anything but the exact process it was asked to.
 */
import { closeSync, openSync, read, readFileSync } from 'node:fs';
import { readdir, readFile, readlink } from 'node:fs/promises';
import { promisify } from 'node:util';
import { node } from 'koffi';
import { orAfter } from '../rpc/timeout.ts';
import { errorCodeOf } from '../error-code.ts';
import { closeDescriptor, openPidfd, signalPidfd } from './syscalls.ts';

export interface ProcessStat {
  readonly pid: number;
  /** One letter of proc(5): R, S, D, Z, … */
  readonly state: string;
  readonly parentPid: number;
  readonly processGroup: number;
  readonly session: number;
  /** Field 22: start time since boot in clock ticks, as decimal text. */
  readonly startTicks: string;
}

/** A process by its pid and start: no later process is taken for it. */
export interface ProcessName {
  readonly pid: number;
  readonly startTicks: string;
}

const FIELD_STATE = 3;
const FIELD_PPID = 4;
const FIELD_PGRP = 5;
const FIELD_SESSION = 6;
const FIELD_STARTTIME = 22;

/**
 * Parses a line of /proc/<pid>/stat. The command stands in parentheses and may itself hold spaces and parentheses, so
 * the fields are counted from the last one. Throws on a line that is not of that form.
 */
export const parseProcessStat = (line: string): ProcessStat => {
  const commandEnd = line.lastIndexOf(')');
  const rest = line
    .slice(commandEnd + 2)
    .trimEnd()
    .split(' ');
  const field = (number: number): string => rest[number - FIELD_STATE] ?? '';
  if (commandEnd < 0 || !/^\d+$/.test(field(FIELD_STARTTIME)))
    throw new Error(`Not a line of /proc/<pid>/stat: ${line}`);
  return {
    pid: Number.parseInt(line, 10),
    state: field(FIELD_STATE),
    parentPid: Number(field(FIELD_PPID)),
    processGroup: Number(field(FIELD_PGRP)),
    session: Number(field(FIELD_SESSION)),
    startTicks: field(FIELD_STARTTIME),
  };
};

const gone = (error: unknown): boolean => {
  const code = errorCodeOf(error);
  return code === 'ENOENT' || code === 'ESRCH';
};

/** null when there is no process that could be looked at. */
const unlessGone = async <T>(look: () => Promise<T>): Promise<T | null> => {
  try {
    return await look();
  } catch (error) {
    if (gone(error)) return null;
    throw error;
  }
};

const statPath = (pid: number): string => `/proc/${pid}/stat`;

/**
 * What /proc says of the process; null when there is none of that pid. Read on the calling thread: the kernel makes this file
 * from what it has in memory, and has nobody wait but while the process is in execve(2) (for those, see readStatOfBeginner). By
 * the pool it is five turns of the loop, five times in a pod's life.
 */
export const readProcessStat = (pid: number): Promise<ProcessStat | null> =>
  unlessGone(async () => parseProcessStat(readFileSync(statPath(pid), 'utf8')));

/** Text of /proc/<pid>/status, read as the line above is, and for the same reason. Rejects when it is gone. */
export const readProcessStatus = (pid: number): Promise<string> =>
  Promise.try(() => readFileSync(`/proc/${pid}/status`, 'utf8'));

const isDead = (state: string): boolean => state === 'Z' || state === 'X';

const isThatOne = (stat: ProcessStat | null, { startTicks }: ProcessName): boolean =>
  stat !== null && stat.startTicks === startTicks && !isDead(stat.state);

/** True while exactly this process runs; false for a zombie, and for another process with the same pid. */
export const isAlive = async (name: ProcessName): Promise<boolean> => isThatOne(await readProcessStat(name.pid), name);

const readInPool = promisify(read);
/** A line has some 50 numbers. */
const STAT_BYTES_MAX = 4096;

/**
 * As readProcessStat, for one that may just be about to run another program: until it does, execve(2) has whoever reads this
 * line wait, 15 ms and more where it has to wait for a processor.
 */
const readStatOfBeginner = (pid: number): Promise<ProcessStat | null> =>
  unlessGone(async () => {
    const file = openSync(statPath(pid), 'r');
    try {
      const { bytesRead, buffer } = await readInPool(file, Buffer.alloc(STAT_BYTES_MAX), 0, STAT_BYTES_MAX, 0);
      return parseProcessStat(buffer.toString('utf8', 0, bytesRead));
    } finally {
      closeSync(file);
    }
  });

/** Path of the program the process runs; null when it is gone, is a kernel thread, or may not be looked at. */
export const readExecutable = async (pid: number): Promise<string | null> => {
  try {
    return await readlink(`/proc/${pid}/exe`);
  } catch (error) {
    if (gone(error) || errorCodeOf(error) === 'EACCES') return null;
    throw error;
  }
};

/** All processes of the host that this one sees. */
export const readPids = async (): Promise<readonly number[]> =>
  (await readdir('/proc')).filter((name) => /^\d+$/.test(name)).map(Number);

/** The words that a process was started with, as it tells them itself; none when it is gone. */
export const readArguments = async (pid: number): Promise<readonly string[]> => {
  const text = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => '');
  return text.split('\0').slice(0, -1);
};

/** null when it is gone, or may not be looked at. */
export const readWorkingDirectory = async (pid: number): Promise<string | null> =>
  readlink(`/proc/${pid}/cwd`).catch(() => null);

/** The kernel's random id of this boot. */
export const readBootId = async (): Promise<string> =>
  (await readFile('/proc/sys/kernel/random/boot_id', 'utf8')).trim();

/** A hold on a running process: the kernel tells its end, and a signal can hit no other. */
export interface HeldProcess {
  /** Resolves when the process has ended (reaped or not); stays pending after release. */
  readonly ended: Promise<void>;
  /** false when it has already ended. */
  readonly kill: (signal: number) => boolean;
  /** Gives up the hold; the process itself is left alone. Doing it again is nothing. */
  readonly release: () => void;
}

/** Waits for a process to end; false when it takes longer. */
export const endsWithin = ({ ended }: Pick<HeldProcess, 'ended'>, waitMs: number): Promise<boolean> =>
  orAfter(
    ended.then(() => true),
    waitMs,
    false,
  );

/**
 * Takes hold of exactly this process; null when it has ended. The hold does not keep the event loop running by
 * itself. Release it when done, or a descriptor is held for as long as the daemon runs.
 */
export const holdProcess = async (name: ProcessName): Promise<HeldProcess | null> => {
  const fd = openPidfd(name.pid);
  if (fd === null) return null;
  let open = true;
  let alive = false;
  try {
    // Asked after the descriptor is open: had the pid passed on to another process in between, this would show it.
    alive = isThatOne(await readStatOfBeginner(name.pid), name);
  } finally {
    // Also where it can't be read: with no descriptors left, say, each try would take one more for good.
    if (!alive) closeDescriptor(fd);
  }
  if (!alive) return null;
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const watch = node.poll(fd, { readable: true }, () => {
    watch.stop();
    resolve();
  });
  watch.unref();
  return {
    ended,
    kill: (signal) => open && signalPidfd(fd, signal),
    release: () => {
      if (!open) return;
      open = false;
      watch.close();
      closeDescriptor(fd);
    },
  };
};
