/** NRI plugins on real pods: what they are asked, what they change, and what the journal says of it. */
import assert from 'node:assert/strict';
import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { startScripted, type Told, toldIn } from '../adapters/nri/scripted-plugin.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, removePod, runPod } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

const hooksIn = (told: readonly Told[]): readonly string[] =>
  told.map(({ hook }) => hook).filter((hook) => hook !== 'Configure' && hook !== 'Synchronize');

describe('NRI plugins', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let dir: string;
  let socket: string;

  before(async () => {
    dir = await tempDir(owner);
    socket = join(dir, 'nri.sock');
    await mkdir(join(dir, 'plugins'));
    node = await startNode(owner, {
      config: `[nri]\nenable = true\nsocket = "${socket}"\nplugin_dir = "${dir}/plugins"\nconfig_dir = "${dir}/conf"\n`,
    });
  });

  test('a plugin is asked at every place in the life of a pod, and what it changes is in the container', async () => {
    const log = join(dir, 'told');
    await startScripted(owner, socket, {
      log,
      acts: [{ hook: 'CreateContainer', adjust: { env: [{ key: 'PLUGIN', value: 'was here' }] } }],
    });
    await toldIn(owner, log, (told) => told.some(({ hook }) => hook === 'Synchronize'));
    const { daemon } = node;
    const { podSandboxId, containerId } = await runPod(daemon, 'nri', busyboxName, ['sleep', '1000']);
    const { stdout } = await daemon.cri.runtime.execSync({
      containerId,
      cmd: ['sh', '-c', 'echo $PLUGIN'],
      timeout: '10',
    });
    assert.equal(stdout.toString(), 'was here\n');
    await removePod(daemon, podSandboxId);
    const told = await toldIn(owner, log, (all) => hooksIn(all).includes('RemovePodSandbox'));
    assert.deepEqual(hooksIn(told), [
      'RunPodSandbox',
      'CreateContainer',
      'PostCreateContainer',
      'StartContainer',
      'PostStartContainer',
      'StopContainer',
      'StopPodSandbox',
      'RemoveContainer',
      'RemovePodSandbox',
    ]);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('limits that a plugin wants beyond the words of CRI are in force, past changes of a client and a restart', async () => {
    const { daemon } = node;
    const { podSandboxId, containerId } = await runPod(daemon, 'limited', busyboxName, ['sleep', '1000']);
    const inForce = async (controller: string, file: string): Promise<string> =>
      (await readFile(join('/sys/fs/cgroup', controller, daemon.dirs.cgroupParent, containerId, file), 'utf8')).trim();
    const limits = async () => [
      await inForce('pids', 'pids.max'),
      await inForce('memory', 'memory.soft_limit_in_bytes'),
    ];
    const wanted = ['55', String(64 * 1024 * 1024)];
    const resources = { pids: { limit: 55 }, memory: { reservation: { value: wanted[1] } }, rdtClass: { value: '' } };
    await startScripted(
      owner,
      socket,
      {
        events: ['RemovePodSandbox'],
        acts: [{ hook: 'Synchronize', update: [{ containerId, linux: { resources } }] }],
      },
      { index: '70', name: 'limits' },
    );
    await eventually('the limits are in force', async () => (await limits())[0] === '55');
    assert.deepEqual(await limits(), wanted);
    await daemon.cri.runtime.updateContainerResources({ containerId, linux: { cpuShares: '300' } });
    await daemon.kill();
    await daemon.start();
    await daemon.cri.runtime.updateContainerResources({ containerId, linux: { memoryLimitInBytes: '100000000' } });
    assert.deepEqual(await limits(), wanted);
    assert.equal(await inForce('cpu', 'cpu.shares'), '300');
    await removePod(daemon, podSandboxId);
  });

  test('a veto fails the start, with the words of the plugin', async () => {
    const log = join(dir, 'vetoed');
    await startScripted(
      owner,
      socket,
      { log, acts: [{ hook: 'StartContainer', veto: 'not on this node' }] },
      { index: '60', name: 'strict' },
    );
    await toldIn(owner, log, (told) => told.some(({ hook }) => hook === 'Synchronize'));
    const { daemon } = node;
    await assert.rejects(
      runPod(daemon, 'vetoed', busyboxName, ['sleep', '1000']),
      withCode(GrpcCode.FAILED_PRECONDITION, /"60-strict" refused StartContainer .*not on this node/),
    );
  });
});
