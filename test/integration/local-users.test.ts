/**
 * What a user of the node who is nobody special gets to of the daemon's directories and of what is in its pods, on the
 * real parts: nothing. Programs of a container's image, with their set-user-ID bits, are in reach of that user otherwise.
 */
import assert from 'node:assert/strict';
import { chmod, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { before, describe, test } from 'node:test';
import { NamespaceMode } from '../../src/wire/cri/api.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import { startDaemon } from '../support/daemon.ts';
import { busyboxName, startNode, type TestNode } from '../support/node.ts';
import { removePod, runPod } from '../support/pods.ts';
import { run } from '../support/process.ts';

const nobody = 65_534;
const first = 300_000;

/** Runs a shell as that user and group, with no other groups and no capabilities. */
const as = (uid: number, gid: number, script: string) =>
  run(['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', '--', 'sh', '-c', script]);

const modeOf = async (path: string): Promise<string> => ((await stat(path)).mode & 0o7777).toString(8);

describe('users of the node', () => {
  const owner = cleanupAfterAll();
  let node: TestNode;
  before(async () => {
    node = await startNode(owner);
  });

  /** Each denied to that user, and there for root: what was not there would be denied to anybody. */
  const assertDenied = async (uid: number, paths: readonly string[]): Promise<void> => {
    for (const path of paths) {
      await stat(path);
      const { exitCode, stderr } = await as(uid, uid, `ls -ld '${path}'`);
      assert.notEqual(exitCode, 0, `${path} is in reach of user ${uid}`);
      assert.match(stderr, /Permission denied/, path);
    }
  };

  test("CVE-2024-25621: don't get into a pod's files, its shared memory or its containers' root file systems", async () => {
    const { state, root } = node.daemon.dirs;
    const pod = await runPod(node.daemon, 'private', busyboxName, ['sleep', '1000']);
    const program = join(state, 'bundles', pod.containerId, 'rootfs/bin/busybox');
    // Where the directories lie, everybody may go.
    assert.equal((await as(nobody, nobody, `ls -ld '${state}'`)).exitCode, 0);
    await assertDenied(nobody, [
      program,
      join(state, 'bundles', pod.containerId, 'config.json'),
      join(state, 'sandboxes', pod.podSandboxId, 'hosts'),
      join(state, 'sandboxes', pod.podSandboxId, 'shm'),
      join(root, 'journal.db'),
    ]);
    assert.equal((await as(nobody, nobody, `'${program}' id`)).exitCode, 126);
    await removePod(node.daemon, pod.podSandboxId);
  });

  test("CVE-2024-25621: don't get there when the pod has users of its own, whose root does", async () => {
    const mappings = [{ containerId: 0, hostId: first, length: 65_536 }];
    const linux = {
      securityContext: {
        namespaceOptions: { usernsOptions: { mode: NamespaceMode.POD, uids: mappings, gids: mappings } },
      },
    };
    const pod = await runPod(node.daemon, 'mapped', busyboxName, ['sleep', '1000'], {
      pod: { linux },
      container: { linux },
    });
    const { state } = node.daemon.dirs;
    const inBundle = join(state, 'bundles', pod.containerId, 'rootfs/bin/busybox');
    const inSandbox = join(state, 'sandboxes', pod.podSandboxId, 'hosts');
    await assertDenied(nobody, [inBundle, inSandbox]);
    await assertDenied(first + 1, [inBundle, inSandbox]);
    for (const path of [inBundle, inSandbox]) {
      assert.equal((await as(first, first, `ls -ld '${path}'`)).exitCode, 0, path);
      assert.equal(
        await modeOf(join(state, path === inBundle ? `bundles/${pod.containerId}` : `sandboxes/${pod.podSandboxId}`)),
        '710',
      );
    }
    const { stdout } = await node.daemon.cri.runtime.execSync({
      containerId: pod.containerId,
      cmd: ['cat', '/etc/hosts'],
      timeout: '10',
    });
    assert.match(stdout.toString(), /localhost/);
    await removePod(node.daemon, pod.podSandboxId);
  });

  test('a start narrows directories, journal and keys that others could reach into, and says so', async (t) => {
    const daemon = await startDaemon(t);
    const { root, state } = daemon.dirs;
    await daemon.stop();
    await mkdir(join(state, 'bundles'), { recursive: true });
    for (const path of [root, state, join(state, 'bundles')]) await chmod(path, 0o777);
    await writeFile(join(root, 'journal.db-wal'), '', { flag: 'a' });
    for (const name of ['journal.db', 'journal.db-wal', 'journal.db.key', 'secrets.key'])
      await chmod(join(root, name), 0o666);
    await daemon.start();
    assert.deepEqual(await Promise.all([root, state, join(state, 'bundles')].map(modeOf)), ['700', '711', '711']);
    for (const name of await readdir(root)) {
      const path = join(root, name);
      if ((await stat(path)).isFile()) assert.equal(await modeOf(path), '600', path);
    }
    const { stdout } = await daemon.scribe(
      'doctor',
      '--json',
      '--root',
      root,
      '--state',
      state,
      '--socket',
      daemon.socket,
    );
    for (const path of [root, state]) assert.match(stdout, new RegExp(`"${path} had mode 0777`));
    await assertDenied(nobody, [join(root, 'journal.db'), join(root, 'secrets.key'), dirname(join(root, 'images/x'))]);
  });
});
