/** Which failures to read a kernel file mean that what it told of is not there, or never was. */
import { errorCodeOf } from '../linux/syscalls.ts';

/** ENODEV is a removed cgroup's, ESRCH a process's; EOPNOTSUPP and EINVAL say that the kernel keeps no such account. */
const GONE: readonly (string | undefined)[] = ['ENOENT', 'ENODEV', 'ESRCH', 'EOPNOTSUPP', 'EINVAL', 'EACCES'];

export const isGone = (error: unknown): boolean => GONE.includes(errorCodeOf(error));
