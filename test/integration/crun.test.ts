/**
 * A pod's whole life with crun behind runc's shim, beside one with runc: each by its handler. crun takes a cgroup v1 node
 * with an empty v2 hierarchy beside it for a v2 one, so the daemon runs where that is not mounted.
 */
import assert from 'node:assert/strict';
import { closeSync, constants, openSync } from 'node:fs';
import { access, readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { dialShim } from '../../src/adapters/shim/process/live-shim.ts';
import { findProgram } from '../../src/platform/linux/find-program.ts';
import { ContainerState, type DeepPartial, type PodSandboxConfig, PodSandboxState } from '../../src/wire/cri/api.ts';
import { Status } from '../../src/wire/types/task/task.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { asNewerShim, testShims } from '../adapters/shim/rig/shims.ts';
import { limitInForce } from '../support/cgroup-limits.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { stateOf, toldByShims } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { privateMounts, withoutUnified } from '../support/mount-namespace.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { tempDir } from '../support/temp-dir.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, statusOf } from '../support/pods.ts';

const MIB = 1024 * 1024;
const config = `
[runtime.handlers.crun]
binary_name = "crun"
pod_annotations = ["vendor.example/*"]
io_uid = 1000
`;

const requireCrun = async (): Promise<void> => {
  if ((await findProgram('crun', process.env['PATH'] ?? '')) === null)
    throw new Error('crun is not installed, and this test is about it: sh scripts/setup.sh test');
};

describe('crun', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  /** With a shim of a version in which the daemon lets containers go. */
  before(async () => {
    await requireCrun();
    const dir = await tempDir(owner);
    const [shim] = await testShims();
    if (shim === undefined) throw new Error('there is no shim to test with');
    await symlink(await asNewerShim(shim, dir), join(dir, 'containerd-shim-runc-v2'));
    const env = { PATH: `${dir}:${process.env['PATH'] ?? ''}` };
    node = await startNode(owner, { config, env, mountNamespace: await privateMounts(owner, withoutUnified) });
  });

  const start = async (name: string, runtimeHandler: string, pod: DeepPartial<PodSandboxConfig> = {}) => {
    const { runtime } = node.daemon.cri;
    const sandboxConfig = podConfig(node.daemon, name, pod);
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig, runtimeHandler });
    const main = containerConfig('main', busyboxName, ['sh', '-c', 'trap "exit 7" TERM; while :; do sleep 0.1; done'], {
      linux: { resources: { memoryLimitInBytes: String(64 * MIB) } },
    });
    const { containerId } = await runtime.createContainer({ podSandboxId, config: main, sandboxConfig });
    await runtime.startContainer({ containerId });
    return { podSandboxId, containerId };
  };
  const exec = async (containerId: string, script: string): Promise<string> => {
    const cmd = ['sh', '-c', script];
    return (await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
  };
  /** Names of containers in the state that an OCI runtime of that kind keeps. */
  const isMadeByCrun = async (containerId: string): Promise<boolean> => {
    const dir = join(node.daemon.dirs.state, 'runtime', 'k8s.io', containerId);
    // crun keeps a copy of the spec there, runc does not.
    return (await readdir(dir)).includes('config.json');
  };
  /** What the shim of a container's pod says itself. */
  const toldByShim = async (podSandboxId: string, containerId: string): Promise<Status> => {
    const address = stateOf(node.daemon).sandboxes.get(podSandboxId)?.shim;
    if (address === undefined || address === null) throw new Error(`pod sandbox ${podSandboxId} has no shim`);
    const client = await dialShim(address, 2_000);
    try {
      return (await client.state({ id: containerId, execId: '' }, 2_000)).status;
    } finally {
      client.close();
    }
  };
  const specOf = async (id: string): Promise<{ annotations: Record<string, string>; linux: { cgroupsPath: string } }> =>
    JSON.parse(await readFile(join(node.daemon.dirs.state, 'bundles', id, 'config.json'), 'utf8')) as never;

  for (const [kind, pod] of [
    ['without a pause task', ownPids],
    ['with a pause task', {}],
  ] as const) {
    test(`a pod ${kind} runs, is looked into, limited, outlives the daemon, stops and goes`, async () => {
      const { daemon } = node;
      const { runtime } = daemon.cri;
      const annotations = { 'vendor.example/mode': 'fast', 'other.example/key': 'x' };
      const { podSandboxId, containerId } = await start('life', 'crun', { ...pod, annotations });
      assert.equal(await isMadeByCrun(containerId), true);
      assert.equal(await toldByShim(podSandboxId, containerId), Status.CREATED, 'the daemon let it go, not the shim');
      assert.equal(stateOf(daemon).sandboxes.get(podSandboxId)?.sandboxer, pod === ownPids ? 'none' : 'pause');
      const { annotations: told, linux } = await specOf(containerId);
      assert.deepEqual([told['vendor.example/mode'], told['other.example/key']], ['fast', undefined]);

      assert.equal(await exec(containerId, 'echo from crun; hostname'), 'from crun\nlife\n');
      const limit = (): Promise<string> => limitInForce(linux.cgroupsPath, 'memoryLimitInBytes');
      assert.equal(Number(await limit()), 64 * MIB);
      const { stats } = await runtime.containerStats({ containerId });
      assert.ok(Number(stats?.memory?.workingSetBytes?.value ?? 0) > 0);
      await runtime.updateContainerResources({
        containerId,
        linux: { memoryLimitInBytes: String(80 * MIB), cpuShares: '512' },
      });
      assert.equal(Number(await limit()), 80 * MIB);

      await daemon.kill();
      await daemon.start();
      assert.equal(await exec(containerId, 'echo after'), 'after\n');
      const shown = await runtime.podSandboxStatus({ podSandboxId });
      assert.deepEqual([shown.status?.state, shown.status?.runtimeHandler], [PodSandboxState.SANDBOX_READY, 'crun']);

      await runtime.stopContainer({ containerId, timeout: '10' });
      const { state, exitCode } = await statusOf(daemon, containerId);
      assert.deepEqual([state, exitCode], [ContainerState.CONTAINER_EXITED, 7]);
      await removePod(daemon, podSandboxId);
      assert.deepEqual(await daemon.leftovers(), noLeftovers);
    });
  }

  test('what was let go by a daemon that was killed then is told from what was not', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const sandboxConfig = podConfig(daemon, 'cut', ownPids);
    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig, runtimeHandler: 'crun' });
    const waiting = async (name: string) => {
      const config = containerConfig(name, busyboxName, ['sleep', '1000']);
      const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
      const fifo = join(daemon.dirs.state, 'runtime', 'k8s.io', containerId, 'exec.fifo');
      await eventually('its task is made ahead', async () => {
        const { phase } = stateOf(daemon).containers.get(containerId) ?? {};
        return phase?.kind === 'created' && phase.ahead?.step === 'done';
      });
      return { containerId, fifo };
    };
    const [untouched, opened, spoken, dead] = [
      await waiting('untouched'),
      await waiting('opened'),
      await waiting('spoken'),
      await waiting('dead'),
    ];
    await daemon.kill();
    // What the daemon that was killed may have done last.
    closeSync(openSync(opened.fifo, constants.O_WRONLY | constants.O_NONBLOCK));
    await writeFile(spoken.fifo, '0');
    const pid = Number(await readFile(join(daemon.dirs.state, 'bundles', dead.containerId, 'init.pid'), 'utf8'));
    process.kill(pid, 'SIGKILL');
    await eventually('it ends', () =>
      access(`/proc/${pid}`).then(
        () => false,
        () => true,
      ),
    );
    await daemon.start();
    const cut = [untouched, opened, spoken, dead];
    // Those of earlier starts have been told of before.
    const told = await eventually('the shim is asked', async () => {
      const tasks = await toldByShims(daemon);
      return cut.every(({ containerId }) => tasks.has(containerId)) && tasks;
    });
    const words = cut.map(({ containerId }) => {
      const task = told.get(containerId);
      return [task?.status, task?.exit?.exitStatus, task?.neverBegan];
    });
    assert.deepEqual(words, [
      ['created', undefined, undefined],
      ['created', undefined, undefined],
      ['running', undefined, undefined],
      ['stopped', 137, true],
    ]);
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('pods of another handler run beside, and the default handler has two names', async () => {
    const { daemon } = node;
    const [byDefault, byName, other] = [
      await start('default', ''),
      await start('runc', 'runc'),
      await start('crun', 'crun'),
    ];
    const made = await Promise.all([byDefault, byName, other].map(({ containerId }) => isMadeByCrun(containerId)));
    assert.deepEqual(made, [false, false, true]);
    const { runtimeHandlers } = await daemon.cri.runtime.status({});
    assert.deepEqual(runtimeHandlers.map(({ name }) => name).sort(), ['', 'crun', 'runc']);
    const features = new Map(runtimeHandlers.map(({ name, features: of }) => [name, of]));
    assert.deepEqual(features.get(''), features.get('runc'));
    for (const { podSandboxId } of [byDefault, byName, other]) await removePod(daemon, podSandboxId);
  });

  test('a handler that is taken out of the configuration runs no new pod, and its pods can be looked at and removed', async () => {
    const { daemon } = node;
    const { podSandboxId, containerId } = await start('orphan', 'crun');
    await daemon.stop();
    await daemon.configure('');
    await daemon.start();
    const { runtime } = daemon.cri;
    const { status } = await runtime.podSandboxStatus({ podSandboxId });
    assert.deepEqual([status?.state, status?.runtimeHandler], [PodSandboxState.SANDBOX_READY, 'crun']);
    assert.equal((await statusOf(daemon, containerId)).state, ContainerState.CONTAINER_RUNNING);
    assert.equal(await exec(containerId, 'echo still'), 'still\n');
    await assert.rejects(
      runtime.runPodSandbox({ config: podConfig(daemon, 'new'), runtimeHandler: 'crun' }),
      withCode(GrpcCode.INVALID_ARGUMENT, /runtime_handler "crun" is not configured; known are "runc"/),
    );
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});
