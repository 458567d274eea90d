/** What a shim says of a task, in the failures of the catalogue. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { asRequestFailure, asTaskFailure } from '../../../src/adapters/shim/failures.ts';
import { TtrpcStatusError } from '../../../src/platform/ttrpc/status.ts';
import { GrpcCode } from '../../../src/domain/model/errors.ts';

const handler = { name: 'runc', runtimeType: 'io.containerd.runc.v2', binaryName: 'runc', systemdCgroup: false };
const reasonOf = (words: string): string =>
  asTaskFailure(new TtrpcStatusError(GrpcCode.UNKNOWN, words), 'start the task', handler).failure.reason;

test('what an OCI runtime can do for no pod is the fault of the request', () => {
  for (const words of [
    'OCI runtime create failed: runc create failed: sysctl "vm.swappiness" is not in a separate kernel namespace: unknown',
    'runc create failed: unable to start container process: error during container init: open /proc/sys/net/x: no such file or directory',
    // runc 1.2 to 1.6.
    'runc create failed: unable to start container process: error during container init: open sysctl net.x file: unsafe procfs detected: openat2 fsmount:fscontext:proc/./sys/net/x: no such file or directory',
    'runc create failed: unable to start container process: error during container init: failed to write sysctl net.ipv4.ip_forward = "zz": write fsmount:fscontext:proc/./sys/net/ipv4/ip_forward: invalid argument',
    'runc create failed: error mounting "/a" to rootfs at "/b": mkdir /r/b: too many levels of symbolic links: unknown',
    'OCI runtime create failed: runc create failed: string SCMP_ACT_BOGUS is not a valid action for seccomp: unknown',
    'OCI runtime create failed: invalid seccomp action `SCMP_ACT_BOGUS`: unknown',
    // Flags of a profile, as runc 1.1, 1.2 to 1.6, and 1.5 with a libseccomp that is older than the flag say it.
    'runc create failed: seccomp flags are not yet supported by runc',
    'runc create failed: seccomp flag SECCOMP_FILTER_FLAG_BOGUS is not known to runc',
    'runc create failed: error adding WaitKill flag to seccomp filter: SetWaitKill requires libseccomp >= 2.6.0 and API level >= 7 (effective version: 2.5.4, API level: 6)',
    'runc create failed: unable to start container process: unable to setup user: uids and gids must be in range 0-2147483647',
    'runc create failed: unable to start container process: unable to setup user: cannot set gid to unmapped user in user namespace',
    'runc create failed: unable to start container process: unable to setup user: setgroups: invalid argument',
    // runc 1.2 to 1.6 of ids that are not mapped; 1.4 and later fail before that where the user is not.
    'runc create failed: unable to start container process: error during container init: unable to setup user: cannot setuid to unmapped uid 65536 in user namespace',
    'runc create failed: unable to start container process: error during container init: unable to setup user: cannot setgid to unmapped gid 65536 in user namespace',
    'runc create failed: unable to start container process: error during container init: unable to setup user: chown /dev/stdout: invalid argument',
  ])
    assert.equal(reasonOf(words), 'InvalidField', words);
  assert.equal(reasonOf('runc create failed: no space left on device'), 'RuntimeFailed');
  for (const words of [
    'runc create failed: unable to start container process: exec: "/sbin/sysctl": stat /sbin/sysctl: no such file or directory: unknown',
    'executable file `sysctl` not found in $PATH: No such file or directory: unknown',
    'runc create failed: error mounting "/a" to rootfs at "/proc/sys/kernel": "/r/proc/sys/kernel" cannot be mounted because it is inside /proc',
    // Of a mount's source and of a working directory below /proc/sys, by runc 1.2 to 1.6 and 1.1 to 1.6; and of a hook's output.
    'runc create failed: unable to start container process: error during container init: failed to fulfil mount request: open /proc/sys/fs/x: no such file or directory',
    'runc create failed: unable to start container process: error during container init: mkdir /proc/sys/net: no such file or directory',
    'runc create failed: unable to start container process: error during container init: error running createRuntime hook #0: exit status 1, stdout: , stderr: sysctl: not found',
    // runc 1.3.7 and 1.6.0-rc.1 where masked_paths has /proc/sys/kernel; the others start such a container.
    'runc create failed: unable to start container process: error during container init: open /proc/sys/kernel/cap_last_cap: no such file or directory',
  ])
    assert.equal(reasonOf(words), 'RuntimeFailed', words);
  assert.equal(
    reasonOf('unable to retrieve OCI runtime error (x): exec: "runc": executable file not found in $PATH'),
    'HostLacks',
  );
});

test('processors that are not there are what the node lacks', () => {
  for (const words of [
    'failed to write "7": write /sys/fs/cgroup/cpuset/pod/abc/cpuset.cpus: numerical result out of range: unknown',
    'failed to write "3": write /sys/fs/cgroup/pod/abc/cpuset.mems: invalid argument: unknown',
    'OCI runtime create failed: write `cpuset.cpus`: Numerical result out of range: unknown',
  ]) {
    assert.equal(reasonOf(words), 'HostLacks', words);
    const { message } = asRequestFailure(new TtrpcStatusError(GrpcCode.UNKNOWN, words), 'change the limits');
    assert.match(message, /^Could not change the limits, because its cpuset_cpus or cpuset_mems name some/);
  }
});
