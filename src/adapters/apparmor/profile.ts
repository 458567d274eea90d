/**
 * The AppArmor profile that containers run under unless they name another, as apparmor_parser reads it. It takes
 * nothing from /etc/apparmor.d, so it means the same on every node, and names no ABI, so that newer kernels mediate no
 * more than its rules speak of. Pure.
 */
import { APPARMOR_DEFAULT_PROFILE } from '../../domain/oci/apparmor.ts';

/** Distributions give the OCI runtimes profiles of these names; what has no profile is called unconfined. */
const RUNTIME_PROFILES = ['unconfined', 'runc', 'crun'];

/** A name as the parser takes it for that name and not for a pattern. */
const quoted = (name: string): string => `"${name.replaceAll(/[\\"*?{}[\],^]/g, '\\$&')}"`;

/** `ownProfile` is what this daemon, and with it every shim, runs under; null for none. */
export function defaultProfileText(ownProfile: string | null): string {
  const senders = [...new Set([...RUNTIME_PROFILES, ...(ownProfile === null ? [] : [ownProfile])])];
  return `profile ${APPARMOR_DEFAULT_PROFILE} flags=(attach_disconnected,mediate_deleted) {
  # What capabilities, seccomp and namespaces leave is left here as well.
  network,
  capability,
  file,
  umount,

  # Stopping a container is a signal from outside. Containers can signal and trace their own kind alone.
${senders.map((sender) => `  signal (receive) peer=${quoted(sender)},`).join('\n')}
  signal (send, receive) peer=${APPARMOR_DEFAULT_PROFILE},
  ptrace (trace, read, tracedby, readby) peer=${APPARMOR_DEFAULT_PROFILE},

  deny mount,

  # In /proc only directories of processes can be written to, and of /proc/sys what sizes shared memory.
  deny /proc/* w,
  deny /proc/[^0-9s]*/** w,
  deny /proc/s{,[^y]*,y,y[^s]*,ys?*}/** w,
  deny /proc/sys/[^k]** w,
  deny /proc/sys/k[^e]** w,
  deny /proc/sys/kernel/[^s]** w,
  deny /proc/sys/kernel/s[^h]** w,
  deny /proc/sys/kernel/sh[^m]** w,
  deny /proc/{sysrq-trigger,mem,kmem,kcore} rwklx,

  # Of /sys only cgroups can be written to: those that the container's namespace shows.
  deny /sys/[^f]*/** wklx,
  deny /sys/f[^s]*/** wklx,
  deny /sys/fs/[^c]*/** wklx,
  deny /sys/fs/c[^g]*/** wklx,
  deny /sys/fs/cg[^r]*/** wklx,
  deny /sys/{firmware,devices/virtual/powercap,kernel/security}/** rwklx,
}
`;
}
