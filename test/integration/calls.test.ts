/**
 * Calls that come twice, are cancelled, name what is not there, or ask for what can't be: what they are answered, that
 * each is in the journal, and that a refused one changes nothing.
 */
import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { type CriClient, codeOf } from '../../scripts/lib/cri-client.ts';
import {
  type ContainerConfig,
  type DeepPartial,
  NamespaceMode,
  type PodSandboxConfig,
  SecurityProfile_ProfileType,
} from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { withCode } from '../support/failures.ts';
import { callsAfter, headOf, recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, podConfig, removePod, runPod } from '../support/pods.ts';

const { INVALID_ARGUMENT, NOT_FOUND, FAILED_PRECONDITION } = GrpcCode;
const sleeper = ['sleep', '1000'];
const unknown = 'f'.repeat(64);

type Ask = (cri: CriClient) => Promise<unknown>;
type Refusal = readonly [what: string, ask: Ask, code: number, message: RegExp];

describe('calls', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let pod: { readonly podSandboxId: string; readonly containerId: string };

  before(async () => {
    node = await startNode(owner);
    pod = await runPod(node.daemon, 'stays', busyboxName, sleeper);
  });

  const podWith = (overrides: DeepPartial<PodSandboxConfig>): Ask => {
    const config = podConfig({ dirs: { root: '', state: '', cgroupParent: '', addresses: '' } }, 'refused');
    return ({ runtime }) => runtime.runPodSandbox({ config: { ...config, ...overrides } });
  };
  const containerWith =
    (overrides: DeepPartial<ContainerConfig>): Ask =>
    ({ runtime }) => {
      const config = { ...containerConfig('refused', busyboxName, sleeper), ...overrides };
      return runtime.createContainer({ podSandboxId: pod.podSandboxId, config });
    };
  const requestedSandboxes = async (name: string): Promise<string[]> =>
    (await recordsOf(node.daemon, { types: ['sandbox.requested'] }))
      .filter(({ body }) => (body as { name: string }).name.startsWith(`${name}_`))
      .map(({ stream }) => stream);

  test('C5: the same pod asked for twice is one pod, at once and later', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const config = podConfig(daemon, 'twice');
    const replies = await Promise.all([1, 2, 3].map(() => runtime.runPodSandbox({ config })));
    replies.push(await runtime.runPodSandbox({ config }));
    const [podSandboxId = ''] = replies.map((reply) => reply.podSandboxId);
    assert.deepEqual([...new Set(replies.map((reply) => reply.podSandboxId))], [podSandboxId]);
    assert.deepEqual(await requestedSandboxes('twice'), [`sandbox/${podSandboxId}`]);

    const other = { ...config, labels: { other: 'yes' } };
    const taken = (error: unknown): boolean =>
      codeOf(error) === GrpcCode.ALREADY_EXISTS && /twice_/.test(String(error));
    await assert.rejects(runtime.runPodSandbox({ config: other }), taken);
    const next = { ...config, metadata: { ...config.metadata, attempt: 1 } };
    const second = await runtime.runPodSandbox({ config: next });
    assert.notEqual(second.podSandboxId, podSandboxId);
    await Promise.all([podSandboxId, second.podSandboxId].map((id) => removePod(daemon, id)));
  });

  test('C5: the same container asked for twice is one container; once started it is taken', async () => {
    const { runtime } = node.daemon.cri;
    const config = containerConfig('twice', busyboxName, sleeper, { envs: [{ key: 'A', value: Buffer.from('same') }] });
    const request = { podSandboxId: pod.podSandboxId, config };
    const replies = await Promise.all([1, 2].map(() => runtime.createContainer(request)));
    replies.push(await runtime.createContainer(request));
    const [containerId = ''] = replies.map((reply) => reply.containerId);
    assert.deepEqual([...new Set(replies.map((reply) => reply.containerId))], [containerId]);
    const envs = [{ key: 'A', value: Buffer.from('other') }];
    const taken = (error: unknown): boolean => codeOf(error) === GrpcCode.ALREADY_EXISTS;
    await assert.rejects(runtime.createContainer({ ...request, config: { ...config, envs } }), taken);
    await Promise.all([runtime.startContainer({ containerId }), runtime.startContainer({ containerId })]);
    await assert.rejects(runtime.createContainer(request), taken);
    await runtime.removeContainer({ containerId });
  });

  test('C5: a creation whose caller has gone runs on, and the retry joins it', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const config = podConfig(daemon, 'cancelled');
    const since = headOf(daemon);
    const gone = new AbortController();
    const first = runtime.runPodSandbox({ config }, { signal: gone.signal });
    first.catch(() => undefined);
    await eventually('the call is received', async () => headOf(daemon) > since);
    gone.abort();
    await assert.rejects(first, (error) => codeOf(error) === GrpcCode.CANCELLED);
    const { podSandboxId } = await runtime.runPodSandbox({ config });
    assert.deepEqual(await requestedSandboxes('cancelled'), [`sandbox/${podSandboxId}`]);
    const calls = await callsAfter(daemon, since);
    assert.deepEqual(
      calls.map(({ request, code }) => [request.method, code]),
      [
        ['RunPodSandbox', GrpcCode.OK],
        ['RunPodSandbox', GrpcCode.OK],
      ],
    );
    assert.ok(calls[0]?.effects.includes('call.detached'));

    const createConfig = containerConfig('cancelled', busyboxName, sleeper);
    const late = runtime.createContainer({ podSandboxId, config: createConfig }, { timeoutMs: 1 });
    await assert.rejects(late, (error) => codeOf(error) === GrpcCode.DEADLINE_EXCEEDED);
    const { containerId } = await runtime.createContainer({ podSandboxId, config: createConfig });
    const { containers } = await runtime.listContainers({ filter: { podSandboxId } });
    assert.deepEqual(
      containers.map(({ id }) => id),
      [containerId],
    );
    await removePod(daemon, podSandboxId);
  });

  test('what is not there is gone for those who stop and remove, and not found for the others', async () => {
    const { runtime, image } = node.daemon.cri;
    await runtime.stopPodSandbox({ podSandboxId: unknown });
    await runtime.removePodSandbox({ podSandboxId: unknown });
    await runtime.stopContainer({ containerId: unknown });
    await runtime.removeContainer({ containerId: unknown });
    await image.removeImage({ image: { image: 'registry.example/nothing:latest' } });
    assert.equal((await image.imageStatus({ image: { image: 'registry.example/nothing' } })).image, undefined);
    const asks: Ask[] = [
      () => runtime.podSandboxStatus({ podSandboxId: unknown }),
      () => runtime.createContainer({ podSandboxId: unknown, config: containerConfig('x', busyboxName, sleeper) }),
      () => runtime.startContainer({ containerId: unknown }),
      () => runtime.containerStatus({ containerId: unknown }),
      () => runtime.containerStats({ containerId: unknown }),
      () => runtime.execSync({ containerId: unknown, cmd: ['true'] }),
      () => runtime.reopenContainerLog({ containerId: unknown }),
      containerWith({ image: { image: 'registry.example/nothing' } }),
    ];
    for (const ask of asks) await assert.rejects(ask(node.daemon.cri), withCode(NOT_FOUND));
  });

  test('an id may be given by its beginning, if that is the beginning of only one', async () => {
    const { daemon } = node;
    const { runtime } = daemon.cri;
    const { containerId, podSandboxId } = pod;
    const { status } = await runtime.containerStatus({ containerId: containerId.slice(0, 13) });
    assert.equal(status?.id, containerId);
    const { items } = await runtime.listPodSandbox({ filter: { id: podSandboxId.slice(0, 13) } });
    assert.equal(items[0]?.id, podSandboxId);
    // Of 17 ids two begin with the same digit.
    const names = Array.from({ length: 17 }, (_, index) => `many-${index}`);
    const created = await Promise.all(
      names.map((name) =>
        runtime.createContainer({ podSandboxId, config: containerConfig(name, busyboxName, sleeper) }),
      ),
    );
    const ids = [containerId, ...created.map((reply) => reply.containerId)];
    const ambiguous = ids
      .map((id) => id.slice(0, 1))
      .find((digit) => ids.filter((id) => id.startsWith(digit)).length > 1);
    for (const id of [ambiguous, ''])
      for (const ask of [
        () => runtime.stopContainer({ containerId: id }),
        () => runtime.removeContainer({ containerId: id }),
        () => runtime.startContainer({ containerId: id }),
        () => runtime.execSync({ containerId: id, cmd: ['true'] }),
        () => runtime.containerStatus({ containerId: id }),
      ])
        await assert.rejects(ask(), withCode(INVALID_ARGUMENT, /container_id/));
    assert.equal((await runtime.listContainers({ filter: { podSandboxId } })).containers.length, ids.length);
    await Promise.all(created.map((reply) => runtime.removeContainer(reply)));
  });

  test('what cannot be is refused with the field that is wrong, recorded, and changes nothing', async () => {
    const { daemon } = node;
    const context = (securityContext: object): Ask => podWith({ linux: { securityContext } });
    const inContainer = (securityContext: object): Ask => containerWith({ linux: { securityContext } });
    const resources = (given: object): Ask => containerWith({ linux: { resources: given } });
    const metadata = { name: 'refused', namespace: 'default', uid: 'u', attempt: 0 };
    const mount = { containerPath: '/x', hostPath: '/tmp' };
    const handler: Ask = ({ runtime }) =>
      runtime.runPodSandbox({ config: podConfig(daemon, 'refused'), runtimeHandler: 'kata' });
    const exec =
      (request: object): Ask =>
      ({ runtime }) =>
        runtime.execSync({ containerId: pod.containerId, cmd: ['true'], ...request });
    const pull =
      (image: string): Ask =>
      (cri) =>
        cri.image.pullImage({ image: { image } });
    const refusals: readonly Refusal[] = [
      ['no pod config', ({ runtime }) => runtime.runPodSandbox({}), INVALID_ARGUMENT, /config/],
      ['no metadata', podWith({ metadata: undefined }), INVALID_ARGUMENT, /metadata\.name/],
      ['no namespace', podWith({ metadata: { ...metadata, namespace: '' } }), INVALID_ARGUMENT, /metadata\.namespace/],
      ['no uid', podWith({ metadata: { ...metadata, uid: '' } }), INVALID_ARGUMENT, /metadata\.uid/],
      ['a long hostname', podWith({ hostname: 'h'.repeat(65) }), INVALID_ARGUMENT, /hostname/],
      ['a forged line', podWith({ hostname: 'a\nb' }), INVALID_ARGUMENT, /hostname/],
      ['a relative log directory', podWith({ logDirectory: 'logs' }), INVALID_ARGUMENT, /log_directory/],
      ['a log directory elsewhere', podWith({ logDirectory: '/a/../../b' }), INVALID_ARGUMENT, /log_directory/],
      [
        'a port of the node',
        podWith({ portMappings: [{ hostPort: 70_000, containerPort: 80 }] }),
        INVALID_ARGUMENT,
        /port_mappings\.host_port/,
      ],
      ['an address', podWith({ portMappings: [{ hostIp: '999.1.1.1' }] }), INVALID_ARGUMENT, /port_mappings\.host_ip/],
      [
        'no port of the pod',
        podWith({ portMappings: [{ hostPort: 81 }] }),
        INVALID_ARGUMENT,
        /port_mappings\.container_port is 0/,
      ],
      ['a resolver', podWith({ dnsConfig: { servers: ['1.1.1.1 evil'] } }), INVALID_ARGUMENT, /dns_config\.servers/],
      ['a cgroup', podWith({ linux: { cgroupParent: '/a/../..' } }), INVALID_ARGUMENT, /linux\.cgroup_parent/],
      ['a sysctl', podWith({ linux: { sysctls: { '../../etc/x': '1' } } }), INVALID_ARGUMENT, /linux\.sysctls/],
      ['a group without user', context({ runAsGroup: { value: '5' } }), INVALID_ARGUMENT, /run_as_group/],
      [
        'a network mode',
        context({ namespaceOptions: { network: NamespaceMode.TARGET } }),
        INVALID_ARGUMENT,
        /namespace_options\.network/,
      ],
      [
        'a user namespace',
        context({ namespaceOptions: { usernsOptions: { mode: NamespaceMode.POD } } }),
        INVALID_ARGUMENT,
        /userns_options\.uids/,
      ],
      ['a runtime handler', handler, INVALID_ARGUMENT, /runtime_handler "kata"/],
      [
        'no container config',
        ({ runtime }) => runtime.createContainer({ podSandboxId: pod.podSandboxId }),
        INVALID_ARGUMENT,
        /config/,
      ],
      ['no name', containerWith({ metadata: { name: '' } }), INVALID_ARGUMENT, /metadata\.name/],
      ['no image', containerWith({ image: undefined }), INVALID_ARGUMENT, /image\.image/],
      ['an image that is not there', containerWith({ image: { image: 'nowhere' } }), NOT_FOUND, /image\.image/],
      ['a NUL byte', containerWith({ command: ['a\0b'] }), INVALID_ARGUMENT, /command/],
      ['a relative working directory', containerWith({ workingDir: 'x' }), INVALID_ARGUMENT, /working_dir/],
      ['a log elsewhere', containerWith({ logPath: '../../x.log' }), INVALID_ARGUMENT, /log_path/],
      ['an absolute log', containerWith({ logPath: '/etc/x.log' }), INVALID_ARGUMENT, /log_path/],
      ['a nameless variable', containerWith({ envs: [{ key: '' }] }), INVALID_ARGUMENT, /envs\.key/],
      ['a variable "a=b"', containerWith({ envs: [{ key: 'a=b' }] }), INVALID_ARGUMENT, /envs\.key/],
      [
        'a mount on the root',
        containerWith({ mounts: [{ ...mount, containerPath: '/' }] }),
        INVALID_ARGUMENT,
        /mounts/,
      ],
      ['no source', containerWith({ mounts: [{ containerPath: '/x' }] }), INVALID_ARGUMENT, /mounts\.host_path/],
      [
        'a recursive read-only mount that is shared',
        containerWith({ mounts: [{ ...mount, recursiveReadOnly: true }] }),
        INVALID_ARGUMENT,
        /recursive_read_only/,
      ],
      [
        'a device',
        containerWith({ devices: [{ hostPath: '/dev/null', permissions: 'x' }] }),
        INVALID_ARGUMENT,
        /devices\.permissions/,
      ],
      ['a signal', containerWith({ stopSignal: 999 as 0 }), INVALID_ARGUMENT, /stop_signal/],
      ['too much privilege', inContainer({ privileged: true }), INVALID_ARGUMENT, /privileged/],
      [
        'a capability',
        inContainer({ capabilities: { addCapabilities: ['CAP_EVERYTHING'] } }),
        INVALID_ARGUMENT,
        /capabilit/i,
      ],
      [
        'a seccomp profile',
        inContainer({ seccomp: { profileType: SecurityProfile_ProfileType.Localhost, localhostRef: 'relative' } }),
        INVALID_ARGUMENT,
        /seccomp/,
      ],
      ['memory', resources({ memoryLimitInBytes: '-5' }), INVALID_ARGUMENT, /memory_limit_in_bytes/],
      ['a score', resources({ oomScoreAdj: '5000' }), INVALID_ARGUMENT, /oom_score_adj/],
      ['a cpuset', resources({ cpusetCpus: 'all' }), INVALID_ARGUMENT, /cpuset_cpus/],
      ['no command', exec({ cmd: [] }), INVALID_ARGUMENT, /cmd/],
      ['a command with a NUL byte', exec({ cmd: ['echo', 'a\0b'] }), INVALID_ARGUMENT, /cmd holds a NUL byte/],
      [
        'a command with a NUL byte to stream with',
        ({ runtime }) => runtime.exec({ containerId: pod.containerId, cmd: ['a\0b'], stdout: true }),
        INVALID_ARGUMENT,
        /cmd holds a NUL byte/,
      ],
      ['a log that is its directory', containerWith({ logPath: '.' }), INVALID_ARGUMENT, /log_path/],
      ['a negative time', exec({ timeout: '-1' }), INVALID_ARGUMENT, /timeout/],
      ['a second start', ({ runtime }) => runtime.startContainer(pod), FAILED_PRECONDITION, /CONTAINER_RUNNING/],
      ['no image to pull', pull(''), INVALID_ARGUMENT, /image\.image/],
      ['a malformed image', pull('registry.example/UPPER'), INVALID_ARGUMENT, /image\.image/],
      ['no image to remove', ({ image }) => image.removeImage({}), INVALID_ARGUMENT, /image\.image/],
    ];
    const before = await daemon.leftovers();
    for (const [what, ask, code, message] of refusals) {
      const since = headOf(daemon);
      await assert.rejects(ask(daemon.cri), (error) => {
        assert.equal(codeOf(error), code, `${what}: ${String(error)}`);
        assert.match(String(error), message, what);
        return true;
      });
      const calls = await callsAfter(daemon, since);
      assert.deepEqual(
        calls.map((call) => [call.code, call.effects]),
        [[code, []]],
        what,
      );
    }
    assert.deepEqual(await daemon.leftovers(), before);
  });

  test('after all of that the pod lives, and goes without a trace', async () => {
    const { daemon } = node;
    const { exitCode } = await daemon.cri.runtime.execSync({ containerId: pod.containerId, cmd: ['true'] });
    assert.equal(exitCode, 0);
    await removePod(daemon, pod.podSandboxId);
    assert.deepEqual(await daemon.leftovers(), noLeftovers);
  });
});
