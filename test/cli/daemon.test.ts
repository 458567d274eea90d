/** The commands against a real daemon: it pulls and loads, runs a pod, and all of that can be asked about. */
import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { getPriority } from 'node:os';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { buildImage, writeOciArchive } from '../../scripts/lib/image.ts';
import { cleanupAfterAll } from '../support/cleanup.ts';
import type { Daemon } from '../support/daemon.ts';
import { busyboxName, startNode } from '../support/node.ts';
import { removePod, runPod } from '../support/pods.ts';
import { startProcess } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';
import { jsonLines } from './support.ts';

const program = join(import.meta.dirname, '../../bin/scribe');

/** Of /proc/PID/stat (proc_pid_stat(5)), of a program whose name has no blank. */
const NICE_FIELD = 18;

describe('commands and a real daemon', () => {
  const owner = cleanupAfterAll();
  let daemon: Daemon;
  let digest: string;

  before(async () => {
    const node = await startNode(owner);
    daemon = node.daemon;
    digest = node.busybox.configDigest;
  });

  const ask = async (...words: readonly string[]): Promise<string> => {
    const { exitCode, stdout, stderr } = await daemon.scribe(...words);
    assert.equal(exitCode, 0, `${words.join(' ')}: ${stderr}${stdout}`);
    return stdout;
  };
  const history = (...words: readonly string[]): Promise<string> =>
    ask('history', '--root', daemon.dirs.root, ...words);

  test('image pull, load and ls', async (t) => {
    const pulled = await daemon.scribe('image', 'pull', '--socket', daemon.socket, busyboxName);
    assert.equal(pulled.exitCode, 0, pulled.stderr);
    assert.equal(pulled.stdout, `${digest}\n`);

    const archive = join(await tempDir(t), 'image.tar');
    const image = await buildImage([[{ name: 'file', content: 'loaded' }]]);
    await writeOciArchive(archive, 'registry.example/loaded:1', image);
    assert.equal(await ask('image', 'load', '--socket', daemon.socket, archive), `${image.configDigest}\n`);

    const listed = jsonLines<{ id: string; repoTags: string[] }>(
      await ask('image', 'ls', '--json', '--socket', daemon.socket),
    );
    assert.ok(listed.some(({ id, repoTags }) => id === digest && repoTags.includes(busyboxName)));
    assert.match(await ask('image', 'ls', '--socket', daemon.socket), /^registry\.example\/loaded:1 +[0-9a-f]{13} +/m);
    assert.match(await history('--image', 'registry.example/busybox'), /PullImage .* OK$/m);
  });

  test('an image that no registry has: what the registry said', async () => {
    const { exitCode, stdout, stderr } = await daemon.scribe(
      'image',
      'pull',
      '--socket',
      daemon.socket,
      'registry.example/none:1',
    );
    assert.equal(exitCode, 1);
    assert.equal(stdout, '');
    assert.match(stderr, /^scribe: .*none:1.* 404 .*\(NOT_FOUND\)\n$/);
  });

  test('a pod from its beginning to after its end, and followed meanwhile', async (t) => {
    const argv = [program, 'history', '--root', daemon.dirs.root, '--follow', '--pod', 'default/told'];
    const follower = await startProcess(t, argv);
    await follower.until(/^TIME/);
    const { podSandboxId, containerId } = await runPod(daemon, 'told', busyboxName, ['sh', '-c', 'sleep 0.2; exit 7']);
    await follower.until(/StartContainer +default\/told main [0-9a-f]{13} +node pid \d+ uid 0/);
    await follower.until(/container exited +default\/told main .* exit 7, Error/);
    await removePod(daemon, podSandboxId);
    await follower.until(/RemovePodSandbox +default\/told .* OK/);

    const lines = jsonLines<{ type: string; body: { exitStatus?: number }; object: { id: string } }>(
      await history('--json', '--container', containerId),
    );
    assert.deepEqual(
      lines.filter(({ type }) => type === 'container.exited').map(({ body, object }) => [body.exitStatus, object.id]),
      [[7, containerId]],
    );
    const whole = await history('--pod', podSandboxId);
    for (const what of ['RunPodSandbox', 'CreateContainer', 'StartContainer', 'StopPodSandbox', 'RemovePodSandbox']) {
      assert.match(whole, new RegExp(`${what} +default/told`), what);
    }
    assert.match(await history('--reads', '--method', 'Version'), /Version .* OK$/m);
  });

  test('it goes before its spawner and containers, and as it is configured', async () => {
    const nice = async (): Promise<{ daemon: number; spawner: number; container: number }> => {
      const { podSandboxId, containerId } = await runPod(daemon, 'told', busyboxName, ['sleep', '60']);
      const ran = await daemon.cri.runtime.execSync({ containerId, cmd: ['cat', '/proc/self/stat'], timeout: '0' });
      await removePod(daemon, podSandboxId);
      const spawnerPid = Number(await readFile(join(daemon.dirs.state, 'spawner.lock'), 'utf8'));
      const container = Number(Buffer.from(ran.stdout).toString().split(' ')[NICE_FIELD]);
      return { daemon: getPriority(daemon.pid()), spawner: getPriority(spawnerPid), container };
    };
    const started = getPriority();
    assert.deepEqual(await nice(), { daemon: -20, spawner: started, container: started });
    await daemon.configure('[serve]\nnice = 0\n');
    await daemon.stop();
    await daemon.start();
    assert.equal((await nice()).daemon, started);
    await daemon.configure('');
  });

  test("verify arrives at the daemon's live state, byte for byte", async () => {
    const text = await ask('verify', '--root', daemon.dirs.root);
    assert.match(text, /^every hash is right$/m);
    assert.match(text, /^the daemon's live state at record \d+ is the same, byte for byte$/m);
  });

  test('doctor knows the daemon and finds no problem with it', async () => {
    const { dirs, socket, cniConfDir } = daemon;
    const words = ['--root', dirs.root, '--state', dirs.state, '--socket', socket, '--cni-conf-dir', cniConfDir];
    const { stdout } = await daemon.scribe('doctor', '--json', ...words);
    const results = jsonLines<{ check: string; status: string; detail: string }>(stdout);
    for (const check of ['daemon', 'journal', 'CNI configuration']) {
      assert.deepEqual(
        results.filter((result) => result.check === check).map(({ status }) => status),
        ['ok'],
        check,
      );
    }
    assert.deepEqual(
      results.filter(({ check }) => check === 'work owed'),
      [],
    );
  });

  test('with the daemon down the journal still tells everything', async () => {
    await daemon.kill();
    assert.match(await history('--pod', 'default/told', '--method', 'RemovePodSandbox'), /default\/told .* OK/);
    assert.match(await ask('verify', '--root', daemon.dirs.root), /was not compared: there is no daemon at /);
    await daemon.start();
    assert.match(
      await ask('verify', '--root', daemon.dirs.root),
      /live state at record [\d,]+ is the same, byte for byte/,
    );
    assert.match(await history('--limit', '5'), /daemon started/);
  });
});
