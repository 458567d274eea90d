/**
 * RestorePod with the real shim, and an OCI runtime and a CRIU that do as they are told. That the pod is there with all of
 * its containers or not at all, that they start from what was checkpointed, that only archives which this node wrote or a
 * trusted key signed are restored, and that those do no harm either.
 */
import assert from 'node:assert/strict';
import { createHash, generateKeyPairSync, type KeyObject, sign } from 'node:crypto';
import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import {
  type ContainerConfig,
  ContainerState,
  type DeepPartial,
  NamespaceMode,
  type PodSandboxConfig,
  PodSandboxState,
  type RestorePodResponse,
} from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { criuTools, type CriuTools } from '../support/criu.ts';
import { exists } from '../../src/platform/linux/exists.ts';
import { withCode } from '../support/failures.ts';
import { tar } from '../support/images/tar.ts';
import { callsAfter } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { containerConfig, eventually, ownPids, podConfig, removePod, runPod, statusOf } from '../support/pods.ts';
import { tempDir } from '../support/temp-dir.ts';

const invalid = (message: RegExp): ((error: unknown) => boolean) => withCode(GrpcCode.INVALID_ARGUMENT, message);

describe('a pod that is restored', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let criu: CriuTools;
  let checkpointPath: string;
  let original: string;
  const [trusted, stranger] = [generateKeyPairSync('ed25519'), generateKeyPairSync('ed25519')];

  /** They would do something else if they were started anew. */
  const configOf = (name: string): DeepPartial<ContainerConfig> =>
    containerConfig(name, busyboxName, ['sleep', '1000'], { logPath: `${name}.log` });
  const both = (): DeepPartial<ContainerConfig>[] => [configOf('second'), configOf('main')];
  const restore = (
    config: DeepPartial<PodSandboxConfig>,
    containerConfigs: readonly DeepPartial<ContainerConfig>[] = both(),
    path = checkpointPath,
  ): Promise<RestorePodResponse> =>
    node.daemon.cri.runtime.restorePod({ checkpointPath: path, config, containerConfigs: [...containerConfigs] });
  const pod = (name: string, overrides: DeepPartial<PodSandboxConfig> = {}): DeepPartial<PodSandboxConfig> =>
    podConfig(node.daemon, name, overrides);
  const idsOf = ({ restoredContainers }: RestorePodResponse): Record<string, string> =>
    Object.fromEntries(restoredContainers.map(({ name, containerId }) => [name, containerId]));
  const isAlone = async (): Promise<void> => {
    const { items } = await node.daemon.cri.runtime.listPodSandbox({});
    assert.deepEqual(
      items.map(({ id }) => id),
      [original],
    );
    const { containers } = await node.daemon.cri.runtime.listContainers({});
    assert.equal(containers.length, 2);
    assert.equal((await readdir(join(node.daemon.dirs.root, 'containers'))).length, 2);
  };
  const archiveOf = async (name: string): Promise<string> => {
    const text = await readFile(join(checkpointPath, 'pod.json'), 'utf8');
    const { containers } = JSON.parse(text) as { containers: { name: string; archive: string }[] };
    return containers.find((container) => container.name === name)?.archive ?? '';
  };
  const signed = (archive: Buffer, by: KeyObject): Buffer =>
    sign(null, createHash('sha256').update(archive).digest(), by);
  /** The checkpoint with another archive of its second container, signed by that key. */
  const copyWith = async (archive: Buffer, by: KeyObject | null = trusted.privateKey): Promise<string> => {
    const path = await tempDir(owner);
    for (const file of await readdir(checkpointPath))
      await writeFile(join(path, file), await readFile(join(checkpointPath, file)));
    const other = join(path, await archiveOf('second'));
    await writeFile(other, archive);
    if (by !== null) await writeFile(`${other}.sig`, signed(archive, by));
    return path;
  };

  before(async () => {
    criu = await criuTools(owner);
    await criu.script('criu');
    const keyPath = join(await tempDir(owner), 'key.pem');
    await writeFile(keyPath, trusted.publicKey.export({ format: 'pem', type: 'spki' }));
    node = await startNode(owner, { ...criu.nodeOptions, config: `[checkpoint]\ntrusted_keys = ["${keyPath}"]\n` });
    const { runtime: cri } = node.daemon.cri;
    const command = ['sh', '-c', 'echo changed >/changed; rm /bin/true; exec sleep 1000'];
    const made = await runPod(node.daemon, 'original', busyboxName, command);
    original = made.podSandboxId;
    const config = containerConfig('second', busyboxName, ['sleep', '1000']);
    const { containerId } = await cri.createContainer({ podSandboxId: original, config });
    await cri.startContainer({ containerId });
    await eventually('the change', async () => {
      const { exitCode } = await cri.execSync({
        containerId: made.containerId,
        cmd: ['ls', '/changed'],
        timeout: '10',
      });
      return exitCode === 0;
    });
    checkpointPath = join(await tempDir(owner), 'checkpoint');
    await cri.checkpointPod({ podSandboxId: original, outputPath: checkpointPath });
  });

  const goesOn = async (overrides: DeepPartial<PodSandboxConfig>): Promise<void> => {
    const { runtime: cri } = node.daemon.cri;
    await rm(join(criu.tools, 'restored'), { force: true });
    const logDirectory = await tempDir(owner);
    const config = pod('restored', { ...overrides, logDirectory });
    const restored = await restore(config);
    const { podSandboxId } = restored;
    assert.deepEqual(
      restored.restoredContainers.map(({ name }) => name),
      ['second', 'main'],
    );
    const { main = '', second = '' } = idsOf(restored);
    const { status, containersStatuses } = await cri.podSandboxStatus({ podSandboxId });
    assert.equal(status?.state, PodSandboxState.SANDBOX_READY);
    assert.notEqual(status.network?.ip, '');
    const states = Object.fromEntries(containersStatuses.map(({ id, state }) => [id, state]));
    const { CONTAINER_CREATED } = ContainerState;
    assert.deepEqual(states, { [main]: CONTAINER_CREATED, [second]: CONTAINER_CREATED });
    assert.ok(!(await exists(join(criu.tools, 'restored'))));
    const unpacked = join(node.daemon.dirs.root, 'containers', main, 'restore');
    assert.deepEqual((await readdir(unpacked)).toSorted(), ['checkpoint', 'config.dump', 'spec.dump']);
    // Whoever asks again, as after an answer that was lost, gets the same.
    assert.deepEqual(await restore(config), restored);

    await cri.startContainer({ containerId: main });
    assert.match(await readFile(join(criu.tools, 'restored'), 'utf8'), /^-rw------- +1 0 +0 .* pages-1\.img$/m);
    assert.equal((await statusOf(node.daemon, main)).state, ContainerState.CONTAINER_RUNNING);
    const why = await node.daemon.scribe('why', `container:${main}`, '--root', node.daemon.dirs.root);
    assert.match(why.stdout.split('\n')[0] ?? '', /runs since it was restored from .*\.tar \d+/);
    const { stdout } = await cri.execSync({ containerId: main, cmd: ['cat', '/changed'], timeout: '10' });
    assert.equal(stdout.toString(), 'changed\n');
    const { exitCode } = await cri.execSync({ containerId: main, cmd: ['ls', '/bin/true'], timeout: '10' });
    assert.equal(exitCode, 1);
    assert.ok(!(await exists(unpacked)));
    assert.ok(await exists(join(logDirectory, 'main.log')));
    await assert.rejects(restore(config), withCode(GrpcCode.ALREADY_EXISTS, /already in use/));

    await cri.stopContainer({ containerId: main, timeout: '0' });
    assert.equal((await statusOf(node.daemon, main)).state, ContainerState.CONTAINER_EXITED);
    await removePod(node.daemon, podSandboxId);
    await isAlone();
  };

  test('has its containers CREATED, and they go on when they are started', () => goesOn({}));

  test('without a pause task has them too', () => goesOn(ownPids));

  test('and cannot go on has a start that failed, and is removed as any other', async () => {
    const restored = await restore(pod('failing'));
    const { main = '' } = idsOf(restored);
    await writeFile(join(criu.tools, 'fails'), '');
    const start = node.daemon.cri.runtime.startContainer({ containerId: main });
    await assert.rejects(start, withCode(GrpcCode.UNKNOWN, /criu failed/));
    await rm(join(criu.tools, 'fails'));
    const { state, reason } = await statusOf(node.daemon, main);
    assert.deepEqual([state, reason], [ContainerState.CONTAINER_EXITED, 'StartError']);
    await removePod(node.daemon, restored.podSandboxId);
    await isAlone();
  });

  test('with users of its own has the same, whose its files are', async () => {
    const { runtime: cri } = node.daemon.cri;
    const idsAt = (hostId: number) => [{ containerId: 0, hostId, length: 65_536 }];
    const usersAt = (hostId: number) => {
      const ids = idsAt(hostId);
      const usernsOptions = { mode: NamespaceMode.POD, uids: ids, gids: ids };
      return { linux: { securityContext: { namespaceOptions: { usernsOptions } } } };
    };
    const users = usersAt(200_000);
    const command = ['sh', '-c', 'echo changed >/changed; exec sleep 1000'];
    const made = await runPod(node.daemon, 'own', busyboxName, command, { pod: users, container: users });
    const said = async (containerId: string): Promise<string> => {
      const cmd = ['sh', '-c', 'cat /changed; stat -c %u /changed'];
      return (await cri.execSync({ containerId, cmd, timeout: '10' })).stdout.toString();
    };
    await eventually('the change', async () => (await said(made.containerId)) === 'changed\n0\n');
    const path = join(await tempDir(owner), 'checkpoint');
    await cri.checkpointPod({ podSandboxId: made.podSandboxId, outputPath: path });
    // Mounted for its users while it is made: which it is not before its start.
    const hostPath = await tempDir(owner);
    await writeFile(join(hostPath, 'file'), 'from the volume', { mode: 0o600 });
    const volume = { hostPath, containerPath: '/data', uidMappings: idsAt(200_000), gidMappings: idsAt(200_000) };
    const config = { ...configOf('main'), ...users, mounts: [volume] };
    const others = restore(pod('others', usersAt(300_000)), [{ ...configOf('main'), ...usersAt(300_000) }], path);
    await assert.rejects(others, invalid(/userns_options maps other ids/));
    const restored = await restore(pod('restored', users), [config], path);
    const { main = '' } = idsOf(restored);
    await cri.startContainer({ containerId: main });
    assert.equal(await said(main), 'changed\n0\n');
    const { stdout } = await cri.execSync({ containerId: main, cmd: ['cat', '/data/file'], timeout: '10' });
    assert.equal(stdout.toString(), 'from the volume');
    for (const { podSandboxId } of [made, restored]) await removePod(node.daemon, podSandboxId);
    await isAlone();
  });

  test('or a container alone, is made from an archive that is named for an image', async () => {
    const { runtime: cri } = node.daemon.cri;
    const archives = await tempDir(owner);
    const archive = join(archives, 'one.tar');
    const { containers } = await cri.listContainers({});
    const checkpointed = containers.find(({ metadata }) => metadata?.name === 'main')?.id ?? '';
    await cri.checkpointContainer({ containerId: checkpointed, location: archive, timeout: '0' });
    const { podSandboxId } = await cri.runPodSandbox({ config: pod('alone') });
    const config = (name: string, image: string): DeepPartial<ContainerConfig> =>
      containerConfig(name, image, ['sleep', '1000']);
    const create = async (image: string): Promise<string> =>
      (await cri.createContainer({ podSandboxId, config: config('main', image) })).containerId;
    await assert.rejects(create(join(archives, 'none.tar')), invalid(/none\.tar.*cannot be opened/));
    await assert.rejects(create(`${archives}/../one.tar`), invalid(/image\.image .*\.\./));
    await rm(join(criu.tools, 'criu'));
    await assert.rejects(create(archive), withCode(GrpcCode.FAILED_PRECONDITION, /install the package criu/));
    await criu.script('criu');
    const containerId = await create(archive);
    assert.equal(await create(archive), containerId);
    const { state, imageRef } = await statusOf(node.daemon, containerId);
    assert.equal(state, ContainerState.CONTAINER_CREATED);
    assert.equal(imageRef, (await statusOf(node.daemon, checkpointed)).imageRef);
    await rm(join(criu.tools, 'restored'), { force: true });
    await cri.startContainer({ containerId });
    assert.match(await readFile(join(criu.tools, 'restored'), 'utf8'), /pages-1\.img$/m);
    const { stdout } = await cri.execSync({ containerId, cmd: ['cat', '/changed'], timeout: '10' });
    assert.equal(stdout.toString(), 'changed\n');
    await removePod(node.daemon, podSandboxId);
    await isAlone();
  });

  test('without a CRIU that works is refused, and nothing was changed', async () => {
    await writeFile(join(criu.tools, 'broken'), '');
    const lacks = withCode(GrpcCode.FAILED_PRECONDITION, /CRIU does not work on this machine.*vDSO/);
    await assert.rejects(restore(pod('a')), lacks);
    await rm(join(criu.tools, 'broken'));
    await rm(join(criu.tools, 'criu'));
    await assert.rejects(restore(pod('a')), withCode(GrpcCode.FAILED_PRECONDITION, /install the package criu/));
    await criu.script('criu');
    await isAlone();
    const [{ request } = {}] = (await callsAfter(node.daemon, 0)).toReversed();
    assert.equal(request?.method, 'RestorePod');
  });

  test('is what the checkpoint and the configs agree on', async () => {
    const { runtime: cri } = node.daemon.cri;
    const [second = {}, main = {}] = both();
    await assert.rejects(restore(pod('a'), [main]), invalid(/container_configs has no "second"/));
    await assert.rejects(restore(pod('a'), [main, second, configOf('third')]), invalid(/has "third", which is not in/));
    await assert.rejects(restore(pod('a'), [main, second, main]), invalid(/has "main" more than once/));
    const missing = { ...main, image: { image: 'registry.example/missing:1' } };
    await assert.rejects(restore(pod('a'), [missing, second]), withCode(GrpcCode.NOT_FOUND, /missing:1/));
    await assert.rejects(restore(pod('a'), both(), 'relative'), invalid(/checkpoint_path .*absolute/));
    await assert.rejects(restore(pod('a'), both(), `${checkpointPath}/..`), invalid(/checkpoint_path .*\.\./));
    await assert.rejects(restore(pod('a'), both(), '/nowhere'), invalid(/no directory that CheckpointPod wrote/));
    const options = { faster: 'yes' };
    const optional = cri.restorePod({ checkpointPath, config: pod('a'), containerConfigs: both(), options });
    await assert.rejects(optional, invalid(/options has "faster"/));
    await isAlone();
  });

  test('from a description that CheckpointPod did not write is refused', async () => {
    const text = await readFile(join(checkpointPath, 'pod.json'), 'utf8');
    const described = JSON.parse(text) as { containers: { archive: string; rootfsImageRef: string }[] };
    const [first, ...rest] = described.containers;
    const cases: readonly (readonly [unknown, RegExp])[] = [
      ['{', /not JSON/],
      [{ ...described, version: 2 }, /version must be/],
      [{ ...described, more: 1 }, /field "more" that is not known/],
      [{ ...described, containers: [] }, /number of containers/],
      [{ ...described, containers: [{ ...first, archive: '../x.tar' }, ...rest] }, /archive must be the name of/],
      [{ ...described, containers: [{ ...first, rootfsImageRef: 'busybox' }, ...rest] }, /rootfsImageRef must be/],
      [
        { ...described, containers: [{ ...first, archive: 'other.tar' }, ...rest] },
        /no directory that CheckpointPod wrote/,
      ],
    ];
    for (const [content, message] of cases) {
      const path = await tempDir(owner);
      await writeFile(join(path, 'pod.json'), typeof content === 'string' ? content : JSON.stringify(content));
      await assert.rejects(restore(pod('a'), both(), path), invalid(message));
    }
    const linked = await tempDir(owner);
    await symlink(join(checkpointPath, 'pod.json'), join(linked, 'pod.json'));
    await assert.rejects(restore(pod('a'), both(), linked), invalid(/no directory that CheckpointPod wrote/));
    const image = {
      ...described,
      containers: described.containers.map((one) => ({ ...one, rootfsImageRef: `sha256:${'0'.repeat(64)}` })),
    };
    const other = await tempDir(owner);
    for (const { archive } of described.containers) await writeFile(join(other, archive), '');
    await writeFile(join(other, 'pod.json'), JSON.stringify(image));
    await assert.rejects(
      restore(pod('a'), both(), other),
      withCode(GrpcCode.NOT_FOUND, /was checkpointed with image .*busybox/),
    );
    await isAlone();
  });

  test('C6: from an archive that does harm does none, and all of the pod is undone', async () => {
    const outside = join(await tempDir(owner), 'outside');
    await mkdir(outside);
    const hostile: readonly (readonly [Buffer, RegExp])[] = [
      [Buffer.from('no archive'), /malformed|unpacked/],
      [tar([{ path: 'config.dump', data: '{}' }]), /holds no processes/],
      [tar([{ path: 'checkpoint', flag: '2', linkPath: outside }]), /neither a file nor a directory/],
      [tar([{ path: '../escaped', data: 'x' }]), /leads out of/],
    ];
    for (const [archive, message] of hostile) {
      await assert.rejects(restore(pod('hostile'), both(), await copyWith(archive)), invalid(message));
      await isAlone();
    }
    assert.deepEqual(await readdir(outside), []);
  });

  test('C19: that a restart of the daemon cuts short is undone', async () => {
    const members = Array.from({ length: 60_000 }, (_, index) => ({ path: `checkpoint/${index}`, data: '' }));
    const path = await copyWith(tar(members));
    const cut = assert.rejects(restore(pod('cut'), both(), path));
    const containers = join(node.daemon.dirs.root, 'containers');
    await eventually('the checkpoint to be unpacked', async () => {
      const found = await Promise.all(
        (await readdir(containers)).map((id) => exists(join(containers, id, 'restore/checkpoint'))),
      );
      return found.includes(true);
    });
    await node.daemon.kill();
    await cut;
    await node.daemon.start();
    await eventually('the undo', async () => (await node.daemon.cri.runtime.listPodSandbox({})).items.length === 1);
    await isAlone();
  });

  test('C19: whose container is restored when the daemon is killed is removed with all that the OCI runtime left', async () => {
    const { runtime: cri } = node.daemon.cri;
    const restored = await restore(pod('cut'));
    const { main = '' } = idsOf(restored);
    await writeFile(join(criu.tools, 'hangs'), '');
    const cut = assert.rejects(cri.startContainer({ containerId: main }));
    await eventually('the container to be restored', () => exists(join(criu.tools, 'hanging')));
    await node.daemon.kill();
    await cut;
    for (const name of ['hangs', 'hanging']) await rm(join(criu.tools, name));
    await node.daemon.start();
    await eventually('its failed start', async () => (await statusOf(node.daemon, main)).reason === 'StartError');
    const { podSandboxId } = restored;
    for (const end of [cri.stopPodSandbox, cri.removePodSandbox]) await end({ podSandboxId }, { timeoutMs: 20_000 });
    await isAlone();
    assert.ok(!(await readdir(join(node.daemon.dirs.state, 'runtime/k8s.io'))).includes(main));
  });

  test('from archives that this node did not write is refused, unless a trusted key signed them', async () => {
    const { runtime: cri } = node.daemon.cri;
    const untrusted = withCode(
      GrpcCode.PERMISSION_DENIED,
      /\.tar is not as this node made it .*checkpoint\.trusted_keys/,
    );
    const file = await archiveOf('second');
    const own = await readFile(join(checkpointPath, file));
    const page = own.indexOf('pages\n');
    assert.ok(page > 0);
    // Another memory: tar's own checksums do not cover it.
    const foreign = Buffer.from(own);
    foreign.write('other\n', page);
    await assert.rejects(restore(pod('foreign'), both(), await copyWith(foreign, null)), untrusted);
    await assert.rejects(restore(pod('foreign'), both(), await copyWith(foreign, stranger.privateKey)), untrusted);
    const another = await copyWith(foreign, null);
    await writeFile(join(another, `${file}.sig`), signed(own, trusted.privateKey));
    await assert.rejects(restore(pod('foreign'), both(), another), untrusted);
    await isAlone();
    // This node's own archive is that wherever it lies, and so it is after a restart.
    for (const path of [await copyWith(own, null), await copyWith(foreign)]) {
      const restored = await restore(pod('foreign'), both(), path);
      await cri.startContainer({ containerId: idsOf(restored)['second'] ?? '' });
      await removePod(node.daemon, restored.podSandboxId);
    }
    await isAlone();

    const archive = join(await copyWith(foreign, null), file);
    const { podSandboxId } = await cri.runPodSandbox({ config: pod('alone') });
    const config = containerConfig('second', archive, ['sleep', '1000']);
    await assert.rejects(cri.createContainer({ podSandboxId, config }), untrusted);
    await writeFile(`${archive}.sig`, signed(foreign, trusted.privateKey));
    const { containerId } = await cri.createContainer({ podSandboxId, config });
    await cri.startContainer({ containerId });
    await removePod(node.daemon, podSandboxId);
    await isAlone();
  });

  test('leaves nothing', async () => {
    await removePod(node.daemon, original);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
