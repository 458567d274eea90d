/**
 * The RuntimeDefault seccomp profile: system calls that programs in containers need and that do not reach past their
 * namespaces; some more where the container holds the capability that guards them anyhow. Calls that are not listed
 * fail with EPERM. Data, and the one function that makes the profile of it.
 *
 * Left out on purpose: io_uring (its requests pass no filter), kernel keyrings (not namespaced), userfaultfd,
 * kexec, swap, quotas, clock setting, module loading, and everything that makes namespaces or mounts.
 */
import type { NodeFacts } from '../model/node-facts.ts';
import type { OciSeccomp, OciSyscall } from '../model/oci.ts';
import { words } from '../values/words.ts';

const files = `
  access close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2 fadvise64 fadvise64_64 fallocate
  fcntl fcntl64 fdatasync flock fstat fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 getcwd getdents
  getdents64 ioctl _llseek lseek lstat lstat64 newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev
  pwritev2 read readahead readlink readlinkat readv sendfile sendfile64 splice stat stat64 statfs statfs64 statx sync
  sync_file_range syncfs tee truncate truncate64 umask vmsplice write writev cachestat name_to_handle_at
  listmount statmount
`;

const fileTree = `
  chdir chmod chown chown32 fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat futimesat lchown lchown32 link
  linkat mkdir mkdirat mknod mknodat rename renameat renameat2 rmdir symlink symlinkat unlink unlinkat utime utimensat
  utimensat_time64 utimes
  fgetxattr flistxattr fremovexattr fsetxattr getxattr getxattrat lgetxattr listxattr listxattrat llistxattr
  lremovexattr lsetxattr removexattr removexattrat setxattr setxattrat
  inotify_add_watch inotify_init inotify_init1 inotify_rm_watch fanotify_mark
`;

const waiting = `
  epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd eventfd2
  _newselect poll ppoll ppoll_time64 pselect6 pselect6_time64 select pipe pipe2 signalfd signalfd4
  io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64 io_setup io_submit
  futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake get_robust_list set_robust_list
`;

const memory = `
  brk madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall mmap mmap2 mprotect
  mremap mseal msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect process_mrelease remap_file_pages
`;

const processes = `
  execve execveat exit exit_group fork vfork wait4 waitid waitpid getpid getppid gettid getpgid getpgrp setpgid getsid
  setsid pidfd_open pidfd_send_signal prctl rseq set_tid_address get_thread_area set_thread_area restart_syscall
  getcpu getpriority setpriority ioprio_get ioprio_set getrusage times sysinfo uname getrandom uretprobe
  getrlimit setrlimit prlimit64 ugetrlimit
  sched_getaffinity sched_getattr sched_getparam sched_get_priority_max sched_get_priority_min sched_getscheduler
  sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler
  sched_yield
`;

const identity = `
  capget capset getegid getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getresgid getresgid32
  getresuid getresuid32 getuid getuid32 setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups setgroups32
  setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setuid setuid32
  seccomp landlock_add_rule landlock_create_ruleset landlock_restrict_self
  lsm_get_self_attr lsm_list_modules lsm_set_self_attr
`;

const signals = `
  kill tgkill tkill pause rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend
  rt_sigtimedwait rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaltstack sigprocmask sigreturn
`;

/** adjtimex and its kin only read without CAP_SYS_TIME: the kernel checks. */
const time = `
  adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64
  clock_nanosleep clock_nanosleep_time64 getitimer gettimeofday nanosleep setitimer time
  timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 timer_settime timer_settime64
  timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime timerfd_settime64
`;

const communication = `
  accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg recvmmsg_time64 recvmsg
  send sendmmsg sendmsg sendto setsockopt shutdown socketcall socketpair
  ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink
  msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 shmat shmctl shmdt shmget
`;

/** Since Linux 4.8 a traced process cannot slip past its filter (older kernels are not supported). */
const tracing = 'ptrace process_vm_readv process_vm_writev';

const byCapability: Readonly<Record<string, string>> = {
  CAP_DAC_READ_SEARCH: 'open_by_handle_at',
  CAP_SYS_ADMIN: `bpf clone clone3 fanotify_init fsconfig fsmount fsopen fspick lookup_dcookie mount mount_setattr
    move_mount open_tree perf_event_open quotactl quotactl_fd setdomainname sethostname setns syslog umount umount2
    unshare`,
  CAP_SYS_BOOT: 'reboot',
  CAP_SYS_CHROOT: 'chroot',
  CAP_SYS_MODULE: 'delete_module finit_module init_module',
  CAP_SYS_PACCT: 'acct',
  CAP_SYS_PTRACE: 'kcmp pidfd_getfd process_madvise',
  CAP_SYS_RAWIO: 'ioperm iopl',
  CAP_SYS_TIME: 'clock_settime clock_settime64 settimeofday stime',
  CAP_SYS_TTY_CONFIG: 'vhangup',
  CAP_SYS_NICE: 'get_mempolicy mbind set_mempolicy set_mempolicy_home_node',
  CAP_SYSLOG: 'syslog',
  CAP_BPF: 'bpf',
  CAP_PERFMON: 'perf_event_open',
};

const byArchitecture: Readonly<Record<string, { readonly seccomp: readonly string[]; readonly names: string }>> = {
  amd64: { seccomp: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86', 'SCMP_ARCH_X32'], names: 'arch_prctl modify_ldt' },
  arm64: {
    seccomp: ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_ARM'],
    names: 'arm_fadvise64_64 arm_sync_file_range breakpoint cacheflush set_tls sync_file_range2',
  },
};

const ALLOW = 'SCMP_ACT_ALLOW';
const ERRNO = 'SCMP_ACT_ERRNO';
const ENOSYS = 38;

const allow = (names: readonly string[]): OciSyscall => ({ names, action: ALLOW });

const allowMasked = (name: string, mask: number, value: number): OciSyscall => ({
  names: [name],
  action: ALLOW,
  args: [{ index: 0, value: mask, valueTwo: value, op: 'SCMP_CMP_MASKED_EQ' }],
});

/** PER_LINUX, PER_LINUX32, both with UNAME26, and the question what it is now. */
const personalities = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];

const allowPersonality = (value: number): OciSyscall => ({
  names: ['personality'],
  action: ALLOW,
  args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }],
});

/**
 * Every address family but AF_ALG (38) and AF_VSOCK (40), which no namespace confines. As ranges of bits, for the
 * kernel reads 32 of the argument's 64 bits: a comparison of all 64 could be passed by setting one of the others.
 */
const socketFamilies: readonly (readonly [mask: number, value: number])[] = [
  [0xffffffe0, 0],
  [0xfffffffc, 32],
  [0xfffffffe, 36],
  [0xffffffff, 39],
  [0xffffffff, 41],
  [0xfffffffe, 42],
  [0xfffffffc, 44],
];

/** CLONE_NEW{NS,CGROUP,UTS,IPC,USER,PID,NET}. */
const CLONE_NEW_NAMESPACES = 0x7e020000;

/** clone without new namespaces; clone3 hides its flags behind a pointer, so C libraries are sent back to clone. */
const withoutNewNamespaces: readonly OciSyscall[] = [
  allowMasked('clone', CLONE_NEW_NAMESPACES, 0),
  { names: ['clone3'], action: ERRNO, errnoRet: ENOSYS },
];

const always = words(
  [files, fileTree, waiting, memory, processes, identity, signals, time, communication, tracing].join(' '),
);

/** `capabilities` is the container's bounding set. */
export function defaultSeccomp(node: NodeFacts, capabilities: readonly string[]): OciSeccomp {
  const architecture = byArchitecture[node.architecture];
  const unlocked = capabilities.flatMap((name) => words(byCapability[name] ?? ''));
  return {
    defaultAction: ERRNO,
    ...(architecture === undefined ? {} : { architectures: architecture.seccomp }),
    syscalls: [
      allow([...always, ...words(architecture?.names ?? '')]),
      ...(unlocked.length === 0 ? [] : [allow([...new Set(unlocked)])]),
      ...socketFamilies.map(([mask, value]) => allowMasked('socket', mask, value)),
      ...personalities.map(allowPersonality),
      ...(capabilities.includes('CAP_SYS_ADMIN') ? [] : withoutNewNamespaces),
    ],
  };
}
