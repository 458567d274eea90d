/**
 * The checks of `scribe doctor`: all of them on this machine, and each failing case with made-up facts, programs and
 * directories.
 */
import assert from 'node:assert/strict';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it, type TestContext } from 'node:test';
import { runDoctor } from '../../../src/adapters/doctor/doctor.ts';
import {
  checkCapabilities,
  checkCgroupDriver,
  checkCgroups,
  checkClock,
  checkKernel,
} from '../../../src/adapters/doctor/host.ts';
import {
  checkCniConfiguration,
  checkCniPlugins,
  checkIptables,
  type NetworkSettings,
} from '../../../src/adapters/doctor/network.ts';
import { checkOciRuntime, checkShim, findShim } from '../../../src/adapters/doctor/programs.ts';
import type { DoctorResult } from '../../../src/adapters/doctor/result.ts';
import {
  checkInflatingSpeed,
  checkJoining,
  checkRuntimeSpeed,
  checkStartSpeed,
  judgeJoining,
} from '../../../src/adapters/doctor/speed.ts';
import { checkApparmor, checkSelinux } from '../../../src/adapters/doctor/security-modules.ts';
import { checkOverlayfs, checkSpace, judgeSpace } from '../../../src/adapters/doctor/storage.ts';
import { readHostFacts } from '../../../src/platform/linux/host-facts.ts';
import type { CniConfList } from '../../../src/domain/model/cni.ts';
import type { RuntimeHandler } from '../../../src/domain/model/runtime-handler.ts';
import type { NodeFacts } from '../../../src/domain/model/node-facts.ts';

const CAPABILITIES = 'SYS_ADMIN NET_ADMIN MKNOD CHOWN DAC_OVERRIDE FOWNER KILL SETUID SETGID SYS_CHROOT SYS_RESOURCE'
  .split(' ')
  .map((name) => `CAP_${name}`);

const controllers = (...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [name, '/sys/fs/cgroup']));

const healthy: NodeFacts = {
  bootId: '00000000-0000-4000-8000-000000000000',
  kernelRelease: '6.12.1',
  architecture: 'amd64',
  cgroup: { version: 2, controllers: controllers('cpu', 'cpuset', 'io', 'memory', 'pids'), swapAccounting: true },
  capabilities: CAPABILITIES,
  canRaiseLimits: true,
  ownOomScoreAdj: 0,
  seccomp: true,
  apparmor: false,
  selinux: false,
  hugepageSizes: [],
  hostname: 'node-1',
  cpuCount: 4,
};

const runc: RuntimeHandler = {
  name: 'runc',
  runtimeType: 'io.containerd.runc.v2',
  binaryName: 'runc',
  systemdCgroup: false,
};

const says = (result: DoctorResult, status: DoctorResult['status'], detail: RegExp): void => {
  assert.equal(result.status, status, `${result.check}: ${result.detail}`);
  assert.match(result.detail, detail);
  assert.equal(result.remedy === null, status === 'ok', 'a remedy is given exactly when something is wrong');
};

const makeDir = async (t: TestContext, programs: Readonly<Record<string, string>> = {}): Promise<string> => {
  const dir = await mkdtemp(join(tmpdir(), 'scribe-doctor-'));
  t.after(() => rm(dir, { recursive: true, force: true }));
  for (const [name, script] of Object.entries(programs)) {
    await writeFile(join(dir, name), `#!/bin/sh\n${script}\n`);
    await chmod(join(dir, name), 0o755);
  }
  return dir;
};

const network = (plugins: CniConfList['plugins'], over: Partial<NetworkSettings> = {}): NetworkSettings => ({
  confDir: '/etc/cni/net.d',
  binDirs: ['/nonexistent'],
  confList: { cniVersion: '1.0.0', name: 'net', plugins },
  problem: null,
  ...over,
});

const speaks = (...versions: string[]): string =>
  `[ "$CNI_COMMAND" = VERSION ] && cat > /dev/null && echo '${JSON.stringify({ supportedVersions: versions })}'`;

describe('scribe doctor', { timeout: 60_000 }, () => {
  it('looks at this machine without leaving anything behind', async (t) => {
    const rootDir = await makeDir(t);
    const shimPath = join(await makeDir(t, { shim: 'echo run >> "$0.runs"; echo "Version: 2.2.0"' }), 'shim');
    const results = await runDoctor({
      node: await readHostFacts(),
      rootDir,
      stateDir: join(rootDir, 'not', 'there'),
      socketPath: join(rootDir, 'scribe.sock'),
      diskReserveBytes: 1,
      handlers: [{ ...runc, shimPath }],
      cgroupDriver: 'cgroupfs',
      systemdRuns: false,
      restrictOomScoreAdj: 'auto',
      enableSelinux: false,
      network: network([], { confList: null, problem: 'none' }),
      handlerNetworks: [network([], { handler: 'special', confList: null, problem: 'none of its own' })],
      registries: { dirs: ['/etc/certs.d'], count: 0, problems: [], unknownKeys: [] },
      nriPlugins: { enabled: false, dir: '/opt/nri/plugins', names: [], problems: [] },
      lastRecordAtMs: null,
      nowMs: Date.now(),
      path: process.env.PATH ?? '',
    });
    const byCheck = new Map(results.map((result) => [result.check, result]));
    const onceOnly = results.filter(({ check }) => check !== 'kubelet');
    assert.equal(byCheck.size - 1, onceOnly.length, 'no check is made twice, but of kubelets, of which others may run');
    for (const check of ['kernel', 'overlayfs', `space in ${rootDir}`, 'clock']) {
      const result = byCheck.get(check);
      assert.notEqual(result?.status, undefined, `${check} was not checked`);
      assert.notEqual(result?.status, 'problem', `${check}: ${result?.detail}`);
    }
    says(byCheck.get('CNI configuration') as DoctorResult, 'problem', /^none$/);
    says(byCheck.get('CNI configuration of special') as DoctorResult, 'problem', /^none of its own$/);
    says(byCheck.get('registries') as DoctorResult, 'ok', /^none configured in \/etc\/certs\.d: each is asked itself$/);
    says(byCheck.get('NRI plugins') as DoctorResult, 'ok', /^off: nri\.enable is false$/);
    says(byCheck.get('shim of runc') as DoctorResult, 'ok', /\/shim 2\.2\.0$/);
    assert.equal(await readFile(`${shimPath}.runs`, 'utf8'), 'run\n', 'a shim is run once for all that is said of it');
    assert.deepEqual(await readdir(rootDir), []);
    assert.ok(!(await readFile('/proc/self/mountinfo', 'utf8')).includes(rootDir), 'nothing stays mounted');
  });

  it('judges the kernel', () => {
    const kernel = (kernelRelease: string) => checkKernel({ ...healthy, kernelRelease });
    says(kernel('6.12.1-generic'), 'ok', /^Linux 6\.12\.1-generic$/);
    says(kernel('5.15.0'), 'ok', /user namespaces need 6\.3/);
    says(kernel('4.19.2'), 'problem', /older than 5\.4/);
    says(kernel('mainline'), 'warning', /no version/);
  });

  it('judges capabilities by what is done with them', () => {
    says(checkCapabilities(healthy, 'auto'), 'ok', /11 effective/);
    const limited = { ...healthy, canRaiseLimits: false };
    says(checkCapabilities(limited, 'auto'), 'warning', /CAP_SYS_RESOURCE missing: oom_score_adj can't go below 0/);
    says(checkCapabilities(limited, false), 'problem', /CAP_SYS_RESOURCE/);
    says(
      checkCapabilities({ ...healthy, capabilities: CAPABILITIES.slice(2) }, 'auto'),
      'problem',
      /CAP_SYS_ADMIN, CAP_NET_ADMIN missing/,
    );
  });

  it('looks for what loads AppArmor profiles where there is AppArmor', async (t) => {
    says(await checkApparmor(healthy, '/nonexistent'), 'ok', /containers run without/);
    const confined = { ...healthy, apparmor: true };
    says(await checkApparmor(confined, '/nonexistent'), 'warning', /apparmor_parser is no executable/);
    says(
      await checkApparmor(confined, await makeDir(t, { apparmor_parser: 'exit 0' })),
      'ok',
      /apparmor_parser loads$/,
    );
  });

  it('says whether pods are labelled where there is SELinux', async (t) => {
    says(await checkSelinux(healthy, true), 'ok', /pods have no labels/);
    const labelling = { ...healthy, selinux: true };
    says(await checkSelinux(labelling, false), 'warning', /pods are not labelled/);
    const dir = await makeDir(t);
    says(await checkSelinux(labelling, true, dir), 'warning', /container_t:s0, which the policy does not speak of/);
    await mkdir(join(dir, 'targeted/contexts'), { recursive: true });
    await writeFile(join(dir, 'targeted/contexts/lxc_contexts'), 'process = "a:b:c:s0"\nfile = "a:b:d:s0"\n');
    says(await checkSelinux(labelling, true, dir), 'ok', /labelled a:b:c:s0/);
  });

  it('judges cgroups', () => {
    const cgroups = (version: 1 | 2, ...names: string[]) =>
      checkCgroups({ ...healthy, cgroup: { version, controllers: controllers(...names), swapAccounting: false } });
    says(checkCgroups(healthy), 'ok', /version 2 with cpu, cpuset, io, memory, pids/);
    says(cgroups(2, 'cpu', 'memory', 'pids'), 'warning', /missing: cpuset/);
    says(cgroups(2), 'problem', /version 2 with no controller; missing: cpu, memory, pids/);
    says(cgroups(1, 'cpu', 'memory', 'pids', 'cpuset'), 'problem', /missing: devices, freezer/);
    says(cgroups(1, 'cpu', 'memory', 'pids', 'cpuset', 'devices', 'freezer'), 'warning', /kubelet 1\.35/);
  });

  it('measures what joining control groups takes, and leaves none behind', async () => {
    const node = await readHostFacts();
    const result = await checkJoining(node);
    assert.match(result.detail, /^a process takes \d+\.\d ms to join its control groups \(.* of version [12]\)/);
    const left = await Promise.all(Object.values(node.cgroup.controllers).map((directory) => readdir(directory)));
    assert.deepEqual(
      left.flat().filter((name) => name === `scribe-doctor-${process.pid}`),
      [],
    );
    const nowhere = { ...healthy, cgroup: { ...healthy.cgroup, controllers: { cpu: '/nonexistent' } } };
    says(await checkJoining(nowhere), 'ok', /can't be measured.*ENOENT/);
  });

  it('says what would make joining control groups faster, with what it takes', () => {
    says(judgeJoining(2, { joinMs: 0.1, hierarchies: 1 }), 'ok', /0\.1 ms .*one hierarchy of version 2\)$/);
    const slow = judgeJoining(2, { joinMs: 9.04, hierarchies: 1 });
    says(slow, 'warning', /9\.0 ms .*every container and every command/);
    assert.match(slow.remedy ?? '', /favordynmods.*crun, or runc 1\.4/);
    const old = judgeJoining(1, { joinMs: 31, hierarchies: 9 });
    says(old, 'warning', /31\.0 ms .*9 hierarchies of version 1/);
    assert.match(old.remedy ?? '', /unified_cgroup_hierarchy=1.*favordynmods/);
  });

  it('says what another OCI runtime would save, where it is there to be used', async (t) => {
    const programs = { runc: `echo 'runc version 1.3.3'` };
    const both = await makeDir(t, { ...programs, crun: `echo 'crun version 1.26'` });
    const v1 = { cgroup: { ...healthy.cgroup, version: 1 as const } };
    says(await checkRuntimeSpeed(runc, healthy, await makeDir(t, programs)), 'ok', /crun is not installed/);
    const installed = await checkRuntimeSpeed(runc, healthy, both);
    says(installed, 'warning', /\d+ ms .* with runc and \d+ with crun.*crun is installed/);
    assert.match(installed.remedy ?? '', /\[runtime\.handlers\.runc\] to "crun"/);
    says(await checkRuntimeSpeed(runc, v1, both), 'ok', /best used with version 2/);
    says(await checkRuntimeSpeed({ ...runc, binaryName: 'crun' }, healthy, both), 'ok', /nothing faster than crun/);
  });

  it('says what decompresses gzip layers, and what would take less time', () => {
    says(checkInflatingSpeed(true), 'ok', /ISA-L decompresses them: 140 ms .*, and 181 without it/);
    const missing = checkInflatingSpeed(false);
    says(missing, 'warning', /libisal\.so\.2 is not there, which would take 140 ms/);
    assert.match(missing.remedy ?? '', /libisal2/);
  });

  it('says what a newer shim would save, and what starts cost with it', async (t) => {
    const name = 'containerd-shim-runc-v2';
    const startSpeed = async (handler: RuntimeHandler, path: string) =>
      checkStartSpeed(handler, await findShim(handler, path));
    const withShim = async (version: string) => makeDir(t, { [name]: `echo '  Version:  ${version}'` });
    const old = await startSpeed(runc, await withShim('1.6.20~ds1'));
    says(old, 'warning', /runc-v2 1\.6\.20~ds1 has to start containers.* 0\.8 ms .* 7\.2 where the shim does/);
    assert.match(old.remedy ?? '', /2\.2 or later, or set shim_path of \[runtime\.handlers\.runc\]/);
    says(await startSpeed(runc, await withShim('v2.1.4')), 'warning', /2\.1\.4 has to start/);
    says(await startSpeed(runc, await withShim('v2.2.0')), 'ok', /the daemon starts containers itself: 0\.8 ms/);
    const crun = { ...runc, binaryName: 'crun' };
    says(await startSpeed(crun, await withShim('1.6.20')), 'ok', /containers of runc only/);
    says(await startSpeed(runc, '/nonexistent'), 'ok', /not known which shim/);
  });

  it('judges the cgroup driver', () => {
    const v1 = { ...healthy, cgroup: { ...healthy.cgroup, version: 1 as const } };
    says(checkCgroupDriver(healthy, 'systemd', true), 'ok', /^systemd$/);
    says(checkCgroupDriver(healthy, 'systemd', false), 'problem', /does not run here/);
    says(checkCgroupDriver(healthy, 'cgroupfs', true), 'warning', /beside systemd/);
    says(checkCgroupDriver(v1, 'cgroupfs', true), 'ok', /^cgroupfs$/);
  });

  it('judges the clock', () => {
    const now = Date.UTC(2027, 5, 1);
    says(checkClock(now, null), 'ok', /^2027-06-01T/);
    says(checkClock(now, now - 1), 'ok', /^2027-06-01T/);
    says(checkClock(now, now + 1000), 'warning', /earlier than the newest record/);
    says(checkClock(0, null), 'problem', /1970-01-01.*certificates/);
  });

  it('judges shims', async (t) => {
    const name = 'containerd-shim-runc-v2';
    const judge = async (handler: RuntimeHandler, path: string) => checkShim(handler, await findShim(handler, path));
    const shim = async (script: string) => judge(runc, await makeDir(t, { [name]: script }));
    says(await shim(`echo '${name}:'; echo '  Version:  1.6.20~ds1'`), 'ok', /runc-v2 1\.6\.20~ds1$/);
    says(await shim(`echo '  Version:  v2.3.0'`), 'ok', /2\.3\.0$/);
    says(await shim(`echo '  Version:  1.5.18'`), 'problem', /older than 1\.6/);
    says(await shim('echo hello'), 'warning', /does not tell its version: hello/);
    says(await judge(runc, '/nonexistent'), 'problem', /^containerd-shim-runc-v2 is no executable in PATH$/);
    const own = { ...runc, shimPath: join(await makeDir(t, { own: 'echo "Version: 2.0.0"' }), 'own') };
    says(await judge(own, '/nonexistent'), 'ok', /\/own 2\.0\.0$/);
    says(await judge({ ...runc, runtimeType: 'runc' }, '/bin'), 'problem', /names no shim/);
  });

  it('judges OCI runtimes', async (t) => {
    const runtime = async (script: string) => checkOciRuntime(runc, await makeDir(t, { runc: script }));
    says(await runtime('echo "runc version 1.3.7"; echo "commit: x"'), 'ok', /is runc 1\.3\.7$/);
    says(await runtime('echo "runc version 1.1.5+ds1"'), 'warning', /runc 1\.1\.5\+ds1; containers can escape/);
    says(await runtime('echo "crun version 1.8.1"'), 'ok', /is crun 1\.8\.1$/);
    says(await runtime('echo what'), 'warning', /does not tell its version/);
    says(await runtime('exit 1'), 'problem', /can't be run/);
    says(await checkOciRuntime(runc, '/nonexistent'), 'problem', /^runc is no executable in PATH$/);
    const notExecutable = await makeDir(t);
    await writeFile(join(notExecutable, 'runc'), '');
    says(await checkOciRuntime(runc, notExecutable), 'problem', /no executable/);
  });

  it('judges the CNI configuration and its plugins', async (t) => {
    says(
      checkCniConfiguration(network([], { confList: null, problem: 'it holds no file' })),
      'problem',
      /holds no file/,
    );
    const binDirs = [
      await makeDir(t, { bridge: speaks('1.0.0'), 'host-local': speaks('0.4.0', '1.0.0'), mute: 'exit 1' }),
    ];
    const bridge = { type: 'bridge', ipam: { type: 'host-local' } };
    says(checkCniConfiguration(network([bridge, { type: 'mute' }])), 'ok', /network net, CNI 1\.0\.0: bridge, mute/);
    says(await checkCniPlugins(network([bridge], { binDirs })), 'ok', /bridge, host-local speak CNI 1\.0\.0/);
    says(
      await checkCniPlugins(network([bridge])),
      'problem',
      /bridge, host-local not found as executables in \/nonexistent/,
    );
    says(await checkCniPlugins(network([{ type: '../sh' }], { binDirs: ['/bin'] })), 'problem', /\.\.\/sh not found/);
    says(await checkCniPlugins(network([{ type: 'mute' }], { binDirs })), 'warning', /did not say/);
    const newer = { cniVersion: '1.1.0', name: 'net', plugins: [bridge] };
    says(
      await checkCniPlugins(network([], { binDirs, confList: newer })),
      'problem',
      /bridge, .*host-local can't speak CNI 1\.1\.0/,
    );
    says(await checkCniPlugins(network([], { confList: null })), 'ok', /none are needed/);
  });

  it('wants iptables where a plugin calls it', async (t) => {
    const portmap = { type: 'portmap', capabilities: { portMappings: true } };
    const path = await makeDir(t, { iptables: 'echo "iptables v1.8.9 (nf_tables)"' });
    says(await checkIptables(network([portmap]), path), 'ok', /iptables v1\.8\.9 \(nf_tables\), for portmap$/);
    says(
      await checkIptables(network([portmap, { type: 'bridge', ipMasq: true }]), '/nonexistent'),
      'problem',
      /but portmap, bridge need it/,
    );
    says(
      await checkIptables(network([{ ...portmap, backend: 'nftables' }, { type: 'bridge' }]), '/nonexistent'),
      'ok',
      /no plugin needs it/,
    );
    says(await checkIptables(network([portmap]), await makeDir(t, { iptables: 'exit 3' })), 'problem', /can't be run/);
  });

  it('tries overlayfs where it will be used', async (t) => {
    says(await checkOverlayfs(join(await makeDir(t), 'root')), 'ok', /^works below /);
    // proc takes no new directories.
    says(await checkOverlayfs('/proc/scribe'), 'problem', /Nothing can be written below \/proc\/scribe/);
    const dir = await makeDir(t);
    // A colon ends the name of a lower directory, so the mount fails, and what was made for it must go.
    const unmountable = join(dir, 'a:b');
    await mkdir(unmountable);
    says(await checkOverlayfs(unmountable), 'problem', /can't be used below .*mount overlay/);
    assert.deepEqual(await readdir(unmountable), []);
  });

  it('judges free space', async (t) => {
    const GIB = 2 ** 30;
    const space = { freeBytes: 50 * GIB, totalBytes: 100 * GIB, freeInodes: 50, totalInodes: 100 };
    const judge = (over: Partial<typeof space>) => judgeSpace('/d', { ...space, ...over }, GIB);
    says(judge({}), 'ok', /^51200 MiB free \(50 %\)$/);
    says(judge({ freeInodes: 0, totalInodes: 0 }), 'ok', /MiB free/);
    says(judge({ freeBytes: 5 * GIB }), 'warning', /5120 MiB free \(5 %\)/);
    says(judge({ freeInodes: 1 }), 'warning', /^1 inodes free \(1 %\)$/);
    says(judge({ freeBytes: GIB / 2 }), 'problem', /less than the reserve of 1024 MiB/);
    says(await checkSpace(join(await makeDir(t), 'a', 'b'), 2 ** 60), 'problem', /less than the reserve/);
    // /run of a machine with little memory, in which hundreds of pods have room.
    const small = { freeBytes: 190 * 2 ** 20, totalBytes: 200 * 2 ** 20, freeInodes: 90, totalInodes: 100 };
    says(judgeSpace('/run', small, null), 'ok', /190 MiB free/);
    says(
      judgeSpace('/run', { ...small, freeBytes: 2 ** 20 }, null),
      'problem',
      /1 MiB free .*: new pods and containers fail/,
    );
  });
});
