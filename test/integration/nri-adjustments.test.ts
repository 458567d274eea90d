/**
 * What NRI plugins change, seen in containers that run: the samples of containerd/nri, unchanged, each at its work, and
 * every field of an adjustment. One daemon for all. Fields that not every node can show are looked for in the OCI spec:
 * runc before 1.2 knows neither I/O priority nor scheduler, and before 1.4 no memory policy. Network devices, unified
 * cgroup files and classes of RDT need what this file cannot count on: test/domain/nri/apply.test.ts has them.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, readlink, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { OciEnv, OciHook, OciSpec } from '../../src/domain/model/oci.ts';
import { envKey } from '../../src/domain/nri/merge.ts';
import { adjustedSpecOf } from '../../src/domain/nri/spec.ts';
import { fromJournalRecord } from '../../src/engine/codec.ts';
import { openReader } from '../../src/journal/open.ts';
import { startScripted, toldIn } from '../adapters/nri/scripted-plugin.ts';
import { cgroupDirectory, type CgroupLimit, isUnified, limitInForce } from '../support/cgroup-limits.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { goProgram } from '../support/go-program.ts';
import { journalPath } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod } from '../support/pods.ts';
import { type BackgroundProcess, runOk, startProcess } from '../support/process.ts';
import { redecided } from '../support/redecided.ts';
import { tempDir } from '../support/temp-dir.ts';

const MIB = 1024 * 1024;
/** RLIM_INFINITY, as plugins in Go have it. */
const memoryPolicy = { mode: 'MPOL_PREFERRED', nodes: '0' };
const UNLIMITED = { type: 'RLIMIT_CORE', hard: '18446744073709551615', soft: '18446744073709551615' };

/** Of the pod: they tell the samples what to do in the container "sampled". */
const annotations = {
  'devices.nri.io/container.sampled': '- {path: /dev/sampled, type: c, major: 1, minor: 5}\n',
  'ulimits.nri.containerd.io/container.sampled': '- {type: memlock, hard: 65536, soft: 32768}\n',
  'hooks.test/inject': 'yes',
};

/** The journal has tokens where the bundle has values (C12): of each, what is the same in both. */
const withoutValues = ({ process, hooks, ...rest }: OciSpec): unknown => {
  const names = (env: readonly OciEnv[] = []): readonly string[] => env.map(envKey);
  const ran = Object.entries(hooks ?? {}).map(([at, list]: [string, readonly OciHook[]]) => [
    at,
    list.map((hook) => ({ ...hook, env: names(hook.env) })),
  ]);
  return { ...rest, process: { ...process, env: names(process.env), args: process.args.length }, hooks: ran };
};

describe('what NRI plugins change', () => {
  const owner = cleanupAfterAll();
  const connected = new Map<string, BackgroundProcess>();
  let node: TestNode;
  let dir: string;
  let podSandboxId: string;
  let sampled: string;
  let adjusted: string;
  let run: (name: string) => Promise<string>;

  const launchSample = async (index: string, name: string): Promise<void> =>
    symlink(await goProgram(`nri-plugins/${name}`), join(dir, 'plugins', `${index}-${name}`));
  /** A plugin takes its name from that of its program. */
  const connectSample = async (index: string, name: string, socketFlag: string): Promise<void> => {
    await mkdir(join(dir, 'samples'), { recursive: true });
    const program = join(dir, 'samples', name);
    await symlink(await goProgram(`nri-plugins/${name}`), program);
    // Its hooks are looked for below /usr/share, where it alone sees them.
    const hooksBelow = `mount -t overlay -o lowerdir=${dir}/share:/usr/share overlay /usr/share && exec "$@"`;
    const argv = [program, '-idx', index, socketFlag, join(dir, 'nri.sock')];
    connected.set(name, await startProcess(owner, ['unshare', '--mount', 'sh', '-c', hooksBelow, 'sh', ...argv]));
  };
  const said = (name: string, pattern: RegExp): Promise<unknown> | undefined => connected.get(name)?.until(pattern);

  const prepare = async (): Promise<string> => {
    dir = await tempDir(owner);
    const hooks = join(dir, 'share/containers/oci/hooks.d');
    await Promise.all(
      [join(dir, 'plugins'), join(dir, 'conf'), join(dir, 'cdi'), hooks, join(dir, 'mounted')].map((path) =>
        mkdir(path, { recursive: true, mode: 0o755 }),
      ),
    );
    const hook = { path: '/bin/sh', args: ['sh', '-c', `cat > ${dir}/hook-of-sample`] };
    const when = { annotations: { '^hooks\\.test/inject$': '^yes$' } };
    await writeFile(join(hooks, 'test.json'), JSON.stringify({ version: '1.0.0', hook, when, stages: ['prestart'] }));
    await writeFile(
      join(dir, 'conf/logger.conf'),
      `logFile: ${dir}/logger.log\nevents: [all]\naddEnv: LOGGED\naddAnnotation: logged\n`,
    );
    await writeFile(join(dir, 'mounted/file'), 'of the plugin\n');
    const edits = { env: ['FROM_CDI=yes'] };
    const cdi = { cdiVersion: '0.7.0', kind: 'test.example/thing', devices: [{ name: '0', containerEdits: edits }] };
    await writeFile(join(dir, 'cdi/test.json'), JSON.stringify(cdi));
    await writeFile(join(dir, 'classes.yaml'), 'Classes:\n  light:\n    - Weight: 80\n', { mode: 0o644 });
    for (const [index, name] of [
      ['10', 'logger'],
      ['11', 'device-injector'],
      ['12', 'ulimit-adjuster'],
    ] as const)
      await launchSample(index, name);
    const nri = `socket = "${dir}/nri.sock"\nplugin_dir = "${dir}/plugins"\nconfig_dir = "${dir}/conf"\n`;
    const runtime = `cdi_spec_dirs = ["${dir}/cdi"]\nblockio_config_file = "${dir}/classes.yaml"\n`;
    return `[nri]\nenable = true\n${nri}\n[runtime]\n${runtime}`;
  };

  /** Of everything there is, in one answer, but for what not every OCI runtime knows. */
  const adjust = () => ({
    annotations: { said: 'by the plugin', '-taken': '' },
    env: [
      { key: 'ADDED', value: 'by the plugin' },
      { key: 'REPLACED', value: 'by the plugin' },
      { key: '-TAKEN', value: '' },
    ],
    args: ['sleep', '999'],
    mounts: [
      { destination: '/injected', source: join(dir, 'mounted'), type: 'bind', options: ['rbind', 'ro'] },
      { destination: '-/taken' },
    ],
    hooks: {
      createRuntime: [{ path: '/bin/sh', args: ['sh', '-c', `echo "$WORD" > ${dir}/hook`], env: ['WORD=ran'] }],
    },
    rlimits: [{ type: 'RLIMIT_MEMLOCK', hard: '131072', soft: '65536' }],
    CDIDevices: [{ name: 'test.example/thing=0' }],
    linux: {
      devices: [
        { path: '/dev/added', type: 'c', major: '1', minor: '5', fileMode: { value: 0o640 } },
        { path: '-/dev/taken' },
      ],
      resources: {
        memory: { limit: { value: String(80 * MIB) }, reservation: { value: String(40 * MIB) } },
        cpu: { shares: { value: '333' }, quota: { value: '40000' }, period: { value: '80000' }, cpus: '0', mems: '0' },
        pids: { limit: '77' },
        hugepageLimits: [{ pageSize: '2MB', limit: String(2 * MIB) }],
        devices: [{ allow: true, type: 'c', major: { value: '10' }, minor: { value: '229' }, access: 'rw' }],
        blockioClass: { value: 'light' },
      },
      cgroupsPath: `${node.daemon.dirs.cgroupParent}/of-the-plugin`,
      oomScoreAdj: { value: '654' },
      ioPriority: { class: 'IOPRIO_CLASS_BE', priority: 6 },
      seccompPolicy: {
        defaultAction: 'SCMP_ACT_ALLOW',
        syscalls: [{ names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', errnoRet: { value: 1 } }],
      },
      namespaces: [{ type: 'cgroup' }],
      sysctl: { 'net.ipv4.ip_unprivileged_port_start': '77' },
      scheduler: { policy: 'SCHED_BATCH', nice: 3 },
    },
  });

  const shellIn = async (containerId: string, command: string): Promise<string> => {
    const cmd = ['sh', '-c', `(${command}) 2>&1`];
    const { stdout } = await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' });
    return stdout.toString().trim();
  };
  const specOf = async (containerId: string): Promise<OciSpec> =>
    JSON.parse(await readFile(join(node.daemon.dirs.state, 'bundles', containerId, 'config.json'), 'utf8')) as OciSpec;
  const cgroup = (): string => join(node.daemon.dirs.cgroupParent, 'of-the-plugin');
  const inForce = async (limit: CgroupLimit, expected?: string): Promise<string> =>
    limitInForce(cgroup(), limit, expected);
  /** In version 2 a program of the kernel decides, which is no file. */
  const allowsDevice = async (): Promise<boolean> => {
    if (isUnified) return (await specOf(adjusted)).linux.resources.devices?.some(({ minor }) => minor === 229) === true;
    return (await readFile(join(cgroupDirectory(cgroup(), 'devices'), 'devices.list'), 'utf8')).includes('c 10:229 rw');
  };

  before(async () => {
    node = await startNode(owner, { config: await prepare() });
    const { daemon } = node;
    await connectSample('13', 'hook-injector', '-socket-path');
    await connectSample('14', 'network-logger', '-socket');
    await connectSample('15', 'template', '-socket');
    const log = join(dir, 'scripted');
    await startScripted(owner, join(dir, 'nri.sock'), {
      log,
      acts: [
        { hook: 'CreateContainer', container: 'adjusted', adjust: adjust() },
        { hook: 'CreateContainer', container: 'near', adjust: { linux: { memoryPolicy } } },
        { hook: 'CreateContainer', container: 'unlimited', adjust: { rlimits: [UNLIMITED] } },
      ],
    });
    await toldIn(owner, log, (told) => told.some(({ hook }) => hook === 'Synchronize'));
    await eventually('all plugins are there', async () => {
      const { stdout } = await daemon.scribe('nri', '--socket', daemon.socket, '--json');
      return stdout.split('"state":"active"').length === 8;
    });
    const sandboxConfig = podConfig(daemon, 'adjusted', { ...ownPids, annotations });
    const { runtime } = daemon.cri;
    ({ podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig }));
    run = async (name) => {
      const config = containerConfig(name, busyboxName, ['sleep', '1000'], {
        envs: ['TAKEN', 'REPLACED'].map((key) => ({ key, value: Buffer.from('by the client') })),
        annotations: { taken: 'by the client' },
        mounts: [{ containerPath: '/taken', hostPath: join(dir, 'mounted') }],
        devices: [{ containerPath: '/dev/taken', hostPath: '/dev/zero', permissions: 'rwm' }],
      });
      const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
      await runtime.startContainer({ containerId });
      return containerId;
    };
    sampled = await run('sampled');
    adjusted = await run('adjusted');
  });

  test('logger writes down what it is told, and adds to env and annotations', async () => {
    assert.match(await shellIn(sampled, 'echo $LOGGED'), /^logger-pid-\d+$/);
    assert.match((await specOf(sampled)).annotations?.['logged'] ?? '', /^logger-pid-\d+$/);
    const log = await readFile(join(dir, 'logger.log'), 'utf8');
    for (const hook of ['Synchronize', 'RunPodSandbox', 'CreateContainer', 'StartContainer', 'PostStartContainer'])
      assert.match(log, new RegExp(`${hook}: `));
    assert.match(log, /name: sampled/);
  });

  test('device-injector makes the device', async () => {
    assert.equal(await shellIn(sampled, 'head -c 3 /dev/sampled | wc -c; stat -c %t,%T /dev/sampled'), '3\n1,5');
    assert.match(await shellIn(adjusted, 'ls /dev/sampled'), /No such file/);
  });

  test('ulimit-adjuster sets the limit', async () => {
    assert.equal(await shellIn(sampled, 'ulimit -Sl; ulimit -Hl'), '32\n64');
  });

  test('hook-injector has the hook run', async () => {
    const state = JSON.parse(await readFile(join(dir, 'hook-of-sample'), 'utf8')) as { readonly id: string };
    // The annotation is the pod's: the hook ran for both of its containers.
    assert.equal(state.id, adjusted);
    await said('hook-injector', /adjusted\/sampled: OCI hooks injected/);
  });

  test('network-logger and template say what they see', async () => {
    const { status } = await node.daemon.cri.runtime.podSandboxStatus({ podSandboxId });
    const ip = status?.network?.ip ?? '';
    assert.notEqual(ip, '');
    await said('network-logger', new RegExp(`pod default/adjusted: namespace=/.* ips=\\[${RegExp.escape(ip)}\\]`));
    await said('template', /Started container default\/adjusted\/sampled/);
  });

  const seen: readonly (readonly [field: string, look: () => Promise<unknown>, is: unknown])[] = [
    [
      'annotations',
      async () => {
        const { said: set, taken } = (await specOf(adjusted)).annotations ?? {};
        return [set, taken];
      },
      ['by the plugin', undefined],
    ],
    ['env', () => shellIn(adjusted, 'echo $ADDED, $REPLACED, ${TAKEN-gone}'), 'by the plugin, by the plugin, gone'],
    ['args', () => shellIn(adjusted, "tr '\\0' ' ' < /proc/1/cmdline"), 'sleep 999'],
    [
      'mounts',
      () => shellIn(adjusted, 'cat /injected/file; ls /taken | wc -l'),
      'of the plugin\nls: /taken: No such file or directory\n0',
    ],
    ['hooks', () => readFile(join(dir, 'hook'), 'utf8'), 'ran\n'],
    ['rlimits', () => shellIn(adjusted, 'ulimit -Sl; ulimit -Hl'), '64\n128'],
    ['CDI_devices', () => shellIn(adjusted, 'echo $FROM_CDI'), 'yes'],
    ['devices', () => shellIn(adjusted, 'stat -c %a,%t,%T /dev/added; head -c 3 /dev/added | wc -c'), '640,1,5\n3'],
    [
      'devices that are taken away',
      () => shellIn(adjusted, 'ls /dev/taken'),
      'ls: /dev/taken: No such file or directory',
    ],
    [
      'cgroups_path',
      async () =>
        (await readFile(join(cgroupDirectory(cgroup(), 'pids'), 'cgroup.procs'), 'utf8')).trim().split('\n').length,
      1,
    ],
    ['oom_score_adj', () => shellIn(adjusted, 'cat /proc/1/oom_score_adj'), '654'],
    [
      'seccomp_policy',
      () => shellIn(adjusted, 'mkdir /tmp/x'),
      "mkdir: can't create directory '/tmp/x': Operation not permitted",
    ],
    ['sysctl', () => shellIn(adjusted, 'cat /proc/sys/net/ipv4/ip_unprivileged_port_start'), '77'],
    [
      'namespaces',
      async () => (await shellIn(adjusted, 'readlink /proc/1/ns/cgroup')) !== (await readlink('/proc/self/ns/cgroup')),
      true,
    ],
    ['resources.memory.limit', () => inForce('memoryLimitInBytes'), String(80 * MIB)],
    ['resources.memory.reservation', () => inForce('memoryReservation'), String(40 * MIB)],
    ['resources.cpu.shares', () => inForce('cpuShares', '333'), '333'],
    ['resources.cpu.quota', () => inForce('cpuQuota'), '40000'],
    ['resources.cpu.period', () => inForce('cpuPeriod'), '80000'],
    ['resources.cpu.cpus', () => inForce('cpusetCpus'), '0'],
    ['resources.cpu.mems', () => inForce('cpusetMems'), '0'],
    ['resources.pids', () => inForce('pids'), '77'],
    ['resources.devices', allowsDevice, true],
    ['resources.blockio_class', async () => (await specOf(adjusted)).linux.resources.blockIO?.weight, 80],
    ['io_priority', async () => (await specOf(adjusted)).process.ioPriority, { class: 'IOPRIO_CLASS_BE', priority: 6 }],
    ['scheduler', async () => (await specOf(adjusted)).process.scheduler, { policy: 'SCHED_BATCH', nice: 3 }],
  ];
  for (const [field, look, is] of seen)
    test(`${field} of an adjustment is there`, async () => assert.deepEqual(await look(), is));

  test('a limit of a process that is none is none, also of commands and after a change of limits', async () => {
    const containerId = await run('unlimited');
    const limits = "grep 'core file' /proc/1/limits | tr -s ' '; ulimit -Sc; ulimit -Hc";
    const none = 'Max core file size unlimited unlimited bytes \nunlimited\nunlimited';
    assert.equal(await shellIn(containerId, limits), none);
    await node.daemon.cri.runtime.updateContainerResources({ containerId, linux: { cpuShares: '300' } });
    assert.equal(await shellIn(containerId, limits), none);
    await node.daemon.cri.runtime.removeContainer({ containerId });
  });

  test('a memory_policy is there where the OCI runtime says that it can set one, and refused elsewhere', async () => {
    const features = JSON.parse(await runOk(['runc', 'features'])) as { readonly linux: object };
    if ('memoryPolicy' in features.linux)
      assert.deepEqual((await specOf(await run('near'))).linux.memoryPolicy, memoryPolicy);
    else
      await assert.rejects(
        run('near'),
        /an NRI plugin asks for the memory policy "MPOL_PREFERRED", which the OCI runtime/,
      );
  });

  test('C13: the journal is decided again to the specs that ran, with no plugin', async () => {
    const { daemon } = node;
    const reader = openReader(journalPath(daemon));
    const records = (await Array.fromAsync(reader.read())).flatMap((record) => fromJournalRecord(record) ?? []);
    reader.close();
    const { state, differences } = redecided(records);
    assert.deepEqual(differences, []);
    for (const id of [sampled, adjusted]) {
      const container = state.containers.get(id);
      assert.ok(container !== undefined && state.facts !== null);
      const built = adjustedSpecOf(state, state.facts, container);
      assert.ok(built.ok);
      assert.deepEqual(withoutValues(built.value), withoutValues(await specOf(id)));
    }
  });

  test('a container in a cgroup of the plugin has figures, and leaves nothing behind', async () => {
    const { daemon } = node;
    const { stats } = await daemon.cri.runtime.containerStats({ containerId: adjusted });
    assert.ok(Number(stats?.memory?.usageBytes?.value ?? 0) > 0);
    assert.match(
      (await daemon.scribe('nri', '--socket', daemon.socket)).stdout,
      /^50-scripted +default\/adjusted\/adjusted +(?=.*CgroupsPath).*Env ADDED/m,
    );
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});
