/**
 * The real runc takes the specs and does what they say: a pause task with a pod's namespaces, and containers that join
 * them, with real facts of this machine and a busybox root file system.
 */
import assert from 'node:assert/strict';
import { randomBytes } from 'node:crypto';
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { before, describe, it, type TestContext } from 'node:test';
import { createInspectContainer } from '../../../src/adapters/inspect/adapter.ts';
import { imageFileReader } from '../../../src/adapters/inspect/image-files.ts';
import { readHostFacts } from '../../../src/platform/linux/host-facts.ts';
import {
  type ContainerConfig,
  NamespaceMode,
  type PodSandboxConfig,
  ProfileType,
} from '../../../src/domain/model/cri.ts';
import type { ImageConfig } from '../../../src/domain/model/image-content.ts';
import { containerQuestions, containerSpec } from '../../../src/domain/oci/container-spec.ts';
import { etcFiles } from '../../../src/domain/oci/etc-files.ts';
import { podSandboxSpec } from '../../../src/domain/oci/pod-sandbox-spec.ts';
import type { OciSpec } from '../../../src/domain/model/oci.ts';
import { validateContainerConfig, validatePodSandboxConfig } from '../../../src/domain/oci/validate.ts';
import { busyboxLayer, tarOf } from '../../../scripts/lib/image.ts';
import { cleanupAfterAll, onCleanup } from '../../support/cleanup.ts';
import { removeCgroups } from '../../support/leftovers.ts';
import { netnsOf, requireRoot } from '../../support/netns.ts';
import { runOk } from '../../support/process.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { settings, specIn } from './support.ts';

const all = cleanupAfterAll();
const unique = randomBytes(4).toString('hex');
const cgroupParent = `/scribe-test-${unique}`;
const busybox: ImageConfig = { cmd: ['sh'], env: ['PATH=/bin', 'FROM_IMAGE=yes', 'BOTH=image'] };
const SECRETS: Readonly<Record<string, string>> = { 'token-1': 'a secret', 'token-2': 'cri' };
const noAttachment = { signal: new AbortController().signal, attach: () => undefined };

let dir = '';
let rootfs = '';

before(async () => {
  requireRoot();
  await runOk(['runc', '--version']).catch(() => {
    throw new Error('runc is not installed: run sh scripts/setup.sh test');
  });
  dir = await tempDir(all);
  onCleanup(all, () => removeCgroups(cgroupParent));
  rootfs = join(dir, 'image');
  await mkdir(rootfs);
  await runOk(['tar', '-x', '-C', rootfs], { stdin: await tarOf(await busyboxLayer()) });
  await writeFile(
    join(rootfs, 'etc/passwd'),
    'root:x:0:0::/root:/bin/sh\nweb:x:1000:1001::/:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n',
  );
  await writeFile(join(rootfs, 'etc/group'), 'root:x:0:\nweb:x:1001:\nextra:x:2000:web\nother:x:3000:nobody\n');
});

/** Env entries that are secrets become text, as the bundle adapter does it. */
const filled = (spec: OciSpec): object => ({
  ...spec,
  process: {
    ...spec.process,
    env: spec.process.env.map((entry) =>
      typeof entry === 'string' ? entry : `${entry.name}=${SECRETS[entry.token] ?? ''}`,
    ),
  },
});

const runc = (args: readonly string[], cwd = dir): Promise<string> =>
  runOk(['runc', '--root', join(dir, 'runc'), ...args], { cwd });

/** An overlay, so that every container has a root of its own and the image stays as it is. */
async function makeBundle(t: TestContext, id: string, spec: OciSpec): Promise<string> {
  const bundle = join(dir, id);
  const [upper, work, merged] = ['upper', 'work', 'rootfs'].map((name) => join(bundle, name));
  for (const path of [upper, work, merged]) await mkdir(path ?? '', { recursive: true });
  await runOk([
    ...['mount', '-t', 'overlay', 'overlay', '-o'],
    ...[`lowerdir=${rootfs},upperdir=${upper},workdir=${work}`, merged ?? ''],
  ]);
  onCleanup(t, async () => void (await runOk(['umount', merged ?? ''])));
  await writeFile(join(bundle, 'config.json'), JSON.stringify(filled(spec)));
  return bundle;
}

interface Pod {
  readonly id: string;
  readonly config: PodSandboxConfig;
  readonly netnsPath: string | null;
  readonly pid: number;
  readonly files: string;
}

async function runPod(t: TestContext, overrides: PodSandboxConfig = {}): Promise<Pod> {
  const node = await readHostFacts();
  const id = randomBytes(16).toString('hex');
  const config: PodSandboxConfig = {
    metadata: { name: 'web', uid: unique, namespace: 'default' },
    hostname: 'web',
    ...overrides,
    linux: { cgroupParent, ...overrides.linux },
  };
  assert.equal(validatePodSandboxConfig(config, { node, settings }), null);
  const files = join(dir, `files-${id}`);
  await mkdir(join(files, 'shm'), { recursive: true });
  for (const [name, content] of Object.entries(etcFiles(config, node))) {
    await writeFile(join(files, name), content ?? (await readFile(join('/etc', name))));
  }
  const hostNetwork = config.linux?.securityContext?.namespaceOptions?.network === NamespaceMode.NODE;
  const netnsPath = hostNetwork ? null : (await netnsOf(t)).path;
  const spec = specIn(
    podSandboxSpec({
      podSandboxId: id,
      config,
      node,
      settings: { ...settings, enableUnprivilegedIcmp: true, enableUnprivilegedPorts: true },
      netnsPath,
      paths: pathsIn(files),
      pause: { rootfsPath: 'rootfs', imageName: 'pause', imageConfig: { entrypoint: ['/bin/sleep', '600'] } },
    }),
  );
  const bundle = await makeBundle(t, id, spec);
  // The pause task keeps what it was given as output: not the pipes that the end of runc is known by.
  const start = [
    'runc',
    '--root',
    join(dir, 'runc'),
    'run',
    '--detach',
    '--bundle',
    bundle,
    '--pid-file',
    join(bundle, 'pid'),
    id,
  ];
  await runOk(['sh', '-c', 'exec "$@" </dev/null >"$0" 2>&1', join(bundle, 'log'), ...start]).catch(async () => {
    throw new Error(`the pause task was not started: ${await readFile(join(bundle, 'log'), 'utf8')}`);
  });
  onCleanup(t, async () => void (await runc(['delete', '--force', id])));
  const pid = Number(await readFile(join(bundle, 'pid'), 'utf8'));
  return { id, config, netnsPath, pid, files };
}

const pathsIn = (files: string) => ({
  resolvConf: join(files, 'resolv.conf'),
  hosts: join(files, 'hosts'),
  hostname: join(files, 'hostname'),
  shm: join(files, 'shm'),
});

/** Runs a container to its end in the pod and gives what it wrote. */
async function runContainer(t: TestContext, pod: Pod, config: ContainerConfig, image = busybox): Promise<string> {
  const node = await readHostFacts();
  const id = randomBytes(16).toString('hex');
  const full: ContainerConfig = { metadata: { name: 'main' }, image: { image: 'busybox' }, ...config };
  assert.equal(validateContainerConfig(full, pod.config), null);
  const inspect = createInspectContainer({
    readImageFile: imageFileReader(() => [rootfs]),
    layerDirs: () => [rootfs],
    inspectCdiDevices: () => Promise.resolve([]),
    inspectBlockIOClass: () => Promise.resolve(null),
    inspectApparmorProfile: () => Promise.resolve({ loaded: true }),
  });
  const questions = containerQuestions({
    config: full,
    imageConfig: image,
    sandboxConfig: pod.config,
    node,
    chainIds: [],
  });
  const { facts } = await inspect({ kind: 'InspectContainer', containerId: id, questions }, noAttachment);
  const spec = specIn(
    containerSpec({
      containerId: id,
      config: full,
      podSandboxId: pod.id,
      sandboxConfig: pod.config,
      imageConfig: image,
      facts,
      node,
      settings,
      netnsPath: pod.netnsPath,
      paths: pathsIn(pod.files),
      sandboxPid: pod.pid,
      pins: null,
      targetPid: pod.pid,
      imageVolumes: [],
      imageMounts: [],
      mappedDir: null,
    }),
  );
  const bundle = await makeBundle(t, id, spec);
  return runc(['run', '--bundle', bundle, id]);
}

const shell = (script: string): ContainerConfig => ({ command: ['sh', '-c', script] });

const security = (context: NonNullable<ContainerConfig['linux']>['securityContext']): ContainerConfig => ({
  linux: { securityContext: context },
});

const lines = (text: string): string[] => text.trim().split('\n');

describe('specs in the hands of runc', { timeout: 120_000 }, () => {
  it('the pause task holds the namespaces that containers join', async (t) => {
    const pod = await runPod(t);
    const script =
      'for n in net ipc uts pid; do readlink /proc/self/ns/$n; done; hostname; cat /etc/hostname; ps | wc -l';
    const [net, ipc, uts, pid, name, file, processes] = lines(
      await runContainer(t, pod, {
        ...shell(script),
        ...security({ namespaceOptions: { pid: NamespaceMode.CONTAINER } }),
      }),
    );
    const ofPause = async (type: string): Promise<string> =>
      (await runOk(['readlink', `/proc/${pod.pid}/ns/${type}`])).trim();
    assert.deepEqual([net, ipc, uts], [await ofPause('net'), await ofPause('ipc'), await ofPause('uts')]);
    assert.notEqual(pid, await ofPause('pid'));
    assert.deepEqual([name, file], ['web', 'web']);
    assert.equal(Number(processes) < 6, true);
    assert.match(await runContainer(t, pod, shell('cat /proc/1/cmdline')), /sleep/);
    assert.equal((await readFile(`/proc/${pod.pid}/status`, 'utf8')).match(/^CapEff:\s+(\S+)/m)?.[1], '0'.repeat(16));
  });

  it('a pod on the node uses its namespaces and keeps its name', async (t) => {
    const { NODE } = NamespaceMode;
    const pod = await runPod(t, {
      hostname: 'pod-name',
      linux: { securityContext: { namespaceOptions: { network: NODE, pid: NODE, ipc: NODE } } },
    });
    const script = 'for n in net ipc uts pid; do readlink /proc/self/ns/$n; done; hostname';
    const seen = lines(await runContainer(t, pod, shell(script)));
    const own = await runOk(['sh', '-c', 'for n in net ipc uts pid; do readlink /proc/$$/ns/$n; done']);
    assert.deepEqual(seen, [...lines(own), hostname()]);
  });

  it('runs as the user that the image knows, with its groups, and with no capability but those given', async (t) => {
    const pod = await runPod(t);
    const context = { runAsUsername: 'web', supplementalGroups: ['42'], capabilities: { dropCapabilities: ['ALL'] } };
    const script = 'id; grep -E "^(Groups|CapBnd|CapInh|CapAmb|NoNewPrivs)" /proc/self/status';
    const [id, groups, inheritable, bounding, ambient] = lines(
      await runContainer(t, pod, { ...shell(script), ...security(context) }),
    );
    assert.match(id ?? '', /^uid=1000\(web\) gid=1001\(web\) /);
    const gids = new Set(groups?.replace('Groups:', '').trim().split(' ').map(Number));
    assert.deepEqual(gids, new Set([42, 1001, 2000]));
    for (const set of [inheritable, bounding, ambient]) assert.match(set ?? '', /0{16}$/);
  });

  it('gives the environment, the secrets too, and the working directory', async (t) => {
    const pod = await runPod(t);
    const output = await runContainer(
      t,
      pod,
      {
        command: ['env'],
        workingDir: '/made/by/the/runtime',
        envs: [{ key: 'SECRET', token: 'token-1' }, { key: 'BOTH', token: 'token-2' }, { key: 'EMPTY' }],
      },
      busybox,
    );
    assert.deepEqual(
      lines(output).sort(),
      ['BOTH=cri', 'EMPTY=', 'FROM_IMAGE=yes', 'HOSTNAME=web', 'HOME=/root', 'PATH=/bin', 'SECRET=a secret'].sort(),
    );
  });

  it('mounts what is asked for, read-only where it is, and the files of the pod', async (t) => {
    const pod = await runPod(t, {
      dnsConfig: { servers: ['10.0.0.10'], searches: ['svc.local'], options: ['ndots:5'] },
    });
    const volume = join(dir, `volume-${pod.id}`);
    await mkdir(volume);
    await writeFile(join(volume, 'file'), 'content');
    const missing = join(volume, 'made', 'deep');
    const script = `
      cat /etc/resolv.conf /data/file; echo; touch /data/x 2>&1 | grep -o Read-only; touch /deep/x && echo made
      touch /x 2>&1 | grep -o Read-only; touch /dev/shm/x && echo shm; grep -c localhost /etc/hosts
      c=/sys/fs/cgroup; [ -d $c/memory ] && c=$c/memory; mkdir $c/x 2>&1 | grep -o Read-only; cat /proc/masked 2>/dev/null; wc -c < /proc/timer_list`;
    const output = await runContainer(t, pod, {
      ...shell(script),
      mounts: [
        { containerPath: '/deep', hostPath: missing },
        { containerPath: '/data', hostPath: volume, readonly: true, mountOptions: ['noexec', 'nosuid', 'nodev'] },
      ],
      ...security({
        readonlyRootfs: true,
        maskedPaths: ['/proc/timer_list', '/proc/absent'],
        readonlyPaths: ['/proc/sys'],
      }),
    });
    assert.deepEqual(lines(output), [
      ...['search svc.local', 'nameserver 10.0.0.10', 'options ndots:5', 'content', 'Read-only', 'made', 'Read-only'],
      ...['shm', '2', 'Read-only', '0'],
    ]);
    assert.ok((await stat(join(missing, 'x'))).isFile());
    assert.ok((await stat(join(pod.files, 'shm', 'x'))).isFile());
  });

  it('filters system calls: the default profile, none, and one of the node', async (t) => {
    const pod = await runPod(t);
    const profile = join(dir, 'profile.json');
    const deny = { names: ['mkdir', 'mkdirat'], action: 'SCMP_ACT_ERRNO', errnoRet: 1 };
    await writeFile(profile, JSON.stringify({ defaultAction: 'SCMP_ACT_ALLOW', syscalls: [deny] }));
    const script =
      'grep ^Seccomp: /proc/self/status; unshare -U true 2>&1 | grep -c permitted; mkdir /tmp/x 2>&1 | grep -c permitted; true';
    const seen = async (seccomp: { profileType?: number; localhostRef?: string } | undefined): Promise<string[]> =>
      lines(await runContainer(t, pod, { ...shell(script), ...security({ seccomp }) }));
    assert.deepEqual(await seen({}), ['Seccomp:\t2', '1', '0']);
    assert.deepEqual(await seen(undefined), ['Seccomp:\t0', '0', '0']);
    assert.deepEqual(await seen({ profileType: ProfileType.Localhost, localhostRef: profile }), [
      'Seccomp:\t2',
      '0',
      '1',
    ]);
  });

  it('limits what the cgroup may use, below the parent it is told', async (t) => {
    const pod = await runPod(t);
    const script = `cat /proc/self/cgroup; cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/memory.max 2>/dev/null
      cat /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/cpu.weight 2>/dev/null; cat /proc/self/oom_score_adj`;
    const output = await runContainer(t, pod, {
      ...shell(script),
      linux: {
        resources: {
          memoryLimitInBytes: String(64 * 1024 * 1024),
          cpuShares: '512',
          cpuQuota: '50000',
          cpuPeriod: '100000',
          oomScoreAdj: '500',
          hugepageLimits: [{ pageSize: '2MB', limit: '0' }],
        },
      },
    });
    assert.match(output, new RegExp(cgroupParent));
    const [memory, shares, oom] = lines(output).slice(-3);
    assert.deepEqual([memory, oom], [String(64 * 1024 * 1024), '500']);
    assert.ok(shares === '512' || shares === '20', `shares or weight is ${shares}`);
  });

  it('sets the sysctls of the pod, for all its containers', async (t) => {
    const pod = await runPod(t, { linux: { sysctls: { 'kernel.shm_rmid_forced': '1', 'net/ipv4/ip_forward': '1' } } });
    const names =
      'kernel/shm_rmid_forced net/ipv4/ip_forward net/ipv4/ip_unprivileged_port_start net/ipv4/ping_group_range';
    const output = await runContainer(t, pod, shell(`for f in ${names}; do cat /proc/sys/$f; done`));
    assert.deepEqual(lines(output), ['1', '1', '0', '0\t2147483647']);
  });

  it('gives devices: one by name, all to the privileged', async (t) => {
    const pod = await runPod(t, { linux: { securityContext: { privileged: true } } });
    const output = await runContainer(t, pod, {
      ...shell(
        'ls -l /dev/mine | cut -c1-10; head -c 4 /dev/mine | wc -c; cat /proc/self/mountinfo | grep -c " /sys .*rw"; ls /dev',
      ),
      devices: [{ hostPath: '/dev/urandom', containerPath: '/dev/mine', permissions: 'r' }],
    });
    assert.deepEqual(lines(output).slice(0, 2), ['crw-rw-rw-', '4']);
    const privileged = await runContainer(t, pod, {
      ...shell('grep CapEff /proc/self/status; ls /dev'),
      ...security({ privileged: true }),
    });
    const { capabilities } = await readHostFacts();
    const effective = BigInt(`0x${/CapEff:\s+(\S+)/.exec(privileged)?.[1] ?? '0'}`);
    assert.equal(effective.toString(2).replaceAll('0', '').length, capabilities.length);
    assert.ok(lines(privileged).length > lines(output).length - 3);
  });

  it('runs with a terminal', async (t) => {
    const pod = await runPod(t);
    const id = randomBytes(16).toString('hex');
    const full: ContainerConfig = { metadata: { name: 'tty' }, image: { image: 'busybox' }, tty: true };
    const spec = specIn(
      containerSpec({
        ...{ containerId: id, config: { ...full, command: ['sh', '-c', 'tty; echo $TERM'] }, podSandboxId: pod.id },
        ...{ sandboxConfig: pod.config, imageConfig: busybox, node: await readHostFacts(), settings },
        facts: { user: { uid: 0, gid: 0, additionalGids: [0] }, devices: [], mounts: [] },
        ...{
          netnsPath: pod.netnsPath,
          paths: pathsIn(pod.files),
          sandboxPid: pod.pid,
          pins: null,
          targetPid: null,
          imageVolumes: [],
          imageMounts: [],
          mappedDir: null,
        },
      }),
    );
    const bundle = await makeBundle(t, id, spec);
    // script(1) gives runc the terminal that it wants to pass on.
    const command = `runc --root ${join(dir, 'runc')} run --bundle ${bundle} ${id}`;
    const output = await runOk(['script', '-qec', command, '/dev/null']);
    assert.match(output, /\/dev\/pts\/\d+\r\n[^]*xterm/);
  });
});
