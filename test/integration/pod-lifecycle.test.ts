/**
 * Whole lives of pods on the real parts: shim, OCI runtime, CNI plugins, registry. Over gRPC as a kubelet would and
 * with crictl, with the network of their own and the node's, and when they fall over by themselves.
 */
import assert from 'node:assert/strict';
import { mkdir, readFile, readlink, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import { ContainerEventType, ContainerState, NamespaceMode, PodSandboxState } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { criTool } from '../support/cri-tools.ts';
import { callsAfter, headOf, stateOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig, runPod, statusOf } from '../support/pods.ts';
import { runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const sleeper = ['sleep', '1000'];
const trapper = ['sh', '-c', 'trap "echo bye; exit 3" TERM; echo ready; while :; do sleep 0.05; done'];

describe('pods', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner);
  });

  test('a pod lives its whole life over gRPC, and leaves its calls in the journal and nothing else', async (t) => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const logDirectory = await tempDir(t);
    const since = headOf(daemon);
    const labels = { app: 'whole life', 'with/slash': 'ä' };
    const sandboxConfig = podConfig(daemon, 'life', { labels, annotations: { note: '1' }, logDirectory });

    const { podSandboxId } = await runtime.runPodSandbox({ config: sandboxConfig });
    assert.match(podSandboxId, /^[0-9a-f]{64}$/);
    const { status: pod } = await runtime.podSandboxStatus({ podSandboxId });
    assert.equal(pod?.state, PodSandboxState.SANDBOX_READY);
    assert.match(pod.network?.ip ?? '', /^10\.213\.\d+\.\d+$/);
    assert.deepEqual([pod.metadata, pod.labels, pod.annotations], [sandboxConfig.metadata, labels, { note: '1' }]);
    const { items } = await runtime.listPodSandbox({ filter: { labelSelector: { app: 'whole life' } } });
    assert.deepEqual(
      items.map(({ id, state }) => [id, state]),
      [[podSandboxId, PodSandboxState.SANDBOX_READY]],
    );

    const config = containerConfig('main', busyboxName, trapper, { logPath: 'main.log', labels });
    const { containerId } = await runtime.createContainer({ podSandboxId, config, sandboxConfig });
    const created = await statusOf(daemon, containerId);
    assert.deepEqual(
      [created.state, created.startedAt, created.finishedAt, created.reason],
      [ContainerState.CONTAINER_CREATED, '0', '0', ''],
    );
    await runtime.startContainer({ containerId });
    const running = await statusOf(daemon, containerId);
    assert.equal(running.state, ContainerState.CONTAINER_RUNNING);
    assert.equal(running.logPath, join(logDirectory, 'main.log'));
    assert.equal(running.imageId, node.busybox.configDigest);
    const { containers } = await runtime.listContainers({ filter: { podSandboxId } });
    assert.deepEqual(
      containers.map(({ id, state }) => [id, state]),
      [[containerId, ContainerState.CONTAINER_RUNNING]],
    );
    const { exitCode, stdout } = await runtime.execSync({ containerId, cmd: ['hostname'], timeout: '10' });
    assert.deepEqual([exitCode, stdout.toString()], [0, 'life\n']);
    await eventually('the trap is set', async () =>
      (await readFile(running.logPath, 'utf8').catch(() => '')).includes('ready'),
    );

    await runtime.stopContainer({ containerId, timeout: '10' });
    const exited = await statusOf(daemon, containerId);
    assert.deepEqual([exited.state, exited.exitCode, exited.reason], [ContainerState.CONTAINER_EXITED, 3, 'Error']);
    assert.ok(BigInt(exited.finishedAt) > BigInt(exited.startedAt));
    assert.match(await readFile(running.logPath, 'utf8'), /^\S+ stdout F ready\n\S+ stdout F bye\n$/);
    await runtime.removeContainer({ containerId });
    await assert.rejects(runtime.containerStatus({ containerId }), (error) => codeOf(error) === GrpcCode.NOT_FOUND);

    await runtime.stopPodSandbox({ podSandboxId });
    const { status: stopped } = await runtime.podSandboxStatus({ podSandboxId });
    assert.deepEqual([stopped?.state, stopped?.network?.ip], [PodSandboxState.SANDBOX_NOTREADY, '']);
    await runtime.removePodSandbox({ podSandboxId });
    assert.deepEqual((await runtime.listPodSandbox({ filter: { id: podSandboxId } })).items, []);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);

    const calls = await callsAfter(daemon, since);
    assert.deepEqual(
      calls.map(({ request, code }) => [request.method, code]),
      [
        'RunPodSandbox',
        'CreateContainer',
        'StartContainer',
        'ExecSync',
        'StopContainer',
        'RemoveContainer',
        'StopPodSandbox',
        'RemovePodSandbox',
      ].map((method) => [method, GrpcCode.OK]),
    );
    const { sandboxes, containers: kept, names, effects } = stateOf(daemon);
    assert.deepEqual([sandboxes.size, kept.size, names.size, effects.size], [0, 0, 0, 0]);
  });

  test('crictl takes a pod through its life', async (t) => {
    const { daemon } = node;
    const dir = await tempDir(t);
    const logDirectory = join(dir, 'logs');
    await mkdir(logDirectory);
    const endpoint = `unix://${daemon.socket}`;
    const crictl = async (...words: readonly string[]): Promise<string> => {
      const argv = [criTool('crictl'), '--runtime-endpoint', endpoint, '--image-endpoint', endpoint, ...words];
      return (await runOk(daemon.netns.inside(argv))).trim();
    };
    const podPath = join(dir, 'pod.json');
    const containerPath = join(dir, 'container.json');
    await writeFile(
      podPath,
      JSON.stringify({
        metadata: { name: 'by-crictl', namespace: 'default', uid: 'crictl-uid', attempt: 1 },
        log_directory: logDirectory,
        linux: { cgroup_parent: daemon.dirs.cgroupParent },
      }),
    );
    await writeFile(
      containerPath,
      JSON.stringify({
        metadata: { name: 'talker' },
        image: { image: busyboxName },
        command: ['sh', '-c', 'echo hello from $GREETER; exec sleep 1000'],
        envs: [{ key: 'GREETER', value: 'crictl' }],
        log_path: 'talker.log',
      }),
    );

    assert.match(await crictl('version'), /RuntimeName:\s+scribe\nRuntimeVersion:\s+\S+\nRuntimeApiVersion:\s+v1/);
    const info = JSON.parse(await crictl('info')) as { status: { conditions: { type: string; status: boolean }[] } };
    assert.deepEqual(
      info.status.conditions.map(({ type, status }) => [type, status]),
      [
        ['RuntimeReady', true],
        ['NetworkReady', true],
      ],
    );
    assert.match(await crictl('images'), /registry\.example\/busybox\s+latest\s+[0-9a-f]{13}/);
    const podId = await crictl('runp', podPath);
    assert.match(await crictl('pods'), /by-crictl\s+default\s+1/);
    const id = await crictl('create', podId, containerPath, podPath);
    assert.match(await crictl('ps', '--all'), /Created\s+talker/);
    await crictl('start', id);
    assert.match(await crictl('ps'), /Running\s+talker/);
    assert.equal(await crictl('exec', '--sync', id.slice(0, 12), 'sh', '-c', 'echo $GREETER'), 'crictl');
    await eventually('the log line', async () => (await crictl('logs', id)) === 'hello from crictl');
    const inspected = JSON.parse(await crictl('inspect', id)) as {
      status: { state: string };
      info: { pid: number; runtimeSpec: { process: { env: string[] } } };
    };
    assert.equal(inspected.status.state, 'CONTAINER_RUNNING');
    assert.match(await readFile(`/proc/${inspected.info.pid}/cmdline`, 'utf8'), /^sleep/);
    assert.match(inspected.info.runtimeSpec.process.env.join(), /GREETER=secret:/);
    // As people look for a pod's network with other runtimes, to look into it.
    const path = '{{range .info.runtimeSpec.linux.namespaces}}{{if eq .type "network"}}{{.path}}{{end}}{{end}}';
    const netnsPath = await crictl('inspectp', '--output', 'go-template', '--template', path, podId);
    const inPod = await readlink(`/proc/${inspected.info.pid}/ns/net`);
    assert.equal(`net:[${(await stat(netnsPath)).ino}]`, inPod);
    assert.match(await crictl('inspectp', podId), /"state": "SANDBOX_READY"/);
    const words = '{{.info.imageSpec.os}} {{index .info.imageSpec.config.Cmd 0}} {{.info.imageSpec.rootfs.type}}';
    assert.equal(
      await crictl('inspecti', '--output', 'go-template', '--template', words, busyboxName),
      'linux sh layers',
    );
    assert.match(await crictl('stats', id), /talker/);
    await crictl('stop', '--timeout', '0', id);
    assert.match(await crictl('ps', '--all'), /Exited\s+talker/);
    await crictl('rm', id);
    await crictl('stopp', podId);
    await crictl('rmp', podId);
    assert.equal(await crictl('pods', '--quiet'), '');
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('a pod of the host network has the namespace of the daemon and no address', async (t) => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const linux = { securityContext: { namespaceOptions: { network: NamespaceMode.NODE } } };
    const { podSandboxId, containerId } = await runPod(
      daemon,
      'on-the-host',
      busyboxName,
      sleeper,
      { pod: { linux } },
      t,
    );
    const { status, info } = await runtime.podSandboxStatus({ podSandboxId, verbose: true });
    assert.equal(status?.network?.ip, '');
    assert.equal(status.linux?.namespaces?.options?.network, NamespaceMode.NODE);
    const { pid } = JSON.parse(info['info'] ?? '{}') as { pid: number };
    assert.equal(await readlink(`/proc/${pid}/ns/net`), await readlink(`/proc/${daemon.pid()}/ns/net`));
    const { stdout } = await runtime.execSync({ containerId, cmd: ['ip', '-o', 'link'] });
    assert.match(stdout.toString(), /sc-[0-9a-f]{8}/);
    const { netns, addresses, links } = await daemon.leftovers();
    assert.deepEqual([netns, addresses, links], [[], [], []]);
  });

  test('pods reach each other, and a mapped port is reached through the node', async (t) => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const server = ['sh', '-c', 'mkdir /www; echo served > /www/index.html; exec httpd -f -p 80 -h /www'];
    const pod = { portMappings: [{ containerPort: 80, hostPort: 12_345 }] };
    const { podSandboxId } = await runPod(daemon, 'server', busyboxName, server, { pod }, t);
    const client = await runPod(daemon, 'client', busyboxName, sleeper, {}, t);
    const { status } = await runtime.podSandboxStatus({ podSandboxId });
    // Static busybox cannot look names up, which its wget does even for an address.
    const get = (host: string, port: number): string[] => [
      'sh',
      '-c',
      `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | busybox nc -w 2 ${host} ${port}`,
    ];
    const fetched = async (host: string, port: number): Promise<boolean> => {
      const request = { containerId: client.containerId, cmd: get(host, port), timeout: '5' };
      return (await runtime.execSync(request)).stdout.toString().endsWith('\r\n\r\nserved\n');
    };
    await eventually('the server answers', () => fetched(status?.network?.ip ?? '', 80));
    assert.equal(await fetched('10.213.0.1', 12_345), true);
    assert.match(await runOk(daemon.netns.inside(get('10.213.0.1', 12_345))), /served\n$/);
    assert.notDeepEqual((await daemon.leftovers()).rules, []);

    await runtime.stopPodSandbox({ podSandboxId });
    assert.deepEqual((await daemon.leftovers()).rules, []);
  });

  test('a pod has the names and the resolver that its configuration gives', async (t) => {
    const { daemon } = node;
    const dnsConfig = { servers: ['10.96.0.10'], searches: ['a.example', 'b.example'], options: ['ndots:5'] };
    const { containerId } = await runPod(daemon, 'named', busyboxName, sleeper, { pod: { dnsConfig } }, t);
    const cmd = ['sh', '-c', 'cat /etc/resolv.conf /etc/hostname; hostname; grep -c localhost /etc/hosts'];
    const { stdout } = await daemon.cri.runtime.execSync({ containerId, cmd });
    assert.match(
      stdout.toString(),
      /search a\.example b\.example\nnameserver 10\.96\.0\.10\noptions ndots:5\nnamed\nnamed\n[1-9]/,
    );
  });

  test('events tell of every step of a pod and its container, with their states', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const stop = new AbortController();
    const { CONTAINER_CREATED_EVENT, CONTAINER_STARTED_EVENT, CONTAINER_STOPPED_EVENT, CONTAINER_DELETED_EVENT } =
      ContainerEventType;
    const heard: { id: string; type: ContainerEventType; states: string; pod: number | undefined }[] = [];
    const hearing = (async () => {
      for await (const event of runtime.getContainerEvents({}, { signal: stop.signal })) {
        const states = event.containersStatuses.map(({ state }) => state).join();
        heard.push({
          id: event.containerId,
          type: event.containerEventType,
          states,
          pod: event.podSandboxStatus?.state,
        });
      }
    })().catch((error: unknown) => assert.equal(codeOf(error), GrpcCode.CANCELLED));

    const { podSandboxId, containerId } = await runPod(daemon, 'told', busyboxName, ['sh', '-c', 'exit 5']);
    await eventually('its exit', async () => (await statusOf(daemon, containerId)).finishedAt !== '0');
    await runtime.removeContainer({ containerId });
    await runtime.stopPodSandbox({ podSandboxId });
    await runtime.removePodSandbox({ podSandboxId });
    const of = (id: string) => heard.filter((event) => event.id === id);
    await eventually('the last event', async () => of(podSandboxId).length === 4);
    stop.abort();
    await hearing;
    const all = [CONTAINER_CREATED_EVENT, CONTAINER_STARTED_EVENT, CONTAINER_STOPPED_EVENT, CONTAINER_DELETED_EVENT];
    assert.deepEqual(
      of(podSandboxId).map(({ type }) => type),
      all,
    );
    assert.deepEqual(
      of(containerId).map(({ type }) => type),
      all,
    );
    assert.deepEqual(
      of(containerId).map(({ states }) => states),
      ['0', '1', '2', ''],
    );
    assert.equal(of(containerId)[0]?.pod, PodSandboxState.SANDBOX_READY);
  });

  test('a pod whose pause process is killed becomes NOTREADY and can be taken down', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const { podSandboxId, containerId } = await runPod(daemon, 'fallen', busyboxName, sleeper);
    const { info } = await runtime.podSandboxStatus({ podSandboxId, verbose: true });
    process.kill((JSON.parse(info['info'] ?? '{}') as { pid: number }).pid, 'SIGKILL');
    await eventually('NOTREADY', async () => {
      const { status } = await runtime.podSandboxStatus({ podSandboxId });
      return status?.state === PodSandboxState.SANDBOX_NOTREADY;
    });
    const config = containerConfig('late', busyboxName, sleeper);
    await assert.rejects(
      runtime.createContainer({ podSandboxId, config, sandboxConfig: podConfig(daemon, 'fallen') }),
      (error) => codeOf(error) === GrpcCode.FAILED_PRECONDITION,
    );
    await runtime.stopPodSandbox({ podSandboxId });
    assert.equal((await statusOf(daemon, containerId)).state, ContainerState.CONTAINER_EXITED);
    await runtime.removePodSandbox({ podSandboxId });
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });

  test('a pod whose shim is killed has no containers left running, and can be taken down', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const { podSandboxId, containerId } = await runPod(daemon, 'shimless', busyboxName, sleeper);
    const { shim } = stateOf(daemon).sandboxes.get(podSandboxId) ?? {};
    assert.ok(shim);
    process.kill(shim.pid, 'SIGKILL');
    const status = await eventually('its end', async () => {
      const now = await statusOf(daemon, containerId);
      return now.state === ContainerState.CONTAINER_EXITED && now;
    });
    assert.deepEqual([status.exitCode, status.reason], [255, 'Unknown']);
    assert.match(status.message, /shim/);
    await runtime.stopPodSandbox({ podSandboxId });
    await runtime.removePodSandbox({ podSandboxId });
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});
