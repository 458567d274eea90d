/**
 * The kernel's own log, the newest of it, and the lines of it that tell of the end of a process: a fault, or the OOM killer.
 * Reads only; what a line means is for whoever asked.
 */
import { native } from './native.ts';
import { inPool } from './syscalls.ts';

const klogctl = native<[number, Uint8Array, number]>('int klogctl(int type, void *bytes, int length)');
const SYSLOG_ACTION_READ_ALL = 3;
const NEWEST_BYTES = 256 * 1024;

/** `<6>[  123.456789] text`, as syslog(2) gives them; without a time where the kernel is told to print none. */
const LINE = /^<\d+>(?:\[ *(\d+)\.(\d{6})\] ?)?(.*)$/;
const OOM_KILLER = /\boom-kill|\boom_reaper\b|out of memory/i;
const NS_PER_MICROSECOND = 1_000n;
const MICROSECONDS_PER_SECOND = 1_000_000n;

/** Its newest 256 KiB. Rejects with EPERM without CAP_SYSLOG where kernel.dmesg_restrict is set. */
export const readKernelLog = async (): Promise<string> => {
  const bytes = Buffer.alloc(NEWEST_BYTES);
  const length = await inPool('klogctl', 'of the kernel log', klogctl, SYSLOG_ACTION_READ_ALL, bytes, bytes.length);
  return bytes.toString('utf8', 0, length);
};

/** As the kernel names a process: `name[4711]: segfault`, `pid=4711`, `PID: 4711`, `Killed process 4711`. */
export const namesPid = (text: string, pid: number): boolean =>
  new RegExp(`(?:\\[ *|\\bpid[=: ]+|\\bprocess )${pid}\\b`, 'i').test(text);

/** Of a log, without level and time, since `sinceNs` of the monotonic clock: what names this process, or tells of the OOM killer. */
export const linesOfEnd = (log: string, pid: number | null, sinceNs: bigint): readonly string[] =>
  log.split('\n').flatMap((line) => {
    const [, seconds, microseconds, text] = LINE.exec(line) ?? [];
    if (text === undefined) return [];
    const at = seconds === undefined ? null : BigInt(seconds) * MICROSECONDS_PER_SECOND + BigInt(microseconds ?? '0');
    if (at !== null && at * NS_PER_MICROSECOND < sinceNs) return [];
    return OOM_KILLER.test(text) || (pid !== null && namesPid(text, pid)) ? [text] : [];
  });

/** How many processes of a memory cgroup the OOM killer ended, as far as the log goes back and the kernel told of each. */
export const oomKillsIn = (log: string, cgroup: string): number => {
  const named = new RegExp(`\\boom-kill:.*[,:]task_memcg=${RegExp.escape(cgroup)}[,/]`, 'g');
  return log.match(named)?.length ?? 0;
};
