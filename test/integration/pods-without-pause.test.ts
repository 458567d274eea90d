/**
 * Pods whose namespaces are pinned by mounts, on the real parts: what their containers see, what a kill of the daemon,
 * of the shim and of the node does to them, and which pods get a pause task all the same.
 */
import assert from 'node:assert/strict';
import { readFile, readlink, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import {
  ContainerState,
  type DeepPartial,
  NamespaceMode,
  type PodSandboxConfig,
  PodSandboxState,
} from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { agreement } from '../support/agreement.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { headOf, recordsOf, stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, runPod, statusOf } from '../support/pods.ts';
import { runOk } from '../support/process.ts';
import { liveTaskOf } from '../../src/domain/model/container-state.ts';

const sleeper = ['sleep', '1000'];
const { CONTAINER_EXITED, CONTAINER_RUNNING } = ContainerState;
const { SANDBOX_READY, SANDBOX_NOTREADY } = PodSandboxState;

const withOptions = (options: Readonly<Record<string, NamespaceMode>>): DeepPartial<PodSandboxConfig> => ({
  linux: { securityContext: { namespaceOptions: { pid: NamespaceMode.CONTAINER, ...options } } },
});

describe('pods without a pause task', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner);
  });

  const podState = async (podSandboxId: string): Promise<PodSandboxState | undefined> =>
    (await node.daemon.cri.runtime.podSandboxStatus({ podSandboxId })).status?.state;
  const shell = async (containerId: string, script: string): Promise<string> => {
    const cmd = ['sh', '-c', script];
    return (await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
  };
  const shimOf = (podSandboxId: string) => stateOf(node.daemon).sandboxes.get(podSandboxId)?.shim ?? null;
  const addContainer = async (podSandboxId: string, name: string, sandboxConfig: DeepPartial<PodSandboxConfig>) => {
    const { runtime } = node.daemon.cri;
    const config = containerConfig(name, busyboxName, sleeper);
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await runtime.startContainer({ containerId });
    return containerId;
  };

  test('a pod is READY on its pins alone, two trips to the disk after it was asked for, and leaves nothing', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const since = headOf(daemon);
    const { podSandboxId } = await runtime.runPodSandbox({ config: podConfig(daemon, 'pinned', ownPids) });
    const { status, info } = await runtime.podSandboxStatus({ podSandboxId, verbose: true });
    assert.equal(status?.state, SANDBOX_READY);
    assert.match(status.network?.ip ?? '', /^10\.213\./);
    const { pid, sandboxer } = JSON.parse(info['info'] ?? '{}') as { pid: number; sandboxer: string };
    assert.deepEqual([pid, sandboxer], [0, 'none']);
    await eventually('its shim is there', async () => shimOf(podSandboxId) !== null);
    const found = await daemon.leftovers();
    assert.deepEqual([found.shims.length, found.cgroups, found.netns.length], [1, [], 3]);
    const own = (await recordsOf(daemon, { fromSeq: since + 1 })).filter(({ stream }) => stream.endsWith(podSandboxId));
    const requested = own.filter(({ type }) => type === 'effects.requested').map(({ body }) => JSON.stringify(body));
    assert.deepEqual(requested, [
      '{"effects":[{"kind":"PreparePodSandbox"},{"kind":"PinNamespaces"},{"kind":"AttachNetwork"}]}',
      '{"effects":[{"kind":"StartShim"}]}',
    ]);
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('its containers share its network, IPC and host names and its kernel parameters, and no processes', async () => {
    const { daemon } = node;
    const sysctls = {
      'net.ipv4.ip_forward': '0',
      'net/ipv4/conf/all/forwarding': '0',
      'kernel.shm_rmid_forced': '1',
      'fs.mqueue.msg_max': '77',
    };
    const sandboxConfig = podConfig(daemon, 'sharing', { ...ownPids, linux: { ...ownPids.linux, sysctls } });
    const { podSandboxId } = await daemon.cri.runtime.runPodSandbox({ config: sandboxConfig });
    const [one, other] = [
      await addContainer(podSandboxId, 'one', sandboxConfig),
      await addContainer(podSandboxId, 'other', sandboxConfig),
    ];
    const { state } = daemon.dirs;
    const pinned = await Promise.all(
      ['netns', 'ipcns', 'utsns'].map(async (place) => (await stat(join(state, place, podSandboxId))).ino),
    );
    const namespacesOf = async (containerId: string): Promise<string[]> => {
      const { pid } = liveTaskOf(stateOf(daemon).containers.get(containerId)) ?? { pid: 0 };
      return Promise.all(['net', 'ipc', 'uts', 'pid'].map((name) => readlink(`/proc/${pid}/ns/${name}`)));
    };
    const [first, second] = [await namespacesOf(one), await namespacesOf(other)];
    assert.deepEqual(first.slice(0, 3), [`net:[${pinned[0]}]`, `ipc:[${pinned[1]}]`, `uts:[${pinned[2]}]`]);
    assert.deepEqual(first.slice(0, 3), second.slice(0, 3));
    assert.notEqual(first[3], second[3]);
    const names = ['net/ipv4/ip_forward', 'kernel/shm_rmid_forced', 'fs/mqueue/msg_max'];
    const seen = await shell(one, `hostname; cd /proc/sys; cat ${names.join(' ')} net/ipv4/ip_unprivileged_port_start`);
    assert.equal(seen, 'sharing\n0\n1\n77\n0\n');
    assert.equal((await readFile('/proc/sys/fs/mqueue/msg_max', 'utf8')).trim() === '77', false);
    assert.notEqual((await readFile('/proc/sys/kernel/hostname', 'utf8')).trim(), 'sharing');
    await shell(one, 'echo shared > /dev/shm/file');
    assert.equal(await shell(other, 'cat /dev/shm/file; ip -o link show lo | grep -c LOOPBACK,UP'), 'shared\n1\n');
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('a container is debugged in the PID namespace of another', async (t) => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const { podSandboxId, containerId } = await runPod(daemon, 'target', busyboxName, sleeper, { pod: ownPids }, t);
    const namespaceOptions = { pid: NamespaceMode.TARGET, targetId: containerId };
    const config = containerConfig('debugger', busyboxName, ['sleep', '2000'], {
      linux: { securityContext: { namespaceOptions } },
    });
    const sandboxConfig = podConfig(daemon, 'target', ownPids);
    const { containerId: debuggerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await runtime.startContainer({ containerId: debuggerId });
    assert.match(await shell(debuggerId, 'cat /proc/1/cmdline | tr "\\0" " "'), /^sleep 1000/);
  });

  test('pods on the namespaces of the node pin the rest, or nothing', async () => {
    const { daemon } = node;
    const { NODE } = NamespaceMode;
    for (const [name, options, pins] of [
      ['host-network', { network: NODE }, ['ipcns']],
      ['host-ipc', { ipc: NODE }, ['netns', 'utsns']],
      ['host-all', { network: NODE, ipc: NODE, pid: NODE }, []],
    ] as const) {
      const pod = withOptions(options);
      const { podSandboxId, containerId } = await runPod(daemon, name, busyboxName, sleeper, { pod });
      assert.equal(stateOf(daemon).sandboxes.get(podSandboxId)?.sandboxer, 'none');
      const { netns } = await daemon.leftovers();
      assert.deepEqual(
        netns,
        pins.map((place) => join(daemon.dirs.state, place, podSandboxId)),
      );
      assert.equal((await statusOf(daemon, containerId)).state, CONTAINER_RUNNING);
      await removePod(daemon, podSandboxId);
      assert.deepEqual(await daemon.leftovers(), noLeftovers);
    }
  });

  test('pods that share a PID namespace, or set what no namespace of theirs has, get a pause task', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const shared = await runPod(daemon, 'shared', busyboxName, sleeper);
    assert.equal(stateOf(daemon).sandboxes.get(shared.podSandboxId)?.sandboxer, 'pause');
    await removePod(daemon, shared.podSandboxId);
    const sysctls = { 'vm.swappiness': '1' };
    const config = podConfig(daemon, 'judged', { ...ownPids, linux: { ...ownPids.linux, sysctls } });
    await assert.rejects(runtime.runPodSandbox({ config }), /vm\.swappiness/);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('the shim stays with the pod when its last container goes', async (t) => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const { podSandboxId, containerId } = await runPod(daemon, 'idle', busyboxName, sleeper, { pod: ownPids }, t);
    const first = shimOf(podSandboxId);
    assert.ok(first);
    await runtime.removeContainer({ containerId });
    assert.equal(await podState(podSandboxId), SANDBOX_READY);
    const next = await addContainer(podSandboxId, 'next', podConfig(daemon, 'idle', ownPids));
    assert.equal((await statusOf(daemon, next)).state, CONTAINER_RUNNING);
    assert.equal(shimOf(podSandboxId)?.pid, first.pid);
  });

  test('the death of the shim ends the containers, and the pod starts others', async () => {
    const { daemon } = node;
    const { podSandboxId, containerId } = await runPod(daemon, 'survivor', busyboxName, sleeper, { pod: ownPids });
    process.kill(shimOf(podSandboxId)?.pid ?? 0, 'SIGKILL');
    const status = await eventually('its end', async () => {
      const now = await statusOf(daemon, containerId);
      return now.state === CONTAINER_EXITED && now;
    });
    assert.deepEqual([status.exitCode, status.reason], [255, 'Unknown']);
    assert.equal(await podState(podSandboxId), SANDBOX_READY);
    const next = await addContainer(podSandboxId, 'next', podConfig(daemon, 'survivor', ownPids));
    assert.equal(await shell(next, 'hostname'), 'survivor\n');
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('C18: pods with and without containers are READY after a kill of the daemon, and NOTREADY without their pins', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const full = await runPod(daemon, 'full', busyboxName, sleeper, { pod: ownPids });
    const empty = await runtime.runPodSandbox({ config: podConfig(daemon, 'empty', ownPids) });
    const unpinned = await runtime.runPodSandbox({ config: podConfig(daemon, 'unpinned', ownPids) });
    await daemon.kill();
    await runOk(['umount', join(daemon.dirs.state, 'ipcns', unpinned.podSandboxId)]);
    await daemon.start();
    assert.equal(await podState(full.podSandboxId), SANDBOX_READY);
    assert.equal(await podState(empty.podSandboxId), SANDBOX_READY);
    assert.equal(await podState(unpinned.podSandboxId), SANDBOX_NOTREADY);
    const sandboxConfig = podConfig(daemon, 'unpinned', ownPids);
    const config = containerConfig('late', busyboxName, sleeper);
    await assert.rejects(
      runtime.createContainer({ podSandboxId: unpinned.podSandboxId, config, sandboxConfig }),
      (error) => codeOf(error) === GrpcCode.FAILED_PRECONDITION,
    );
    await removePod(daemon, unpinned.podSandboxId);
    await agreement(daemon);
    assert.equal(await shell(full.containerId, 'echo alive'), 'alive\n');
    await addContainer(empty.podSandboxId, 'first', podConfig(daemon, 'empty', ownPids));
    await removePod(daemon, full.podSandboxId);
    await removePod(daemon, empty.podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});
