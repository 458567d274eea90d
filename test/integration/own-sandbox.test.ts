/**
 * Pods that a shim holds by its own sandbox service, on the real parts: a shim of this project's (test/support/
 * containerd-shim-sandbox) whose containers are runc's. What they see, what the death of the daemon, the sandbox and the
 * shim does to them, and that a shim which hangs or lies costs its own pod time and nobody else anything.
 */
import assert from 'node:assert/strict';
import { readFile, readlink } from 'node:fs/promises';
import { before, describe, test } from 'node:test';
import {
  ContainerEventType,
  ContainerState,
  type DeepPartial,
  NamespaceMode,
  type PodSandboxConfig,
  PodSandboxState,
} from '../../src/wire/cri/api.ts';
import { agreement } from '../support/agreement.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { goProgram } from '../support/go-program.ts';
import { headOf, recordsOf, stateOf } from '../support/journal.ts';
import { noLeftovers, processesOf } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, statusOf } from '../support/pods.ts';
import { liveTaskOf } from '../../src/domain/model/container-state.ts';

const sleeper = ['sleep', '1000'];
const runtimeHandler = 'own';
const { CONTAINER_EXITED, CONTAINER_RUNNING } = ContainerState;
const { SANDBOX_READY, SANDBOX_NOTREADY } = PodSandboxState;

const faulty = (fault: string): DeepPartial<PodSandboxConfig> => ({ annotations: { 'scribe.example/fault': fault } });

const isGone = (pid: number) => async (): Promise<boolean> => {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => null);
  return stat === null || stat.includes(') Z ');
};

describe("pods that their shim's own sandbox service holds", () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    const shim = await goProgram('containerd-shim-sandbox');
    const config = `
[runtime.handlers.${runtimeHandler}]
runtime_type = "io.scribe.sandbox.v1"
shim_path = "${shim}"
sandboxer = "shim"

[runtime.handlers.without]
runtime_type = "io.containerd.runc.v2"
sandboxer = "shim"
`;
    node = await startNode(owner, { config });
  });

  const runSandbox = async (name: string, overrides: DeepPartial<PodSandboxConfig> = {}): Promise<string> => {
    const config = podConfig(node.daemon, name, overrides);
    return (await node.daemon.cri.runtime.runPodSandbox({ config, runtimeHandler })).podSandboxId;
  };
  const addContainer = async (
    podSandboxId: string,
    name: string,
    pod: DeepPartial<PodSandboxConfig> = {},
  ): Promise<string> => {
    const { runtime } = node.daemon.cri;
    const sandboxConfig = podConfig(node.daemon, name, pod);
    const config = containerConfig(name, busyboxName, sleeper, {
      linux: { securityContext: { namespaceOptions: pod.linux?.securityContext?.namespaceOptions ?? {} } },
    });
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    await runtime.startContainer({ containerId });
    return containerId;
  };
  const shell = async (containerId: string, script: string): Promise<string> => {
    const cmd = ['sh', '-c', script];
    return (await node.daemon.cri.runtime.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
  };
  const podState = async (podSandboxId: string): Promise<PodSandboxState | undefined> =>
    (await node.daemon.cri.runtime.podSandboxStatus({ podSandboxId })).status?.state;
  const infoOf = async (podSandboxId: string): Promise<Record<string, unknown>> => {
    const { info } = await node.daemon.cri.runtime.podSandboxStatus({ podSandboxId, verbose: true });
    return JSON.parse(info['info'] ?? '{}') as Record<string, unknown>;
  };
  const sandboxOf = (podSandboxId: string) => {
    const sandbox = stateOf(node.daemon).sandboxes.get(podSandboxId);
    assert.ok(sandbox);
    return { sandbox, shimPid: sandbox.shim?.pid ?? 0, pid: sandbox.task?.pid ?? 0 };
  };
  const effectsOf = async (podSandboxId: string, since: number): Promise<string[]> =>
    (await recordsOf(node.daemon, { fromSeq: since + 1 }))
      .filter(({ stream, type }) => stream.endsWith(podSandboxId) && type === 'effects.requested')
      .flatMap(({ body }) => (body as { effects: { kind: string }[] }).effects.map(({ kind }) => kind));
  const history = async (podSandboxId: string): Promise<string> =>
    (await node.daemon.scribe('history', '--root', node.daemon.dirs.root, '--events', '--pod', podSandboxId)).stdout;

  test('a pod is created, started, told of, stopped and shut down by its shim, and leaves nothing', async () => {
    const { daemon } = node;
    const since = headOf(daemon);
    const podSandboxId = await runSandbox('whole');
    const { pid, sandbox } = sandboxOf(podSandboxId);
    assert.equal(sandbox.sandboxer, 'shim');
    assert.equal(await podState(podSandboxId), SANDBOX_READY);
    const info = await infoOf(podSandboxId);
    const { state, info: told, metrics } = info['shimSandbox'] as Record<string, unknown>;
    assert.deepEqual([info['pid'], info['sandboxer'], state], [pid, 'shim', 'SANDBOX_READY']);
    assert.deepEqual(info['platform'], { os: 'linux', architecture: process.arch === 'x64' ? 'amd64' : process.arch });
    assert.deepEqual(told, { netns: sandbox.network?.netnsPath, hostname: 'whole' });
    assert.equal((metrics as { typeUrl: string }).typeUrl, 'google.protobuf.UInt64Value');
    await removePod(daemon, podSandboxId);
    await eventually('the sandbox ends', isGone(pid));
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
    assert.deepEqual(
      (await effectsOf(podSandboxId, since)).filter((kind) => /Shim|Sandbox$|Task/.test(kind)),
      ['PreparePodSandbox', 'StartShim', 'StartSandbox', 'StopSandbox', 'StopShim', 'CleanPodSandbox'],
    );
    assert.match(await history(podSandboxId), /sandbox exited .* exit 137/);
  });

  test("containers are tasks of the pod's shim, in the namespaces of its sandbox, with exec and exit codes", async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const podSandboxId = await runSandbox('sharing');
    const one = await addContainer(podSandboxId, 'one');
    const other = await addContainer(podSandboxId, 'other');
    const { pid, sandbox } = sandboxOf(podSandboxId);
    const namespacesOf = (process: number): Promise<string[]> =>
      Promise.all(['ipc', 'uts', 'pid'].map((name) => readlink(`/proc/${process}/ns/${name}`)));
    const taskPid = (containerId: string): number => liveTaskOf(stateOf(daemon).containers.get(containerId))?.pid ?? 0;
    assert.deepEqual(await namespacesOf(taskPid(one)), await namespacesOf(pid));
    assert.deepEqual(await namespacesOf(taskPid(other)), await namespacesOf(pid));
    assert.equal(await shell(one, 'hostname; cat /proc/1/comm; ip -4 -o addr show eth0 | wc -l'), 'sharing\nexe\n1\n');
    assert.equal((await daemon.leftovers()).shims.length, 1);
    assert.equal(sandbox.shim?.taskApi, 3);
    await runtime.stopContainer({ containerId: one, timeout: '0' });
    assert.deepEqual([(await statusOf(daemon, one)).exitCode, await podState(podSandboxId)], [137, SANDBOX_READY]);
    await runtime.removeContainer({ containerId: one });
    assert.equal((await statusOf(daemon, other)).state, CONTAINER_RUNNING);
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('the shim finds kernel parameters in the bundle, those that scribe adds among them', async () => {
    const { daemon } = node;
    const pod = { linux: { sysctls: { 'net.ipv4.ip_forward': '0', 'kernel.shm_rmid_forced': '1' } } };
    const podSandboxId = await runSandbox('parameters', pod);
    const containerId = await addContainer(podSandboxId, 'parameters', pod);
    const names = ['net/ipv4/ip_forward', 'kernel/shm_rmid_forced', 'net/ipv4/ip_unprivileged_port_start'];
    assert.equal(await shell(containerId, `cd /proc/sys; cat ${names.join(' ')}`), '0\n1\n0\n');
    await removePod(daemon, podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('a pod with processes of its own containers, and one on the network of the node', async () => {
    const { daemon } = node;
    for (const [name, pod] of [
      ['apart', ownPids],
      ['outside', { linux: { securityContext: { namespaceOptions: { network: NamespaceMode.NODE } } } }],
    ] as const) {
      const podSandboxId = await runSandbox(name, pod);
      const containerId = await addContainer(podSandboxId, name, pod);
      assert.equal((await shell(containerId, 'cat /proc/1/comm')).trim(), name === 'apart' ? 'sleep' : 'exe');
      await removePod(daemon, podSandboxId);
      assert.deepEqual(await daemon.leftovers(), noLeftovers);
    }
  });

  test('C18: pods and containers are as they were after a kill of the daemon, and what ended meanwhile is known', async () => {
    const { daemon } = node;
    const stays = await runSandbox('stays');
    const containerId = await addContainer(stays, 'stays');
    const falls = await runSandbox('falls');
    const bereft = await runSandbox('bereft-meanwhile');
    const { pid } = sandboxOf(falls);
    const { shimPid } = sandboxOf(bereft);
    await daemon.kill();
    process.kill(shimPid, 'SIGKILL');
    process.kill(pid, 'SIGKILL');
    for (const one of [pid, shimPid]) await eventually('they fall', isGone(one));
    await daemon.start();
    assert.equal(await podState(stays), SANDBOX_READY);
    assert.equal(await shell(containerId, 'echo alive'), 'alive\n');
    assert.equal(await podState(falls), SANDBOX_NOTREADY);
    assert.equal(await podState(bereft), SANDBOX_NOTREADY);
    await eventually('its exit is known', async () => sandboxOf(falls).sandbox.taskExit?.exitStatus === 137);
    await agreement(daemon);
    // Its end is heard of again.
    process.kill(sandboxOf(stays).pid, 'SIGKILL');
    await eventually('the other falls', async () => (await podState(stays)) === SANDBOX_NOTREADY);
    for (const id of [falls, stays, bereft]) await removePod(daemon, id);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('C19: a sandbox that is being started when the daemon is killed is undone', async () => {
    const { daemon } = node;
    const starting = runSandbox('half', faulty('hang-in-start')).then(
      () => 'answered',
      () => 'interrupted',
    );
    const isStarting = async (): Promise<boolean> =>
      [...stateOf(daemon).effects.values()].some(({ intent }) => intent.kind === 'StartSandbox');
    await eventually('it is being started', isStarting);
    await daemon.kill();
    assert.equal(await starting, 'interrupted');
    await daemon.start();
    await eventually('it is undone', async () => stateOf(daemon).sandboxes.size === 0);
    const holders = (await processesOf(daemon.dirs)).filter(({ commandLine }) => /^sandbox-holder /.test(commandLine));
    assert.deepEqual(holders, []);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('the death of the sandbox, and of the shim, is the end of the pod, and is told', async () => {
    const { daemon } = node;
    const fallen = await runSandbox('fallen');
    const bereft = await runSandbox('bereft');
    const containerId = await addContainer(bereft, 'bereft');
    const { shimPid, pid: bereftPid } = sandboxOf(bereft);
    const told = new Set<string>();
    const events = new AbortController();
    const heard = (async () => {
      for await (const { containerEventType, containerId: id } of daemon.cri.runtime.getContainerEvents(
        {},
        { signal: events.signal },
      ))
        if (containerEventType === ContainerEventType.CONTAINER_STOPPED_EVENT) told.add(id);
    })().catch(() => undefined);
    process.kill(sandboxOf(fallen).pid, 'SIGKILL');
    process.kill(shimPid, 'SIGKILL');
    for (const id of [fallen, bereft])
      await eventually('it is NOTREADY', async () => (await podState(id)) === SANDBOX_NOTREADY);
    await eventually('they are told of', async () => [fallen, bereft, containerId].every((id) => told.has(id)));
    events.abort();
    await heard;
    assert.equal((await statusOf(daemon, containerId)).state, CONTAINER_EXITED);
    assert.match(await history(fallen), /pod lost .* its sandbox ended with status 137/);
    assert.match(await history(bereft), /pod lost .* the shim that ran it is gone/);
    for (const id of [fallen, bereft]) await removePod(daemon, id);
    await eventually('the sandbox goes with its shim', isGone(bereftPid));
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('a shim that dies at the start, lies about its process or has no sandbox service fails its pod alone', async () => {
    const { daemon } = node;
    await assert.rejects(runSandbox('dying', faulty('die-at-start')), /start pod sandbox .* by its shim/);
    await assert.rejects(runSandbox('lying', faulty('lie-about-pid')), /is process 1, which was there before the pod/);
    const config = podConfig(daemon, 'without');
    await assert.rejects(
      daemon.cri.runtime.runPodSandbox({ config, runtimeHandler: 'without' }),
      /has no sandbox service/,
    );
    await eventually('all is undone', async () => {
      const { shims, netns, bundles } = await daemon.leftovers();
      return shims.length + netns.length + bundles.length === 0;
    });
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('a StopSandbox that is never answered ends with the shim, is written down, and holds nobody else up', async () => {
    const { daemon } = node;
    const hangs = await runSandbox('hangs', faulty('hang-in-stop'));
    const deaf = await runSandbox('deaf', faulty('hang-in-shutdown'));
    const { pid } = sandboxOf(hangs);
    let isRemoved = false;
    const removing = Promise.all([removePod(daemon, hangs), removePod(daemon, deaf)]).then(() => {
      isRemoved = true;
    });
    const bystander = await runSandbox('bystander');
    await addContainer(bystander, 'bystander');
    await removePod(daemon, bystander);
    await daemon.cri.runtime.podSandboxStatus({ podSandboxId: hangs, verbose: true });
    assert.equal(isRemoved, false, 'others wait for the pod that hangs');
    await removing;
    await eventually('the sandbox is gone', isGone(pid));
    assert.match(
      await history(hangs),
      /failed .* StopSandbox: Pod sandbox .* was not stopped by its shim in time, which answers PingSandbox/,
    );
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('what a shim says of its sandbox is bounded, and a shim that is stopped by a signal is done without', async () => {
    const { daemon } = node;
    const floods = await runSandbox('floods', faulty('flood-status'));
    const flooded = (await infoOf(floods))['shimSandbox'] as Record<string, unknown>;
    assert.deepEqual(
      [Object.keys(flooded['info'] as object).sort(), flooded['infoLeftOut']],
      [['hostname', 'netns'], 1],
    );
    const lies = await runSandbox('lies', faulty('lie-about-id'));
    assert.match(JSON.stringify((await infoOf(lies))['shimSandbox']), /answers for another sandbox/);
    const { shimPid } = sandboxOf(floods);
    process.kill(shimPid, 'SIGSTOP');
    try {
      const silent = (await infoOf(floods))['shimSandbox'] as Record<string, unknown>;
      assert.match(String(silent['problem']), /did not answer SandboxStatus/);
      assert.equal(await podState(floods), SANDBOX_READY);
    } finally {
      process.kill(shimPid, 'SIGCONT');
    }
    // A restart asks what it can't be told.
    await daemon.kill();
    await daemon.start();
    assert.deepEqual([await podState(floods), await podState(lies)], [SANDBOX_READY, SANDBOX_READY]);
    for (const id of [floods, lies]) await removePod(daemon, id);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});
