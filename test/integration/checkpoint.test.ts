/**
 * CheckpointContainer with the real shim, and an OCI runtime and a CRIU that do as they are told: CRIU itself depends on
 * the kernel. What is in the archive, that nothing else is written, and that the container always runs on.
 */
import assert from 'node:assert/strict';
import { access, chmod, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { delimiter, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { codeOf } from '../../scripts/lib/cri-client.ts';
import { ContainerState } from '../../src/adapters/wire/cri/api.ts';
import { GrpcCode } from '../../src/domain/errors.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { recordsOf } from '../support/journal.ts';
import { noLeftovers } from '../support/leftovers.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { eventually, podConfig, containerConfig, removePod, statusOf } from '../support/pods.ts';
import { run } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

/** runc, but for checkpoints: <dir>/fails makes them fail, <dir>/hangs never end; both leave the container frozen. */
const runtime = (dir: string): string => `#!/bin/sh
case " $* " in
  *" checkpoint "*) ;;
  *) exec runc "$@" ;;
esac
root=
for word; do
  [ "$previous" = --image-path ] && images=$word
  [ "$previous" = --root ] && root=$word
  previous=$word
done
if [ -e ${dir}/hangs ]; then
  runc --root "$root" pause "$previous"
  touch ${dir}/hanging
  exec sleep 1000
fi
if [ -e ${dir}/fails ]; then
  runc --root "$root" pause "$previous"
  echo "criu failed: type NOTIFY errno 0" >&2
  exit 1
fi
echo pages >"$images/pages-1.img"
`;

/** Says what CRIU says of a kernel that it does not know, as long as <dir>/broken is there. */
const criu = (dir: string): string => `#!/bin/sh
[ -e ${dir}/broken ] || exit 0
echo "Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds" >&2
exit 1
`;

const exists = (path: string): Promise<boolean> =>
  access(path).then(
    () => true,
    () => false,
  );

const withCode =
  (code: number, message: RegExp) =>
  (error: unknown): boolean => {
    assert.equal(codeOf(error), code, String(error));
    assert.match(String(error), message);
    return true;
  };

describe('a checkpoint', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  let tools: string;
  let places: string;
  let podSandboxId: string;
  let containerId: string;

  const script = async (name: string, text: string): Promise<string> => {
    const path = join(tools, name);
    await rm(path, { force: true });
    await writeFile(path, text);
    await chmod(path, 0o755);
    return path;
  };
  const checkpoint = (location: string, timeout = '0'): Promise<unknown> =>
    node.daemon.cri.runtime.checkpointContainer({ containerId, location, timeout });
  const runs = async (): Promise<void> => {
    assert.equal((await statusOf(node.daemon, containerId)).state, ContainerState.CONTAINER_RUNNING);
    const { stdout } = await node.daemon.cri.runtime.execSync({ containerId, cmd: ['echo', 'alive'], timeout: '10' });
    assert.equal(stdout.toString(), 'alive\n');
  };

  before(async () => {
    tools = await tempDir(owner);
    places = await tempDir(owner);
    // Everything that PATH has, but for this machine's own CRIU.
    for (const dir of (process.env['PATH'] ?? '').split(delimiter))
      for (const name of await readdir(dir).catch((): string[] => []))
        if (name !== 'criu') await symlink(join(dir, name), join(tools, name)).catch(() => undefined);
    const runtimePath = await script('test-runtime', runtime(tools));
    node = await startNode(owner, { runtime: runtimePath, env: { PATH: tools } });
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
    await script('criu', criu(tools));
    const location = join(places, 'whole.tar');
    await writeFile(location, 'an older one');
    await checkpoint(location);
    assert.equal((await stat(location)).mode & 0o777, 0o600);
    assert.deepEqual(await readdir(places), ['whole.tar']);
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
    await writeFile(join(tools, 'broken'), '');
    const lacks = withCode(GrpcCode.FAILED_PRECONDITION, /CRIU does not work on this machine.*vDSO/);
    await assert.rejects(checkpoint(join(places, 'b.tar')), lacks);
    await runs();
    await rm(join(tools, 'fails'));
    await assert.rejects(checkpoint(join(places, 'missing', 'c.tar')), withCode(GrpcCode.UNKNOWN, /ENOENT/));
    assert.deepEqual(await readdir(places), []);
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
