/**
 * The system calls that are left to a process that unpacks files of strangers, and the seccomp filter that says so to
 * the kernel. The list names what Node's threads and the unpacker do once everything is loaded: memory, waiting, files by
 * their names. No program is started, no socket made, no other process touched, no namespace, root or mount changed;
 * what is not on the list fails with EPERM. io_uring_enter stays, since libuv ends the process without it: its event loops
 * have their rings before the filter holds, and no others can be made. Must know nothing of archives.
 */
import { struct } from 'koffi';
import { FailureError } from '../../domain/model/errors.ts';
import { native } from './native.ts';
import { checked } from './syscalls.ts';

struct('sock_fprog', { len: 'uint16_t', filter: 'void *' });
const nativeSeccomp = native<[number, number, number, { readonly len: number; readonly filter: Uint8Array }]>(
  'long syscall(long number, long operation, long flags, sock_fprog *program)',
);

/** Each line: the call, its number on x86-64, its number on arm64; "-" where that has none. */
const ALLOWED = `
  read 0 63, write 1 64, readv 19 65, writev 20 66, pread64 17 67, pwrite64 18 68, lseek 8 62, close 3 57
  open 2 -, openat 257 56, fcntl 72 25, ftruncate 77 46, fsync 74 82, fdatasync 75 83, getdents64 217 61
  stat 4 -, lstat 6 -, fstat 5 80, newfstatat 262 79, statx 332 291, statfs 137 43, fstatfs 138 44
  access 21 -, faccessat 269 48, faccessat2 439 439, readlink 89 -, readlinkat 267 78, getcwd 79 17, chdir 80 49, umask 95 166
  mkdir 83 -, mkdirat 258 34, rmdir 84 -, unlink 87 -, unlinkat 263 35, link 86 -, linkat 265 37
  symlink 88 -, symlinkat 266 36, mknod 133 -, mknodat 259 33, utimensat 280 88
  chmod 90 -, fchmod 91 52, fchmodat 268 53, fchmodat2 452 452, chown 92 -, fchown 93 55, lchown 94 -, fchownat 260 54
  setxattr 188 5, lsetxattr 189 6, fsetxattr 190 7, getxattr 191 8, lgetxattr 192 9
  mmap 9 222, munmap 11 215, mprotect 10 226, mremap 25 216, madvise 28 233, brk 12 214, mincore 27 232
  pkey_mprotect 329 288, pkey_alloc 330 289, pkey_free 331 290, membarrier 324 283
  futex 202 98, set_robust_list 273 99, rseq 334 293, restart_syscall 219 128, sched_yield 24 124
  sched_getaffinity 204 123, sched_getparam 143 121, sched_getscheduler 145 120, getpriority 140 141, getcpu 309 168
  epoll_wait 232 -, epoll_pwait 281 22, epoll_pwait2 441 441, epoll_ctl 233 21, epoll_create1 291 20, eventfd2 290 19
  io_uring_enter 426 426, poll 7 -, ppoll 271 73, select 23 -, pselect6 270 72, pipe2 293 59
  clock_gettime 228 113, clock_getres 229 114, clock_nanosleep 230 115, nanosleep 35 101, gettimeofday 96 169
  getpid 39 172, gettid 186 178, getppid 110 173, getuid 102 174, geteuid 107 175, getgid 104 176, getegid 108 177
  getrusage 98 165, times 100 153, sysinfo 99 179, uname 63 160, getrlimit 97 163, prlimit64 302 261, getrandom 318 278
  rt_sigaction 13 134, rt_sigprocmask 14 135, rt_sigreturn 15 139, sigaltstack 131 132, tgkill 234 131
  exit 60 93, exit_group 231 94
`;

/** Architectures as Node names them: the kernel's word (AUDIT_ARCH) for each, and its column in the list. */
const architectures = {
  x64: { audit: 0xc000003e, column: 1, seccomp: 317, clone: 56, ioctl: 16, prctl: 157, clone3: 435 },
  arm64: { audit: 0xc00000b7, column: 2, seccomp: 277, clone: 220, ioctl: 29, prctl: 167, clone3: 435 },
} as const;

type Architecture = (typeof architectures)[keyof typeof architectures];

const numbersOf = ({ column }: Architecture): readonly number[] =>
  ALLOWED.split(/[,\n]/)
    .map((call) => call.trim().split(' ')[column])
    .filter((number) => number !== undefined && number !== '-')
    .map(Number);

/** Instructions of classic BPF (linux/bpf_common.h), as the filter needs them. */
const LOAD = 0x20;
const JUMP_IF_EQUAL = 0x15;
const JUMP_IF_ANY_BIT = 0x45;
const RETURN = 0x06;

/** Where in seccomp_data the words are; arguments are of 64 bits, and their lower halves are enough here. */
const NUMBER_OFFSET = 0;
const ARCHITECTURE_OFFSET = 4;
const argumentOffset = (index: number): number => 16 + 8 * index;

const ALLOW = 0x7fff0000;
const KILL = 0x80000000;
const refuseWith = (errnum: number): number => 0x00050000 | errnum;
const EPERM = 1;
const ENOSYS = 38;

const CLONE_THREAD = 0x10000;
const FIONBIO = 0x5421;
const FIOCLEX = 0x5451;
const TCGETS = 0x5401;
const PR_SET_NAME = 15;
const PR_SET_VMA = 0x53564d41;

type Instruction = readonly [code: number, ifTrue: number, ifFalse: number, value: number];

const load = (offset: number): Instruction => [LOAD, 0, 0, offset];
const end = (action: number): Instruction => [RETURN, 0, 0, action];
/** Skips the block unless the loaded word is `value`. */
const when = (value: number, block: readonly Instruction[]): readonly Instruction[] => [
  [JUMP_IF_EQUAL, 0, block.length, value],
  ...block,
];
const allowWhen = (value: number): readonly Instruction[] => when(value, [end(ALLOW)]);

/** The filter for an architecture: instructions of 8 bytes each, in the byte order that both have. */
const filterFor = (architecture: Architecture): Buffer => {
  const { audit, clone, ioctl, prctl, clone3 } = architecture;
  const instructions: readonly Instruction[] = [
    load(ARCHITECTURE_OFFSET),
    // Calls of another architecture's table, as 32-bit programs make them, have other numbers.
    [JUMP_IF_EQUAL, 1, 0, audit],
    end(KILL),
    load(NUMBER_OFFSET),
    ...numbersOf(architecture).flatMap(allowWhen),
    // Its flags lie in memory, out of a filter's sight; the C library takes clone instead.
    ...when(clone3, [end(refuseWith(ENOSYS))]),
    // Threads, but no processes.
    ...when(clone, [
      load(argumentOffset(0)),
      [JUMP_IF_ANY_BIT, 0, 1, CLONE_THREAD],
      end(ALLOW),
      end(refuseWith(EPERM)),
    ]),
    ...when(ioctl, [load(argumentOffset(1)), ...[FIONBIO, FIOCLEX, TCGETS].flatMap(allowWhen), end(refuseWith(EPERM))]),
    ...when(prctl, [load(argumentOffset(0)), ...[PR_SET_NAME, PR_SET_VMA].flatMap(allowWhen), end(refuseWith(EPERM))]),
    end(refuseWith(EPERM)),
  ];
  const bytes = Buffer.alloc(instructions.length * 8);
  for (const [index, [code, ifTrue, ifFalse, value]] of instructions.entries()) {
    bytes.writeUInt16LE(code, index * 8);
    bytes.writeUInt8(ifTrue, index * 8 + 2);
    bytes.writeUInt8(ifFalse, index * 8 + 3);
    bytes.writeUInt32LE(value, index * 8 + 4);
  }
  return bytes;
};

const SECCOMP_SET_MODE_FILTER = 1;
const SECCOMP_FILTER_FLAG_TSYNC = 1;

/**
 * Puts every thread of this process under the filter, for ever, those that are made later too. The process must have
 * given up the way to more rights (no_new_privs) or be privileged.
 */
export const filterCalls = (): void => {
  const architecture = process.arch === 'x64' || process.arch === 'arm64' ? architectures[process.arch] : undefined;
  if (architecture === undefined) {
    throw new FailureError('HostLacks', `There is no list of system calls for ${process.arch}: use x86-64 or arm64.`);
  }
  const filter = filterFor(architecture);
  const program = { len: filter.length / 8, filter };
  const result = nativeSeccomp(architecture.seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, program);
  // With TSYNC a positive result is the thread that could not be brought along.
  if (result > 0) throw new FailureError('HostFailed', `Thread ${result} cannot be put under the filter of calls.`);
  checked('seccomp', 'SECCOMP_SET_MODE_FILTER', result);
};
