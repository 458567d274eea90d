/** One daemon a place: a second one for a socket, a state or a root directory that is taken ends at once, and harms nobody. */
import assert from 'node:assert/strict';
import { readFile, readdir, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { PodSandboxState } from '../../src/wire/cri/api.ts';
import { cleanupAfterAll, onCleanup } from '../support/cleanup.ts';
import { type Daemon, startDaemon } from '../support/daemon.ts';
import { processesOf } from '../support/leftovers.ts';
import { ownPids, podConfig, removePod } from '../support/pods.ts';
import { runOk } from '../support/process.ts';
import { tempDir } from '../support/temp-dir.ts';

const timeout = 60_000;

interface Places {
  readonly root: string;
  readonly state: string;
  readonly socket: string;
}

describe('a second daemon', () => {
  const owner = cleanupAfterAll();
  let daemon: Daemon;
  let taken: Places;
  let own: Places;

  before(async () => {
    daemon = await startDaemon(owner);
    taken = { ...daemon.dirs, socket: daemon.socket };
    const dir = await tempDir(owner);
    own = { root: join(dir, 'root'), state: join(dir, 'state'), socket: join(dir, 'scribe.sock') };
  });

  const serve = (places: Places) =>
    daemon.scribe('serve', '--root', places.root, '--state', places.state, '--socket', places.socket);

  const isRefused = async (places: Places, what: RegExp): Promise<void> => {
    const socketBefore = await stat(taken.socket);
    const { exitCode, stderr } = await serve(places);
    assert.equal(exitCode, 1, stderr);
    assert.match(stderr, what);
    assert.match(stderr, new RegExp(`process ${daemon.pid()} `), 'the daemon that is there is not named');
    assert.equal(
      (await stat(taken.socket)).ino,
      socketBefore.ino,
      'the socket is not that of the daemon that is there',
    );
    await daemon.cri.runtime.listPodSandbox();
    assert.equal(await readFile(join(taken.state, 'scribe.pid'), 'utf8'), `${daemon.pid()}\n`);
    const orphans = await processesOf({ ...daemon.dirs, root: own.root, state: own.state });
    assert.deepEqual(orphans, [], 'the daemon that was refused left a process behind');
  };

  test('for the socket of another is refused, and names its pid', { timeout }, async () => {
    await isRefused({ ...own, socket: taken.socket }, /The socket .* is in use/);
    assert.deepEqual(await readdir(own.root).catch(() => []), [], 'something was made before it was refused');
  });

  test('for the state directory of another is refused, and names its pid', { timeout }, async () => {
    const spawnersBefore = (await processesOf(daemon.dirs)).length;
    await isRefused({ ...own, state: taken.state }, /The state directory .* is in use/);
    assert.equal((await processesOf(daemon.dirs)).length, spawnersBefore, 'a spawner was left behind');
  });

  test('for the root directory of another is refused, and names its pid', { timeout }, async () => {
    await isRefused({ ...own, root: taken.root }, /The journal is in use/);
  });

  test('for a copy of the root directory of another is refused, whose pods it would take for its own', {
    timeout,
  }, async () => {
    const config = podConfig(daemon, 'lives', ownPids);
    const { podSandboxId } = await daemon.cri.runtime.runPodSandbox({ config });
    const copy = { ...own, root: `${own.root}-copied` };
    await runOk(['cp', '--archive', taken.root, copy.root]);
    await isRefused(copy, /The state directory .* of the pods in this journal is in use/);
    const { status } = await daemon.cri.runtime.podSandboxStatus({ podSandboxId });
    assert.equal(status?.state, PodSandboxState.SANDBOX_READY);
    await removePod(daemon, podSandboxId);
  });

  test('for a socket that some other program listens at is refused, and names its pid', { timeout }, async (t) => {
    const path = join(await tempDir(t), 'other.sock');
    const listener = createServer((socket) => socket.on('error', () => undefined));
    await new Promise<void>((resolve) => listener.listen(path, resolve));
    onCleanup(t, async () => new Promise<void>((resolve) => listener.close(() => resolve())));
    const { exitCode, stderr } = await serve({ ...own, socket: path });
    assert.equal(exitCode, 1, stderr);
    assert.match(stderr, new RegExp(`The socket .* is in use: process ${process.pid} listens there`));
    assert.doesNotMatch(stderr, /^ +at /m, 'a sentence, and no trace');
    assert.ok(listener.listening && (await stat(path)).isSocket(), 'its socket is gone');
  });

  test('takes the places of one that was killed', { timeout }, async () => {
    await daemon.kill();
    await daemon.start();
    assert.equal((await readFile(join(taken.state, 'scribe.lock'), 'utf8')).trim(), String(daemon.pid()));
  });
});
