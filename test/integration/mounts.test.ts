/**
 * What is mounted in containers, as they see it themselves: options of mounts, and images as volumes over crashes and
 * removals.
 */
import assert from 'node:assert/strict';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import { buildImage } from '../../scripts/lib/image.ts';
import { type ContainerConfig, ContainerState, type DeepPartial, type Mount } from '../../src/wire/cri/api.ts';
import { parseMountInfo, readMountInfo } from '../../src/platform/linux/mounts.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig, removePod, runPod, statusOf } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

describe('mounts of containers', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner);
  });

  const run = (name: string, container: DeepPartial<ContainerConfig>) =>
    runPod(node.daemon, name, busyboxName, ['sleep', '1000'], { container }, owner);
  const shell = async (containerId: string, script: string): Promise<string> => {
    const cmd = ['sh', '-c', `(${script}) 2>&1`];
    return (await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
  };

  test('from where no directory can be made are refused, logs there are given up, and nothing else waits', async () => {
    const nowhere = '/proc/scribe-has-none/here';
    const { podSandboxId, containerId } = await run('beside', {});
    const sandboxConfig = podConfig(node.daemon, 'beside');
    // More at once than libuv has threads.
    const refused = Array.from({ length: 6 }, (_, index) =>
      node.daemon.cri.runtime.createContainer({
        podSandboxId,
        config: containerConfig(`nowhere-${index}`, busyboxName, ['true'], {
          mounts: [{ hostPath: `${nowhere}/${index}`, containerPath: '/data' }],
        }),
        sandboxConfig,
      }),
    );
    for (const result of await Promise.allSettled(refused)) {
      const said = result.status === 'rejected' ? String(result.reason) : 'made';
      assert.match(said, /mounts\.host_path \/proc\/scribe-has-none\/here\/\d cannot be used: ENOENT/);
    }
    const pod = { logDirectory: nowhere };
    const container = { logPath: 'main/0.log' };
    const silent = await runPod(
      node.daemon,
      'silent',
      busyboxName,
      ['sh', '-c', 'echo x; sleep 1000'],
      { pod, container },
      owner,
    );
    assert.equal((await statusOf(node.daemon, silent.containerId)).state, ContainerState.CONTAINER_RUNNING);
    assert.equal(await shell(containerId, 'echo answered'), 'answered\n');
  });

  test('have the options that are asked for, each of them on its own, and Status says that they can be', async () => {
    const dir = await tempDir(owner);
    await writeFile(join(dir, 'program'), '#!/bin/sh\necho ran\n', { mode: 0o755 });
    const cases: readonly (readonly string[])[] = [
      [],
      ['noexec'],
      ['nodev'],
      ['nosuid'],
      ['noexec', 'nodev', 'nosuid'],
    ];
    const mounts = cases.map((mountOptions, index) => ({
      ...{
        hostPath: dir,
        containerPath: `/mounted/${index}`,
        readonly: index % 2 === 0,
        mountOptions: [...mountOptions],
      },
    })) satisfies DeepPartial<Mount>[];
    const { containerId } = await run('options', { mounts });
    const table = parseMountInfo(await shell(containerId, 'cat /proc/self/mountinfo'));
    const [unasked] = cases.map((_, index) => table.find(({ mountPoint }) => mountPoint === `/mounted/${index}`));
    for (const [index, asked] of cases.entries()) {
      const options = table.find(({ mountPoint }) => mountPoint === `/mounted/${index}`)?.options ?? [];
      assert.equal(options.includes(index % 2 === 0 ? 'ro' : 'rw'), true, `${index}: ${options.join()}`);
      for (const option of ['noexec', 'nodev', 'nosuid'])
        assert.equal(options.includes(option), asked.includes(option) || unasked?.options.includes(option), option);
    }
    assert.equal(await shell(containerId, '/mounted/0/program'), 'ran\n');
    assert.match(await shell(containerId, '/mounted/1/program'), /Permission denied/);
    const { features } = await node.daemon.cri.runtime.status({});
    assert.deepEqual([features?.mountOptions, features?.supplementalGroupsPolicy], [true, true]);
  });
});

describe('images as volumes', () => {
  const owner = cleanupAfterAll();
  const dataName = 'registry.example/data:1';
  let node: TestNode;
  let imageId: string;

  before(async () => {
    node = await startNode(owner);
    const data = await buildImage(
      [
        [
          { name: 'models', type: 'directory' },
          { name: 'models/one', content: 'first\n' },
          { name: 'models/hidden', content: 'hidden\n' },
          { name: 'run', content: '#!/bin/sh\necho ran\n', mode: 0o755 },
          { name: 'latest', type: 'symlink', linkname: '/models' },
          { name: 'out', type: 'symlink', linkname: '../../../../../../../../etc' },
        ],
        [{ name: 'models/.wh.hidden', content: '' }],
      ],
      {},
    );
    await node.registry.push('data', '1', data);
    imageId = data.configDigest;
  });

  const pull = async (): Promise<void> => {
    const { imageRef } = await node.daemon.cri.image.pullImage({ image: { image: dataName } });
    assert.equal(imageRef, imageId);
  };
  const volume = (overrides: DeepPartial<Mount> = {}): DeepPartial<Mount> => ({
    ...{ containerPath: '/data', readonly: true, image: { image: imageId, userSpecifiedImage: dataName } },
    ...overrides,
  });
  const shell = async (containerId: string, script: string): Promise<string> => {
    const cmd = ['sh', '-c', `(${script}) 2>&1`];
    return (await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
  };
  const mountedImages = async (): Promise<readonly string[]> =>
    (await readMountInfo())
      .map(({ mountPoint }) => mountPoint)
      // Daemons of other tests have theirs.
      .filter((path) => path.startsWith(`${node.daemon.dirs.state}/`) && /bundles\/.*\/images\//.test(path));
  const layersOnDisk = (): Promise<string[]> => readdir(join(node.daemon.dirs.root, 'images/snapshots'));

  test('are read-only, whole or from a directory of them, and the container status tells of them', async () => {
    await pull();
    const mounts = [
      volume(),
      volume({ containerPath: '/one', imageSubPath: 'latest', mountOptions: ['noexec'] }),
      volume({ containerPath: '/named', image: { image: dataName }, mountOptions: ['noexec', 'nosuid'] }),
    ];
    const { podSandboxId, containerId } = await runPod(node.daemon, 'whole', busyboxName, ['sleep', '1000'], {
      container: { mounts },
    });
    assert.equal(
      await shell(containerId, 'ls /data /data/models /one; cat /data/models/one; /data/run; /named/run'),
      [
        ...['/data:', 'latest', 'models', 'out', 'run', '', '/data/models:', 'one', '', '/one:', 'one', 'first', 'ran'],
        ...['sh: /named/run: Permission denied', ''],
      ].join('\n'),
    );
    for (const path of ['/data/new', '/one/new', '/named/models/new'])
      assert.match(await shell(containerId, `echo x > ${path}`), /Read-only file system/);
    assert.match(await shell(containerId, 'mount -o remount,rw /data'), /not permitted|permission denied/i);
    const status = await statusOf(node.daemon, containerId);
    assert.deepEqual(
      status.mounts.map(({ containerPath, hostPath, image, imageSubPath }) => [
        ...[containerPath, hostPath, image?.image, image?.imageRef, imageSubPath],
      ]),
      [
        ['/data', '', imageId, imageId, ''],
        ['/one', '', imageId, imageId, 'latest'],
        ['/named', '', dataName, imageId, ''],
      ],
    );
    assert.equal((await mountedImages()).length, 2);
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual([await mountedImages(), await node.daemon.leftovers()], [[], noLeftovers]);
  });

  test('outlive the daemon, hold their image until they are gone, and go after a crash', async () => {
    await pull();
    const { daemon } = node;
    const { podSandboxId, containerId } = await runPod(daemon, 'held', busyboxName, ['sleep', '1000'], {
      container: { mounts: [volume()] },
    });
    const layers = await layersOnDisk();
    await daemon.cri.image.removeImage({ image: { image: dataName } });
    assert.equal((await daemon.cri.image.imageStatus({ image: { image: imageId } })).image, undefined);
    await daemon.kill();
    await daemon.start();
    assert.equal(await shell(containerId, 'cat /data/models/one'), 'first\n');
    assert.deepEqual(await layersOnDisk(), layers);
    assert.equal((await mountedImages()).length, 1);
    await removePod(daemon, podSandboxId);
    assert.deepEqual([await mountedImages(), await daemon.leftovers()], [[], noLeftovers]);
    const [busyboxLayer] = node.busybox.layers;
    assert.ok(busyboxLayer);
    await eventually('the end of its layers', async () => (await layersOnDisk()).length === layers.length - 2);
  });

  test('that are not there, or have no such directory, fail the creation with the word that kubelet looks for', async () => {
    await pull();
    const { runtime } = node.daemon.cri;
    const sandboxConfig = podConfig(node.daemon, 'failing');
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    const create = (mounts: DeepPartial<Mount>[]): Promise<unknown> => {
      const config = containerConfig('main', busyboxName, ['true'], { mounts });
      return runtime.createContainer({ podSandboxId, config, sandboxConfig });
    };
    const cases: readonly (readonly [DeepPartial<Mount>, number, RegExp])[] = [
      [
        volume({ image: { image: 'registry.example/absent:1' } }),
        GrpcCode.NOT_FOUND,
        /"registry.example\/absent:1" is not on/,
      ],
      [volume({ imageSubPath: 'absent' }), GrpcCode.INVALID_ARGUMENT, /image_sub_path "absent" is not in/],
      [volume({ imageSubPath: 'out' }), GrpcCode.INVALID_ARGUMENT, /image_sub_path "out" is not in/],
      [volume({ imageSubPath: 'run' }), GrpcCode.INVALID_ARGUMENT, /image_sub_path "run" is no directory/],
    ];
    for (const [mount, code, message] of cases)
      await assert.rejects(create([volume({ containerPath: '/good' }), mount]), (error) => {
        assert.equal(codeOf(error), code, String(error));
        assert.match(String(error), /ImageVolumeMountFailed: mounts\./);
        assert.match(String(error), message);
        return true;
      });
    assert.deepEqual(await mountedImages(), []);
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
