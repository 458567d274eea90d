/**
 * Whether the kernel would let somebody in a user namespace of their own mount a new proc and a new sysfs, as an OCI
 * runtime does for a pod with users of its own. It refuses both where no mount of that file system is seen whole
 * (mount_too_revealing() of Linux): who may not look behind a mount would see by a new one what it hides. Pure.
 */
import type { MountInfo } from './mounts.ts';

/** Of these file systems the mounts are looked at, and what is mounted on them. */
export const REVEALING = ['proc', 'sysfs'] as const;
type Revealing = (typeof REVEALING)[number];

/** Directories that the kernel makes to be mounted on: they hold nothing, so a mount on them hides nothing. */
const MADE_TO_BE_MOUNTED_ON: Readonly<Record<Revealing, readonly string[]>> = {
  proc: ['fs/nfsd', 'openprom', 'sys/fs/binfmt_misc'],
  sysfs: [
    'firmware/efi/efivars',
    'fs/bpf',
    'fs/cgroup',
    'fs/fuse/connections',
    'fs/pstore',
    'fs/resctrl',
    'fs/selinux',
    'fs/smackfs',
    'hypervisor/s390',
    'kernel/config',
    'kernel/debug',
    'kernel/security',
    'kernel/tracing',
  ],
};

/** The sentence's first half: what stands in the way of a new mount where this one is the only. */
const hiddenIn = (mount: MountInfo, type: Revealing, mounts: readonly MountInfo[]): string | null => {
  if (mount.options.includes('ro')) return `${mount.mountPoint} is mounted read-only`;
  const empty = MADE_TO_BE_MOUNTED_ON[type].map((below) => `${mount.mountPoint}/${below}`);
  const over = mounts.find(({ parentId, mountPoint }) => parentId === mount.id && !empty.includes(mountPoint));
  return over === undefined ? null : `something is mounted over ${over.mountPoint}`;
};

const hiddenOf = (type: Revealing, mounts: readonly MountInfo[]): string | null => {
  const whole = mounts.filter(({ fileSystemType, root }) => fileSystemType === type && root === '/');
  const hidden = whole.map((mount) => hiddenIn(mount, type, mounts));
  if (hidden.includes(null)) return null;
  return hidden.at(-1) ?? `no ${type} is mounted`;
};

/** What keeps one of them from being mounted anew, as "something is mounted over /proc/fs"; null when nothing does. */
export const hiddenPartOfKernelFiles = (mounts: readonly MountInfo[]): string | null =>
  REVEALING.map((type) => hiddenOf(type, mounts)).find((hidden) => hidden !== null) ?? null;
