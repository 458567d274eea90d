/**
 * Pods with users of their own, on the real parts: what their processes may do in the pod and are on the node, whose their
 * files are from both sides, and that nothing of it is left.
 */
import assert from 'node:assert/strict';
import { chmod, chown, mkdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { buildImage, busyboxLayer } from '../../scripts/lib/image.ts';
import { readMountInfo } from '../../src/platform/linux/mounts.ts';
import {
  type ContainerConfig,
  ContainerState,
  type DeepPartial,
  type Mount,
  NamespaceMode,
  type PodSandboxConfig,
} from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig, removePod, runPod, statusOf } from '../support/pods.ts';
import { runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const first = 200_000;
const length = 65_536;
const mappings = [{ containerId: 0, hostId: first, length }];
const namespaceOptions = { usernsOptions: { mode: NamespaceMode.POD, uids: mappings, gids: mappings } };
const ownUsers = { linux: { securityContext: { namespaceOptions } } } satisfies DeepPartial<PodSandboxConfig>;

describe('pods with users of their own', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    const cdi = await tempDir(owner);
    await writeFile(
      join(cdi, 'vendor.json'),
      JSON.stringify({
        cdiVersion: '0.5.0',
        kind: 'vendor.com/gpu',
        devices: [{ name: '0', containerEdits: { deviceNodes: [{ path: '/dev/gpu0', hostPath: '/dev/full' }] } }],
      }),
    );
    const config = `[runtime]\ncdi_spec_dirs = ["${cdi}"]\n[runtime.handlers.unable]\nbinary_name = "false"\n`;
    node = await startNode(owner, { config });
  });

  const run = (
    name: string,
    container: DeepPartial<ContainerConfig> = {},
    image = busyboxName,
    command = ['sleep', '1000'],
  ) =>
    runPod(node.daemon, name, image, command, {
      pod: ownUsers,
      container: { ...container, linux: { ...ownUsers.linux, ...container.linux } },
    });
  const shell = async (containerId: string, script: string): Promise<string> => {
    const cmd = ['sh', '-c', `(${script}) 2>&1`];
    return (await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
  };
  const mountsOfBundles = async (): Promise<readonly string[]> =>
    (await readMountInfo())
      .map(({ mountPoint }) => mountPoint)
      .filter((path) => path.startsWith(join(node.daemon.dirs.state, 'bundles')));

  test('are root in it and nobody in particular on the node', async () => {
    const { podSandboxId, containerId } = await run('root', {
      linux: { securityContext: { namespaceOptions, capabilities: { addCapabilities: ['SYS_ADMIN', 'NET_ADMIN'] } } },
    });
    assert.match(await shell(containerId, 'cat /proc/self/uid_map'), new RegExp(`^\\s+0\\s+${first}\\s+${length}\\n$`));
    assert.equal(await shell(containerId, 'id -u; id -g'), '0\n0\n');
    assert.notEqual((await runOk(['pgrep', '-u', String(first)])).trim(), '');
    assert.equal(
      await shell(containerId, 'touch /new; chown 1000:1001 /new; stat -c %u:%g / /bin /new'),
      '0:0\n0:0\n1000:1001\n',
    );
    assert.equal(
      await shell(containerId, 'echo line >> /etc/hosts; touch /dev/shm/x; stat -c %u /etc/hosts /dev/shm'),
      '0\n0\n',
    );
    assert.equal(await shell(containerId, 'hostname of-its-own; hostname'), 'of-its-own\n');
    assert.equal(await shell(containerId, 'ifconfig lo 127.0.0.2; ifconfig lo | grep -o 127.0.0.2'), '127.0.0.2\n');
    const { status } = await node.daemon.cri.runtime.podSandboxStatus({ podSandboxId });
    assert.match(await shell(containerId, 'ifconfig eth0'), new RegExp(`inet addr:${status?.network?.ip}`));
    assert.deepEqual(status?.linux?.namespaces?.options?.usernsOptions, namespaceOptions.usernsOptions);
    assert.match(await shell(containerId, 'cat /sys/class/net/eth0/address'), /^([0-9a-f]{2}:){5}/);
    assert.match(await shell(containerId, 'mknod /dev/disk b 8 0; cat /dev/disk'), /Operation not permitted/);
  });

  test('have devices by the names that are asked for, and not those that have these names on the node', async () => {
    const { podSandboxId, containerId } = await run('devices', {
      devices: [
        { hostPath: '/dev/zero', containerPath: '/dev/as-zero', permissions: 'rw' },
        { hostPath: '/dev/null', containerPath: '/dev/kmsg', permissions: 'rw' },
      ],
      CDIDevices: [{ name: 'vendor.com/gpu=0' }],
    });
    assert.equal(
      await shell(containerId, 'stat -c %n,%t,%T /dev/as-zero /dev/kmsg /dev/gpu0; head -c 3 /dev/as-zero | wc -c'),
      '/dev/as-zero,1,5\n/dev/kmsg,1,3\n/dev/gpu0,1,7\n3\n',
    );
    assert.equal(await shell(containerId, 'echo x > /dev/kmsg'), '');
    assert.match(await shell(containerId, 'echo x > /dev/gpu0'), /No space left/);
    await removePod(node.daemon, podSandboxId);
  });

  test('write to their output under any name for it, whoever they run as', async () => {
    const logDirectory = await tempDir(owner);
    const sandboxConfig = podConfig(node.daemon, 'output', { ...ownUsers, logDirectory });
    const { runtime } = node.daemon.cri;
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const script = 'echo one > /dev/stdout; echo two > /proc/self/fd/2; cat /proc/sys/net/ipv4/ping_group_range';
    const config = containerConfig('main', busyboxName, ['sh', '-c', script], { ...ownUsers, logPath: 'log' });
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await runtime.startContainer({ containerId });
    await eventually(
      'its end',
      async () => (await statusOf(node.daemon, containerId)).state === ContainerState.CONTAINER_EXITED,
    );
    const lines = (await readFile(join(logDirectory, 'log'), 'utf8'))
      .trimEnd()
      .split('\n')
      .map((line) => line.split(' ').slice(1).join(' '));
    assert.deepEqual(lines.toSorted(), ['stderr F two', `stdout F 0\t${length - 1}`, 'stdout F one']);
    await removePod(node.daemon, podSandboxId);
  });

  test('have volumes whose owners are mapped, and nothing of those stays mounted on the node', async () => {
    const [dir, memory] = [await tempDir(owner), await tempDir(owner)];
    await runOk(['mount', '-t', 'tmpfs', '-o', 'nosuid,nodev,noexec', 'volume', memory]);
    for (const path of [join(dir, 'file'), join(memory, 'file'), join(dir, 'single')]) {
      await writeFile(path, 'content\n');
      await chown(path, 1000, 1001);
    }
    await chmod(dir, 0o755);
    const mapped = (hostPath: string, containerPath: string, more: DeepPartial<Mount> = {}): DeepPartial<Mount> => ({
      ...{ hostPath, containerPath, uidMappings: mappings, gidMappings: mappings },
      ...more,
    });
    const { podSandboxId, containerId } = await run('volumes', {
      mounts: [
        mapped(dir, '/rw'),
        mapped(dir, '/ro', { readonly: true }),
        mapped(memory, '/memory', { readonly: true }),
        mapped(memory, '/recursive', { readonly: true, recursiveReadOnly: true }),
        mapped(join(dir, 'single'), '/etc/single', { readonly: true, mountOptions: ['noexec'] }),
        { hostPath: dir, containerPath: '/plain' },
        { hostPath: memory, containerPath: '/plain-memory', readonly: true },
      ],
    });
    assert.equal(
      await shell(
        containerId,
        'stat -c %u:%g /rw /rw/file /ro/file /memory/file /recursive/file /etc/single /plain/file',
      ),
      '0:0\n1000:1001\n1000:1001\n1000:1001\n1000:1001\n1000:1001\n65534:65534\n',
    );
    await shell(containerId, 'echo new > /rw/new');
    assert.deepEqual([(await stat(join(dir, 'new'))).uid, (await stat(join(dir, 'new'))).gid], [0, 0]);
    for (const path of ['/ro', '/memory', '/recursive', '/plain-memory'])
      assert.match(await shell(containerId, `touch ${path}/x`), /Read-only file system/, path);
    assert.match(await shell(containerId, 'touch /plain/x'), /Permission denied/);
    const rootfs = join(node.daemon.dirs.state, 'bundles', containerId, 'rootfs');
    assert.deepEqual(
      (await mountsOfBundles()).filter((path) => path.includes(containerId)),
      [rootfs],
    );
    const status = await statusOf(node.daemon, containerId);
    assert.deepEqual(status.mounts[0]?.uidMappings, mappings);
    await removePod(node.daemon, podSandboxId);
    await runOk(['umount', memory]);
  });

  test('see images as the images are, as root file systems and as volumes', async () => {
    const owned = { uid: 1000, gid: 1001 };
    const layers = [
      [...(await busyboxLayer()), { name: 'data', type: 'directory' as const, ...owned }],
      [{ name: 'data/file', content: 'second layer\n', ...owned }],
    ];
    const image = await buildImage(layers, { Cmd: ['sh'], Volumes: { '/data': {} } });
    await node.registry.push('owned', '1', image);
    const name = 'registry.example/owned:1';
    await node.daemon.cri.image.pullImage({ image: { image: name } });
    const { containerId } = await run(
      'images',
      { mounts: [{ containerPath: '/volume', readonly: true, image: { image: name } }] },
      name,
    );
    assert.equal(
      await shell(containerId, 'stat -c %u:%g / /data /data/file /volume/data/file; cat /volume/data/file'),
      `0:0\n${'1000:1001\n'.repeat(3)}second layer\n`,
    );
    assert.equal(
      await shell(containerId, 'echo more >> /data/file; stat -c %u:%g /data/file; cat /data/file'),
      '1000:1001\nsecond layer\nmore\n',
    );
    assert.match(await shell(containerId, 'touch /volume/x'), /Read-only file system/);
  });

  test('go on when the daemon is killed, and get further containers', async () => {
    const sandboxConfig = podConfig(node.daemon, 'killed', ownUsers);
    const { runtime } = node.daemon.cri;
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const start = async (name: string): Promise<string> => {
      const config = containerConfig(name, busyboxName, ['sleep', '1000'], ownUsers);
      const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
      await runtime.startContainer({ containerId });
      return containerId;
    };
    const before = await start('before');
    // As a daemon leaves it that dies while a task is created.
    const left = join(node.daemon.dirs.state, 'bundles', before, 'mapped/0');
    const leave = async (): Promise<void> => {
      await mkdir(left, { recursive: true });
      await runOk(['mount', '-t', 'tmpfs', 'left', left]);
    };
    await leave();
    await node.daemon.kill();
    await node.daemon.start();
    const namespaces = 'readlink /proc/self/ns/user /proc/self/ns/net';
    assert.equal(await shell(await start('after'), namespaces), await shell(before, namespaces));
    assert.ok(!(await mountsOfBundles()).includes(left), 'of a task that is there');
    await leave();
    await runtime.stopContainer({ containerId: before, timeout: '0' });
    await eventually('no mapped volume', async () => !(await mountsOfBundles()).includes(left));
    assert.equal((await statusOf(node.daemon, before)).state, ContainerState.CONTAINER_EXITED);
    await removePod(node.daemon, podSandboxId);
  });

  test('have containers that start although their task could not be made before they were asked to', async () => {
    const { runtime } = node.daemon.cri;
    const volume = await tempDir(owner);
    await chmod(volume, 0o755);
    const sandboxConfig = podConfig(node.daemon, 'early', ownUsers);
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const config = containerConfig('main', busyboxName, ['/volume/program'], {
      ...ownUsers,
      mounts: [{ hostPath: volume, containerPath: '/volume' }],
    });
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await eventually('its task is deleted again', async () => {
      const { phase } = stateOf(node.daemon).containers.get(containerId) ?? {};
      return phase?.kind === 'created' && phase.ahead?.step === 'undone';
    });
    await writeFile(join(volume, 'program'), '#!/bin/sh\nexec sleep 1000\n', { mode: 0o755 });
    await runtime.startContainer({ containerId });
    assert.equal(await shell(containerId, 'id -u; stat -c %u /'), '0\n0\n');
    const bundle = join(node.daemon.dirs.state, 'bundles', containerId);
    assert.deepEqual(
      (await mountsOfBundles()).filter((path) => path.startsWith(bundle)),
      [join(bundle, 'rootfs')],
    );
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual(
      (await mountsOfBundles()).filter((path) => path.startsWith(bundle)),
      [],
    );
  });

  test('are announced for handlers whose runtime can, and refused for those whose cannot', async () => {
    const { runtime } = node.daemon.cri;
    const { runtimeHandlers } = await runtime.status({});
    const able = (handler: string) => runtimeHandlers.find(({ name }) => name === handler)?.features?.userNamespaces;
    assert.deepEqual([able(''), able('runc'), able('unable')], [true, true, false]);
    const config = podConfig(node.daemon, 'unable', ownUsers);
    await assert.rejects(
      runtime.runPodSandbox({ config, runtimeHandler: 'unable' }),
      withCode(GrpcCode.FAILED_PRECONDITION, /userns_options .* runtime handler "unable" can not give/),
    );
  });

  test('are not made with less than they need', async () => {
    const { runtime } = node.daemon.cri;
    const sandboxConfig = podConfig(node.daemon, 'refusals', ownUsers);
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const without = containerConfig('main', busyboxName, ['sleep', '1000']);
    await assert.rejects(
      runtime.createContainer({ podSandboxId, config: without, sandboxConfig }),
      withCode(GrpcCode.INVALID_ARGUMENT, /userns_options is not that of the pod/),
    );
    // A file system that cannot be mapped is found out when the container is started.
    const mount = { hostPath: '/proc/sys/vm', containerPath: '/vm', uidMappings: mappings, gidMappings: mappings };
    const config = containerConfig('main', busyboxName, ['sleep', '1000'], { ...ownUsers, mounts: [mount] });
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await assert.rejects(
      runtime.startContainer({ containerId }),
      withCode(
        GrpcCode.FAILED_PRECONDITION,
        /\/proc\/sys\/vm is on a file system that cannot be mounted with mapped ids/,
      ),
    );
    await removePod(node.daemon, podSandboxId);
  });

  test('have no users and groups but those that are mapped, and say so', async () => {
    const unmapped = withCode(GrpcCode.INVALID_ARGUMENT, /linux\.security_context has an id that the user namespace/);
    for (const ids of [
      { runAsUser: { value: String(length) } },
      { runAsUser: { value: '1' }, runAsGroup: { value: String(length) } },
      { supplementalGroups: [String(length)] },
    ])
      await assert.rejects(run('unmapped', { linux: { securityContext: { namespaceOptions, ...ids } } }), unmapped);
  });

  test('when they are removed nothing of them is left', async () => {
    const { items } = await node.daemon.cri.runtime.listPodSandbox({});
    for (const { id } of items) await removePod(node.daemon, id);
    assert.deepEqual(await mountsOfBundles(), []);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
