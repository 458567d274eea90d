/** What scribe's AppArmor profile denies, as the real parser compiles it: no kernel is asked. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { defaultProfileText } from '../../../src/adapters/apparmor/profile.ts';
import { run } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';

/** What a kernel that mediates all of this would say of itself; Debian's package brings it. */
const FEATURES = '/etc/apparmor.d/abi/3.0';

/** What the parser says of the profile with an option to dump something; it loads nothing. */
const compile = async (t: TestContext, text: string, ...dump: string[]): Promise<string> => {
  const path = join(await tempDir(t), 'profile');
  await writeFile(path, text);
  const options = ['--skip-kernel-load', '--skip-cache', '--skip-read-cache', '--features-file', FEATURES];
  const { exitCode, stdout, stderr } = await run(['apparmor_parser', ...options, ...dump, path]);
  assert.equal(exitCode, 0, stderr);
  return `${stdout}${stderr}`;
};

interface Denial {
  readonly paths: RegExp;
  readonly access: string;
}

/** The rules that deny something about files, with the patterns as the parser understands them. */
const denialsOf = async (t: TestContext, text: string): Promise<readonly Denial[]> => {
  const dumped = await compile(t, text, '--dump', 'rule-exprs');
  const patterns = new Map(
    [...dumped.matchAll(/^aare: (\/.*?) {3}-> {3}(.*)$/gm)].map(([, glob, regex]) => [glob, regex]),
  );
  return [...text.matchAll(/^ {2}deny (\/\S+) ([a-z]+),$/gm)].map(([, glob, access = '']) => {
    const pattern = patterns.get(glob);
    assert.ok(pattern, `the parser did not speak of ${glob}`);
    return { paths: new RegExp(`^${pattern}$`), access };
  });
};

describe("scribe's AppArmor profile", () => {
  it('is compiled by the real parser', async (t) => {
    const binary = await compile(t, defaultProfileText('system (daemon) "x*"'), '--stdout');
    assert.ok(binary.includes('scribe-default'));
    await assert.rejects(compile(t, `${defaultProfileText(null)} nonsense`, '--stdout'));
  });

  it('keeps containers from writing to what is not theirs in /proc and /sys', async (t) => {
    const denials = await denialsOf(t, defaultProfileText(null));
    const isDenied = (path: string, access: string): boolean =>
      denials.some((denial) => denial.paths.test(path) && denial.access.includes(access));
    const written = (paths: string): Record<string, boolean> =>
      Object.fromEntries(
        paths
          .trim()
          .split(/\s+/)
          .map((path) => [path, isDenied(path, 'w')]),
      );
    const all = (outcome: Record<string, boolean>, denied: boolean): void =>
      assert.deepEqual(
        Object.entries(outcome).filter(([, is]) => is !== denied),
        [],
      );
    all(
      written(`
        /proc/sysrq-trigger /proc/kcore /proc/uptime /proc/irq/1/smp_affinity /proc/bus/pci/00 /proc/scsi/scsi
        /proc/sysvipc/shm /proc/sy/x /proc/s/x /proc/sz/x /proc/acpi/wakeup /proc/fs/xfs/stat /proc/tty/drivers
        /proc/sys/vm/overcommit_memory /proc/sys/net/ipv4/ip_forward /proc/sys/kernel/core_pattern
        /proc/sys/kernel/sysrq /proc/sys/kernel/hostname /proc/sys/kernel/sched_rt_runtime_us
        /proc/sys/kernel/modprobe /proc/sys/kernel/yama/ptrace_scope /proc/sys/kernel/ns_last_pid /proc/sys/kx/y
        /sys/power/state /sys/kernel/mm/ksm/run /sys/kernel/security/apparmor/.load /sys/firmware/efi/vars
        /sys/fs/bpf/x /sys/fs/selinux/enforce /sys/fs/ext4/x/y /sys/fs/cgx/y /sys/devices/virtual/powercap/x
        /sys/class/net/eth0/mtu
      `),
      true,
    );
    all(
      written(`
        /proc/1/attr/current /proc/42/oom_score_adj /proc/7/task/8/comm /proc/1/fd/3
        /proc/sys/kernel/shmmax /proc/sys/kernel/shm_rmid_forced
        /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu/x/y /etc/passwd /dev/null /tmp/proc/x /x/sys/power/state
      `),
      false,
    );
  });

  it('keeps containers from reading memory, firmware and power meters of the node', async (t) => {
    const denials = await denialsOf(t, defaultProfileText(null));
    const isRead = (path: string): boolean =>
      denials.some(({ paths, access }) => paths.test(path) && access.includes('r'));
    for (const path of ['/proc/kcore', '/proc/kmem', '/sys/firmware/x', '/sys/kernel/security/x'])
      assert.ok(isRead(path), path);
    for (const path of ['/proc/meminfo', '/sys/class/net/eth0/mtu', '/sys/kernel/mm/x']) assert.ok(!isRead(path), path);
  });

  it('takes signals of what the daemon itself runs under, whatever its name', async (t) => {
    const signals = (text: string): Promise<string> => compile(t, text, '--dump', 'rule-exprs');
    assert.match(await signals(defaultProfileText('my "odd" [na]me*')), /rule: .*my "odd" \\?\[na\\?\]me\\\*/);
    assert.equal(defaultProfileText('unconfined'), defaultProfileText(null));
  });
});
