/** What is mounted in containers, as their own mount tables have it: options of mounts. */
import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import type { ContainerConfig, DeepPartial, Mount } from '../../src/adapters/wire/cri/api.ts';
import { parseMountInfo } from '../../src/adapters/linux/mounts.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { runPod } from '../support/pods.ts';
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
