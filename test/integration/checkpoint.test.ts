/**
 * CheckpointContainer and CheckpointPod with the real shim, and an OCI runtime and a CRIU that do as they are told: CRIU itself depends on
 * the kernel. What is in the archive, that nothing else is written, and that the container always runs on.
 */
import assert from 'node:assert/strict';
import { mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { sha256Of } from '../../src/adapters/images/chain-ids.ts';
import { ContainerState } from '../../src/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/model/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { criuTools, type CriuTools } from '../support/criu.ts';
import { exists } from '../../src/platform/linux/exists.ts';
import { withCode } from '../support/failures.ts';
import { recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, podConfig, containerConfig, removePod, statusOf } from '../support/pods.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

/** What pod.json says. */
interface Described {
  readonly id: string;
  readonly config: { readonly metadata: { readonly name: string } };
  readonly containers: readonly { readonly name: string; readonly archive: string }[];
}

describe('a checkpoint', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let tools: string;
  let script: CriuTools['script'];
  let places: string;
  let podSandboxId: string;
  let containerId: string;
  let second: string;

  const checkpoint = (location: string, timeout = '0'): Promise<unknown> =>
    node.daemon.cri.runtime.checkpointContainer({ containerId, location, timeout });
  const checkpointPod = (outputPath: string, containerIds: readonly string[] = []): Promise<unknown> =>
    node.daemon.cri.runtime.checkpointPod({ podSandboxId, outputPath, containerIds: [...containerIds] });
  const runs = async (): Promise<void> => {
    assert.equal((await statusOf(node.daemon, containerId)).state, ContainerState.CONTAINER_RUNNING);
    const { stdout } = await node.daemon.cri.runtime.execSync({ containerId, cmd: ['echo', 'alive'], timeout: '10' });
    assert.equal(stdout.toString(), 'alive\n');
  };

  before(async () => {
    const { tools: toolsDir, ...made } = await criuTools(owner);
    tools = toolsDir;
    script = made.script;
    places = await tempDir(owner);
    node = await startNode(owner, made.nodeOptions);
    const { runtime: cri } = node.daemon.cri;
    ({ podSandboxId } = await cri.runPodSandbox({ config: podConfig(node.daemon, 'pod') }));
    const config = containerConfig('main', busyboxName, ['sh', '-c', 'echo changed >/changed; exec sleep 1000']);
    ({ containerId } = await cri.createContainer({ podSandboxId, config }));
    await cri.startContainer({ containerId });
  });

  test('without CRIU is refused, and says what to install', async () => {
    const refused = withCode(GrpcCode.FAILED_PRECONDITION, /install the package criu/);
    await assert.rejects(checkpoint(join(places, 'none.tar')), refused);
    assert.deepEqual(await readdir(places), []);
    await runs();
  });

  test('is an archive for root alone, and the container runs on', async () => {
    await script('criu');
    const location = join(places, 'whole.tar');
    await writeFile(location, 'an older one');
    await checkpoint(location);
    assert.equal((await stat(location)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(places), ['whole.tar']);
    const ended = (await recordsOf(node.daemon)).findLast(
      ({ type, body }) => type === 'effect.ended' && (body as { kind: string }).kind === 'CheckpointTask',
    );
    const { result } = ended?.body as { result?: { digests?: readonly string[] } };
    assert.deepEqual(result?.digests, [sha256Of(await readFile(location))]);
    const { stdout } = await run(['tar', '--list', '--file', location]);
    assert.deepEqual(stdout.trim().split('\n').toSorted(), [
      './',
      './checkpoint/',
      './checkpoint/pages-1.img',
      './config.dump',
      './rootfs-diff.tar',
      './spec.dump',
    ]);
    const spec = await run(['tar', '--extract', '--to-stdout', '--file', location, './spec.dump']);
    assert.deepEqual((JSON.parse(spec.stdout) as { process: { args: string[] } }).process.args.slice(0, 2), [
      'sh',
      '-c',
    ]);
    await run(['tar', '--extract', '--file', location, '--directory', places, './rootfs-diff.tar']);
    const changes = await run(['tar', '--list', '--file', join(places, 'rootfs-diff.tar')]);
    assert.match(changes.stdout, /^\.\/changed$/m);
    for (const name of await readdir(places)) await rm(join(places, name));
    await runs();
  });

  test('that fails is thawed, says why, and leaves nothing', async () => {
    await writeFile(join(tools, 'fails'), '');
    await assert.rejects(checkpoint(join(places, 'a.tar')), withCode(GrpcCode.UNKNOWN, /criu failed/));
    await runs();
    // Its log is gone with the directory that it lies in.
    const log = `(00.07) rlimit: Can't be read
(00.083643) Error (criu/cr-dump.c:388): Can't get rlimit 0: Operation not permitted
(00.083644)      1: Error (criu/cr-dump.c:1737): Dump core (pid: 7) failed with -1
`;
    await writeFile(join(tools, 'logs'), log);
    const explained =
      /: criu failed: Can't get rlimit 0: Operation not permitted; Dump core \(pid: 7\) failed with -1\.$/;
    await assert.rejects(checkpoint(join(places, 'a.tar')), withCode(GrpcCode.UNKNOWN, explained));
    await rm(join(tools, 'logs'));
    await writeFile(join(tools, 'broken'), '');
    const lacks = withCode(GrpcCode.FAILED_PRECONDITION, /CRIU does not work on this machine.*vDSO/);
    await assert.rejects(checkpoint(join(places, 'b.tar')), lacks);
    await runs();
    await rm(join(tools, 'fails'));
    await assert.rejects(checkpoint(join(places, 'missing', 'c.tar')), withCode(GrpcCode.UNKNOWN, /ENOENT/));
    assert.deepEqual(await readdir(places), []);
    await runs();
  });

  test('is given up where all of it takes longer than its timeout', async () => {
    await script('tar');
    const late = withCode(GrpcCode.DEADLINE_EXCEEDED, /tar could not archive .* in time/);
    // In the first of its steps that tar does, and in the second.
    for (const seconds of ['30', '1.5']) {
      await writeFile(join(tools, 'tar-takes'), seconds);
      await assert.rejects(checkpoint(join(places, 'a.tar'), '2'), late);
      assert.deepEqual(await readdir(places), []);
    }
    await rm(join(tools, 'tar-takes'));
    await runs();
  });

  test('C19: that a restart of the daemon cuts short is thawed, cleared up and journaled', async () => {
    await writeFile(join(tools, 'hangs'), '');
    const location = join(places, 'cut.tar');
    const cut = assert.rejects(checkpoint(location));
    await eventually('the container to be frozen', () => exists(join(tools, 'hanging')));
    await writeFile(join(places, '.unfinished-cut.tar'), 'as far as it came');
    await node.daemon.kill();
    await cut;
    await rm(join(tools, 'hangs'));
    await node.daemon.start();
    await eventually('the end of the checkpoint', async () => {
      const records = await recordsOf(node.daemon);
      return records.some(
        ({ type, body }) => type === 'effect.ended' && (body as { kind: string }).kind === 'EndCheckpoint',
      );
    });
    await runs();
    assert.deepEqual(await readdir(places), []);
    assert.ok(!(await exists(join(node.daemon.dirs.root, 'containers', containerId, 'checkpoint'))));
    const { stdout } = await node.daemon.scribe('history', '--root', node.daemon.dirs.root, '--events');
    assert.match(stdout, /EndCheckpoint to .*cut\.tar/);
    await checkpoint(location);
    await rm(location);
    await runs();
  });

  test('of a pod is of all its containers at one moment, or of those that are named', async () => {
    const { runtime: cri } = node.daemon.cri;
    const config = containerConfig('second', busyboxName, ['sleep', '1000']);
    second = (await cri.createContainer({ podSandboxId, config })).containerId;
    await cri.startContainer({ containerId: second });
    const outputPath = join(places, 'pod');
    await rm(join(tools, 'listed'));
    await checkpointPod(outputPath);
    assert.equal((await stat(outputPath)).mode & 0o777, 0o700);
    const archives = [`${containerId}.tar`, `${second}.tar`];
    assert.deepEqual((await readdir(outputPath)).toSorted(), [...archives, 'pod.json'].toSorted());
    // Either of the two was frozen while the other was written.
    const listed = await readFile(join(tools, 'listed'), 'utf8');
    for (const id of [containerId, second])
      assert.deepEqual(listed.match(new RegExp(`(?<=^${id} .*)(paused|running)`, 'gm')), ['paused', 'paused'], listed);
    const described = JSON.parse(await readFile(join(outputPath, 'pod.json'), 'utf8')) as Described;
    assert.equal(described.id, podSandboxId);
    assert.equal(described.config.metadata.name, 'pod');
    assert.deepEqual(
      described.containers.map(({ name, archive }) => [name, archive]),
      [
        ['main', archives[0]],
        ['second', archives[1]],
      ],
    );
    for (const archive of archives) {
      assert.equal((await stat(join(outputPath, archive))).mode & 0o777, 0o600);
      const { stdout } = await run(['tar', '--list', '--file', join(outputPath, archive)]);
      assert.match(stdout, /^\.\/checkpoint\/pages-1\.img$/m);
    }
    await assert.rejects(checkpointPod(outputPath), withCode(GrpcCode.FAILED_PRECONDITION, /not an empty directory/));
    assert.equal((await readdir(outputPath)).length, 3);
    await rm(outputPath, { recursive: true });
    await mkdir(outputPath);
    await checkpointPod(outputPath, [second.slice(0, 12)]);
    assert.deepEqual((await readdir(outputPath)).toSorted(), [`${second}.tar`, 'pod.json'].toSorted());
    await rm(outputPath, { recursive: true });
    await runs();
  });

  test('of a pod that fails is thawed, says why, and leaves nothing', async () => {
    const outputPath = join(places, 'pod');
    await writeFile(join(tools, 'fails'), '');
    const lacks = withCode(GrpcCode.FAILED_PRECONDITION, /CRIU does not work on this machine.*vDSO/);
    await writeFile(join(tools, 'broken'), '');
    await assert.rejects(checkpointPod(outputPath), lacks);
    await rm(join(tools, 'fails'));
    await rm(join(tools, 'broken'));
    await rm(join(tools, 'criu'));
    await assert.rejects(checkpointPod(outputPath), withCode(GrpcCode.FAILED_PRECONDITION, /install the package criu/));
    await script('criu');
    assert.deepEqual(await readdir(places), []);
    const invalid = (message: RegExp): ((error: unknown) => boolean) => withCode(GrpcCode.INVALID_ARGUMENT, message);
    await assert.rejects(checkpointPod(''), invalid(/output_path is empty/));
    await assert.rejects(checkpointPod(`${places}/../x`), invalid(/output_path .*\.\./));
    const { runtime: cri } = node.daemon.cri;
    await assert.rejects(
      cri.checkpointPod({ podSandboxId, outputPath, options: { pause: 'no' } }),
      invalid(/options has "pause"/),
    );
    await assert.rejects(checkpointPod(outputPath, ['f'.repeat(64)]), withCode(GrpcCode.NOT_FOUND, /f{64}/));
    assert.deepEqual(await readdir(places), []);
    await runs();
  });

  test('C19: of a pod that a restart of the daemon cuts short is thawed, cleared up and journaled', async () => {
    const outputPath = join(places, 'pod');
    await rm(join(tools, 'hanging'));
    await writeFile(join(tools, 'hangs'), '');
    const cut = assert.rejects(checkpointPod(outputPath));
    await eventually('the pod to be frozen', () => exists(join(tools, 'hanging')));
    await writeFile(join(outputPath, `${second}.tar`), 'as far as it came');
    await node.daemon.kill();
    await cut;
    await rm(join(tools, 'hangs'));
    await node.daemon.start();
    await eventually('the end of the checkpoint', async () => {
      const records = await recordsOf(node.daemon);
      return records.some(
        ({ type, body }) => type === 'effect.ended' && (body as { kind: string }).kind === 'EndPodCheckpoint',
      );
    });
    await runs();
    const { exitCode } = await node.daemon.cri.runtime.execSync({ containerId: second, cmd: ['true'], timeout: '10' });
    assert.equal(exitCode, 0);
    assert.deepEqual(await readdir(outputPath), []);
    const { stdout } = await node.daemon.scribe('history', '--root', node.daemon.dirs.root, '--events');
    assert.match(stdout, /EndPodCheckpoint to .*pod/);
    await checkpointPod(outputPath);
    await rm(outputPath, { recursive: true });
  });

  test('of a container, or of its pod, ends when the container is removed, however long CRIU would take', async () => {
    const { runtime: cri } = node.daemon.cri;
    await writeFile(join(tools, 'traces'), '');
    const removedMeanwhile = async (begin: (containerId: string) => Promise<unknown>): Promise<void> => {
      await rm(join(tools, 'hanging'), { force: true });
      const config = containerConfig('removed', busyboxName, ['sleep', '1000']);
      const { containerId: removed } = await cri.createContainer({ podSandboxId, config });
      await cri.startContainer({ containerId: removed });
      const killed = withCode(GrpcCode.FAILED_PRECONDITION, /was killed while it was checkpointed/);
      const ended = assert.rejects(begin(removed), killed);
      await eventually('somebody to have hold of it', () => exists(join(tools, 'hanging')));
      await cri.removeContainer({ containerId: removed }, { timeoutMs: 20_000 });
      await ended;
    };
    const location = join(places, 'removed.tar');
    await removedMeanwhile((removed) => cri.checkpointContainer({ containerId: removed, location, timeout: '0' }));
    await removedMeanwhile((removed) => checkpointPod(join(places, 'pod'), [removed]));
    await rm(join(tools, 'traces'));
    assert.deepEqual(await readdir(places), []);
    await runs();
  });

  test('goes only where the request can mean it, and only of a container that runs', async () => {
    const invalid = (message: RegExp): ((error: unknown) => boolean) => withCode(GrpcCode.INVALID_ARGUMENT, message);
    await assert.rejects(checkpoint(''), invalid(/location is empty/));
    await assert.rejects(checkpoint('relative.tar'), invalid(/location .*absolute/));
    await assert.rejects(checkpoint(`${places}/../x.tar`), invalid(/location .*\.\./));
    await assert.rejects(checkpoint(`${places}/`), invalid(/location is a directory/));
    await assert.rejects(checkpoint(join(places, 'x.tar'), '-1'), invalid(/timeout/));
    const target = join(places, 'target');
    await writeFile(target, 'stays');
    await symlink(target, join(places, '.unfinished-link.tar'));
    await symlink(target, join(places, 'link.tar'));
    await checkpoint(join(places, 'link.tar'));
    assert.equal((await stat(target)).size, 'stays'.length);
    await node.daemon.cri.runtime.stopContainer({ containerId, timeout: '0' });
    await assert.rejects(checkpoint(join(places, 'x.tar')), withCode(GrpcCode.FAILED_PRECONDITION, /CONTAINER_EXITED/));
    await removePod(node.daemon, podSandboxId);
    assert.deepEqual(await node.daemon.leftovers(), noLeftovers);
  });
});
