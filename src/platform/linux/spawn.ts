/**
 * Starts programs by posix_spawn(3), whose cost does not grow with the memory of the process that starts them, and
 * with real pipes: a program may open /dev/stdin, which it can't where standard input is a socket. Only for a process
 * that starts nothing in any other way, since reaping here takes every child. Must not know what is started.
 */
import { accessSync, constants, statSync } from 'node:fs';
import { constants as osConstants } from 'node:os';
import { join } from 'node:path';
import { native } from './native.ts';
import { checked, systemError } from './syscalls.ts';

/** Opaque structures of the C library, with room to spare: 336 and 80 bytes in glibc, as much or less in musl. */
const ATTRIBUTES_BYTES = 1024;
const FILE_ACTIONS_BYTES = 256;
const SIGSET_BYTES = 128;

const POSIX_SPAWN_SETSIGDEF = 0x4;
const POSIX_SPAWN_SETSIGMASK = 0x8;
const POSIX_SPAWN_SETSID = 0x80;

const posixSpawn = native<[Int32Array, string, Uint8Array, Uint8Array, (string | null)[], (string | null)[]]>(
  'int posix_spawn(void *pid, const char *path, const void *actions, const void *attributes, const char **argv, const char **envp)',
);
const actionsInit = native<[Uint8Array]>('int posix_spawn_file_actions_init(void *actions)');
const actionsAddDup2 = native<[Uint8Array, number, number]>(
  'int posix_spawn_file_actions_adddup2(void *actions, int fd, int newfd)',
);
const actionsAddChdir = native<[Uint8Array, string]>(
  'int posix_spawn_file_actions_addchdir_np(void *actions, const char *path)',
);
const actionsDestroy = native<[Uint8Array]>('int posix_spawn_file_actions_destroy(void *actions)');
const attributesInit = native<[Uint8Array]>('int posix_spawnattr_init(void *attributes)');
const attributesSetFlags = native<[Uint8Array, number]>(
  'int posix_spawnattr_setflags(void *attributes, int16_t flags)',
);
const attributesSetSigdefault = native<[Uint8Array, Uint8Array]>(
  'int posix_spawnattr_setsigdefault(void *attributes, const void *signals)',
);
const attributesSetSigmask = native<[Uint8Array, Uint8Array]>(
  'int posix_spawnattr_setsigmask(void *attributes, const void *signals)',
);
const nativePipe2 = native<[Int32Array, number]>('int pipe2(void *fds, int flags)');
const nativeWaitpid = native<[number, Int32Array, number]>('int waitpid(int pid, void *status, int options)');

const nativeGetrlimit = native<[number, BigUint64Array]>('int getrlimit(int resource, void *limits)');
const nativeSetrlimit = native<[number, BigUint64Array]>('int setrlimit(int resource, const void *limits)');

const RLIMIT_NOFILE = 7;
const O_CLOEXEC = 0o2000000;
const WNOHANG = 1;

/** A session and process group of its own, no signal blocked, ignored or handled: nothing of the starter's is left. */
const attributes = ((): Uint8Array => {
  const created = Buffer.alloc(ATTRIBUTES_BYTES);
  attributesInit(created);
  attributesSetFlags(created, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK);
  attributesSetSigdefault(created, Buffer.alloc(SIGSET_BYTES, 0xff));
  attributesSetSigmask(created, Buffer.alloc(SIGSET_BYTES));
  return created;
})();

/** This process's soft and hard limit of open files. */
const openFilesLimits = (): BigUint64Array => {
  const limits = new BigUint64Array(2);
  checked('getrlimit', 'RLIMIT_NOFILE', nativeGetrlimit(RLIMIT_NOFILE, limits));
  return limits;
};

/** Soft limit of open files before Node raised it, as bin/scribe noted it; null where it is not known or no number. */
const softNofile = ((noted: string | undefined): bigint | null =>
  noted !== undefined && /^\d{1,18}$/.test(noted) ? BigInt(noted) : null)(process.env.SCRIBE_NOFILE);

/** Has `start` run with the soft limit that the daemon was started with: a program inherits what holds at its start. */
const withNotedLimit = <T>(start: () => T): T => {
  const [soft = 0n, hard = 0n] = openFilesLimits();
  if (softNofile === null || softNofile >= soft) return start();
  nativeSetrlimit(RLIMIT_NOFILE, BigUint64Array.of(softNofile, hard));
  try {
    return start();
  } finally {
    nativeSetrlimit(RLIMIT_NOFILE, BigUint64Array.of(soft, hard));
  }
};

export interface Pipe {
  readonly readFd: number;
  readonly writeFd: number;
}

/** A pipe whose ends are closed in every program that is started. */
export const makePipe = (): Pipe => {
  const fds = new Int32Array(2);
  checked('pipe2', '', nativePipe2(fds, O_CLOEXEC));
  return { readFd: fds[0] ?? -1, writeFd: fds[1] ?? -1 };
};

export interface Program {
  /** A path, or a name that is looked up in `directories`, or else in the PATH of `env`. */
  readonly command: string;
  readonly directories?: readonly string[];
  readonly args: readonly string[];
  /** The whole environment. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string;
}

const isExecutable = (path: string): boolean => {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
};

/** Where the command is, unless told by the PATH that the program itself will have. Throws ENOENT when it is in none of it. */
const pathOf = ({ command, directories, env }: Program): string => {
  if (directories === undefined && command.includes('/')) return command;
  const found = (directories ?? (env.PATH ?? '').split(':'))
    .filter((directory) => directory !== '')
    .map((directory) => join(directory, command))
    .find(isExecutable);
  if (found === undefined) throw systemError('posix_spawn', osConstants.errno.ENOENT, `'${command}'`);
  return found;
};

/** A C string ends at its first NUL: what stood behind it would silently be lost. */
const cStrings = (strings: readonly string[]): (string | null)[] => {
  if (strings.some((text) => text.includes('\0'))) {
    throw systemError('posix_spawn', osConstants.errno.EINVAL, 'an argument or environment variable with a NUL in it');
  }
  return [...strings, null];
};

/**
 * Starts the program in a session of its own with these descriptors, and no other, as its standard streams and, where
 * there is a fourth, as 3. Returns its pid, which is its process group too. Throws when it can't be started, and when only
 * its exec failed.
 */
export const spawnProgram = (
  program: Program,
  descriptors: readonly [stdin: number, stdout: number, stderr: number, socket?: number],
): number => {
  const path = pathOf(program);
  const argv = cStrings([program.directories === undefined ? program.command : path, ...program.args]);
  const envp = cStrings(Object.entries(program.env).map(([name, value]) => `${name}=${value}`));
  cStrings([path, program.cwd]);
  const actions = Buffer.alloc(FILE_ACTIONS_BYTES);
  const pid = new Int32Array(1);
  actionsInit(actions);
  try {
    for (const [fd, source = -1] of descriptors.entries()) actionsAddDup2(actions, source, fd);
    actionsAddChdir(actions, program.cwd);
    const errnum = withNotedLimit(() => posixSpawn(pid, path, actions, attributes, argv, envp));
    if (errnum !== 0) throw systemError('posix_spawn', errnum, `'${path}' in '${program.cwd}'`);
    return pid[0] ?? -1;
  } finally {
    actionsDestroy(actions);
  }
};

/** How a process ended: by itself, with a code, or by a signal. */
export interface ProcessEnd {
  readonly exitCode: number | null;
  readonly signalName: string | null;
}

const signalNames = new Map(Object.entries(osConstants.signals).map(([name, number]) => [number, name]));

/** Decodes a status as wait(2) gives it for a process that has ended. */
const endOfStatus = (status: number): ProcessEnd => {
  const signal = status & 0x7f;
  if (signal === 0) return { exitCode: (status >> 8) & 0xff, signalName: null };
  return { exitCode: null, signalName: signalNames.get(signal) ?? `SIG${signal}` };
};

/** Takes every child that has ended and tells of each; call it on SIGCHLD, which comes once for several. */
export const reapChildren = (onEnd: (pid: number, end: ProcessEnd) => void): void => {
  const status = new Int32Array(1);
  for (let pid = nativeWaitpid(-1, status, WNOHANG); pid > 0; pid = nativeWaitpid(-1, status, WNOHANG)) {
    onEnd(pid, endOfStatus(status[0] ?? 0));
  }
};
